"""What goes in and what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

State = Mapping[str, Any]

EMPTY_VALUES: tuple[Any, ...] = (None, "", [], {})


@dataclass(frozen=True)
class SourceView:
    """The latest state as one source tells it."""

    source: str
    weight: int
    captured_at: datetime
    state: State
    confidence: float = 1.0  # how much the source itself is believed, 0 to 1
    is_crossed: bool = False  # it names the sides the other way round than the match does
    unmoved_seconds: float | None = None  # for so long at least it has told the same play; None: it moves, or who knows


@dataclass(frozen=True)
class FieldConflict:
    """Two sources tell one field differently, by more than a delay would explain."""

    field: str  # "innings.1.runs", "score.team_a.goals", "status", "teams.team_b", "toss.winner", "start_time"
    chosen_source: str
    chosen_value: Any
    other_source: str
    other_value: Any
    difference_percent: float | None = None  # None where it is no number


@dataclass(frozen=True)
class Reconciled:
    state: dict[str, Any]
    provenance: dict[str, dict[str, Any]]
    conflicts: tuple[FieldConflict, ...] = ()


def is_empty(value: Any) -> bool:
    """Says nothing: absent, blank, or an object of nothing but such values."""
    return value in EMPTY_VALUES or (isinstance(value, Mapping) and all(is_empty(one) for one in value.values()))
