"""Fault injection: the faults that operators and tests add to the sites, and their registry."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from stadium.endpoints import Site, Target
from stadium.validation import StrictModel

Kind = Literal[
    "status", "latency", "malformed", "hang", "layout", "empty", "challenge", "reset", "drip", "wrong_match",
    "half_list", "flood", "bomb", "loop", "lead_away", "login",
]  # fmt: skip
DEFAULT_VALUES = {"status": 503.0, "latency": 1.0, "drip": 3.0}
VALUES = {"status": (400, 599), "lead_away": (0, 65_535)}  # an HTTP status, a port
OTHER_VALUES = (0, 3600)


class FaultSpec(StrictModel):
    """A fault as it is requested: its effect, and the requests that it hits."""

    kind: Kind
    site: Literal[Site, "*"] = "*"
    target: Literal[Target, "*"] = "*"
    path: re.Pattern[str] | None = None
    match: str = "*"
    value: float
    count: int | None = Field(None, ge=1)
    seconds: float | None = Field(None, ge=0)
    probability: float = Field(1.0, ge=0, le=1)

    @model_validator(mode="before")
    @classmethod
    def _with_default_value(cls, data: Any) -> Any:
        return {"value": DEFAULT_VALUES.get(str(data.get("kind")), 0.0)} | data if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _check_value(self) -> Self:
        lowest, highest = VALUES.get(self.kind, OTHER_VALUES)
        if not lowest <= self.value <= highest:
            raise ValueError(f"value must be from {lowest} to {highest} when kind is {self.kind!r}")
        return self


@dataclass
class Fault:
    id: str
    spec: FaultSpec
    until: float | None
    random: Random
    hits: int = 0
    removed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def kind(self) -> Kind:
        return self.spec.kind

    @property
    def value(self) -> float:
        return self.spec.value

    def is_active(self, wall: float) -> bool:
        spent = self.spec.count is not None and self.hits >= self.spec.count
        return not spent and (self.until is None or wall < self.until)

    def applies_to(self, site: str, target: str, path: str, match: str) -> bool:
        spec = self.spec
        return (
            spec.site in ("*", site)
            and spec.target in ("*", target)
            and (spec.path is None or spec.path.search(path) is not None)
            and spec.match in ("*", match)
        )

    def as_json(self, wall: float) -> dict[str, Any]:
        return self.spec.model_dump(mode="json", exclude={"seconds"}) | {
            "id": self.id,
            "seconds_left": None if self.until is None else max(self.until - wall, 0.0),
            "hits": self.hits,
            "active": self.is_active(wall),
        }


class FaultRegistry:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._number = 0
        self.faults: dict[str, Fault] = {}

    def add(self, spec: FaultSpec, wall: float) -> Fault:
        self._number += 1
        identity = f"f{self._number}"
        until = None if spec.seconds is None else wall + spec.seconds
        fault = self.faults[identity] = Fault(identity, spec, until, Random(f"{self._seed}:{identity}"))
        return fault

    def remove(self, identity: str) -> bool:
        fault = self.faults.pop(identity, None)
        if fault:
            fault.removed.set()
        return fault is not None

    def clear(self) -> int:
        return sum(self.remove(identity) for identity in list(self.faults))

    def find_active(self, kind: str, *, site: str, target: str, path: str, match: str, wall: float) -> Fault | None:
        """Returns the first active fault of a kind without counting a hit; for faults that last, like a new layout."""
        for fault in self.faults.values():
            if fault.kind == kind and fault.is_active(wall) and fault.applies_to(site, target, path, match):
                return fault
        return None

    def hits_for(self, site: str, target: str, path: str, match: str, wall: float) -> list[Fault]:
        """Returns the faults that hit this request, in the order they were added, and counts each hit."""
        hits = []
        for fault in self.faults.values():
            if not fault.is_active(wall) or not fault.applies_to(site, target, path, match):
                continue
            if fault.spec.probability >= 1 or fault.random.random() < fault.spec.probability:
                fault.hits += 1
                hits.append(fault)
        return hits
