"""What sources disagree about, as the API's description shows it."""

from __future__ import annotations

from typing import Any

from pydantic import AwareDatetime, Field

from scraping.api import examples
from scraping.api.documents import Document, FullMetadata, Provisional


class ConflictRow(Document):
    """Two sources tell the same field differently, by more than a delay would explain."""

    id: int
    field: str = Field(description="innings.1.runs, score.team_a.goals, status, teams.team_b, toss.winner, start_time.")
    chosen_source: str = Field(description="The source that is believed: its value is the one that is served.")
    chosen_value: Any
    other_source: str
    other_value: Any
    difference_percent: float | None = Field(description="Of the larger number; null where it is no number.")
    times_seen: int = Field(description="Readings at which they differed.")
    first_seen_at: AwareDatetime
    last_seen_at: AwareDatetime
    resolved_at: AwareDatetime | None = Field(description="When they agreed again; null while they do not.")


class MatchConflicts(Document):
    conflicts: list[ConflictRow] = Field(description="The latest first.")
    provisional: Provisional | None = Field(description="A score that went down and is not believed yet.")
    metadata_: FullMetadata = Field(alias="_metadata")


EXAMPLE: dict[str, Any] = {
    "conflicts": [
        {
            "id": 77,
            "field": "innings.2.runs",
            "chosen_source": "crex",
            "chosen_value": 95,
            "other_source": "espn",
            "other_value": 86,
            "difference_percent": 9.5,
            "times_seen": 14,
            "first_seen_at": "2025-11-22T15:22:10.000Z",
            "last_seen_at": "2025-11-22T15:23:47.120Z",
            "resolved_at": None,
        }
    ],
    "provisional": None,
    "_metadata": examples.FULL_METADATA,
}
