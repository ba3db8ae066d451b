"""Fault injection: the faults that operators and tests add to the sites, and their registry."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, get_args

from stadium.endpoints import Site, Target

SITES = (*get_args(Site), "*")
TARGETS = (*get_args(Target), "*")
KINDS = (
    "status", "latency", "malformed", "hang", "layout", "empty", "challenge", "reset", "drip", "wrong_match",
    "half_list", "flood", "bomb", "loop", "lead_away", "login",
)  # fmt: skip
FIELDS = ("site", "target", "path", "match", "kind", "value", "count", "seconds", "probability")
DEFAULT_VALUES = {"status": 503.0, "latency": 1.0, "drip": 3.0}


class InvalidFaultError(ValueError):
    """A fault request is not valid; the message names the field and the allowed values."""


@dataclass
class Fault:
    id: str
    site: str
    target: str
    path: str | None
    match: str
    kind: str
    value: float
    count: int | None
    until: float | None
    probability: float
    random: Random
    hits: int = 0
    removed: asyncio.Event = field(default_factory=asyncio.Event)

    def is_active(self, wall: float) -> bool:
        spent = self.count is not None and self.hits >= self.count
        return not spent and (self.until is None or wall < self.until)

    def applies_to(self, site: str, target: str, path: str, match: str) -> bool:
        return (
            self.site in ("*", site)
            and self.target in ("*", target)
            and (self.path is None or re.search(self.path, path) is not None)
            and self.match in ("*", match)
        )

    def as_json(self, wall: float) -> dict[str, Any]:
        return {
            "id": self.id, "site": self.site, "target": self.target, "path": self.path, "match": self.match,
            "kind": self.kind, "value": self.value, "count": self.count, "probability": self.probability,
            "seconds_left": None if self.until is None else max(self.until - wall, 0.0),
            "hits": self.hits, "active": self.is_active(wall),
        }  # fmt: skip


class FaultRegistry:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._number = 0
        self.faults: dict[str, Fault] = {}

    def add(self, requested: Mapping[str, Any], wall: float) -> Fault:
        fields = _checked(requested)
        self._number += 1
        identity = f"f{self._number}"
        seconds = fields.pop("seconds")
        until = None if seconds is None else wall + seconds
        fault = Fault(identity, until=until, random=Random(f"{self._seed}:{identity}"), **fields)
        self.faults[identity] = fault
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
            if fault.probability >= 1 or fault.random.random() < fault.probability:
                fault.hits += 1
                hits.append(fault)
        return hits


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    unknown = set(fields) - set(FIELDS)
    if unknown:
        raise InvalidFaultError(f"unknown field {min(unknown)!r}; allowed: {', '.join(FIELDS)}")
    kind = _choice(fields, "kind", KINDS, None)
    highest = 65_535 if kind == "lead_away" else 3600  # that one is a port
    value = _number(fields, "value", DEFAULT_VALUES.get(kind, 0.0), 0, highest)
    if kind == "status" and not (value.is_integer() and 400 <= value <= 599):
        raise InvalidFaultError("value must be an HTTP status from 400 to 599 when kind is 'status'")
    count = _number(fields, "count", None, 1, 1e9)
    return {
        "site": _choice(fields, "site", SITES, "*"),
        "target": _choice(fields, "target", TARGETS, "*"),
        "path": _pattern(fields),
        "match": str(fields.get("match", "*")),
        "kind": kind,
        "value": value,
        "count": None if count is None else int(count),
        "seconds": _number(fields, "seconds", None, 0, 1e9),
        "probability": _number(fields, "probability", 1.0, 0, 1),
    }


def _choice(fields: Mapping[str, Any], name: str, allowed: tuple[str, ...], default: str | None) -> str:
    value = fields.get(name, default)
    if value not in allowed:
        raise InvalidFaultError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")
    return str(value)


def _number(fields: Mapping[str, Any], name: str, default: float | None, lowest: float, highest: float) -> Any:
    value = fields.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not lowest <= value <= highest:
        raise InvalidFaultError(f"{name} must be a number from {lowest:g} to {highest:g}; got {value!r}")
    return float(value)


def _pattern(fields: Mapping[str, Any]) -> str | None:
    pattern = fields.get("path")
    if pattern is None:
        return None
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        raise InvalidFaultError(f"path must be a regular expression; {error}") from error
    return str(pattern)
