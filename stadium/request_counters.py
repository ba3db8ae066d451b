"""Counts requests to the sites since the start or the last reset."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stadium.matches.simulation import iso

MAX_RECORDS = 20_000


class RequestRecord(NamedTuple):
    """One request; status 0 if the connection was cut."""

    at: float
    site: str
    target: str
    match: str
    status: int


@dataclass
class RequestCounters:
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_match: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # by site, match and target
    statuses: Counter[int] = field(default_factory=Counter)
    concurrent: Counter[str] = field(default_factory=Counter)
    max_concurrent: Counter[str] = field(default_factory=Counter)
    last_at: dict[str, float] = field(default_factory=dict)
    latest: deque[RequestRecord] = field(
        default_factory=lambda: deque(maxlen=MAX_RECORDS)
    )  # in the order of their responses

    def enter(self, site: str, target: str, wall: float, match: str = "") -> None:
        self.requests[site, target] += 1
        if match:
            self.by_match[site, match, target] += 1
        self.last_at[site] = wall
        self.concurrent[site] += 1
        self.max_concurrent[site] = max(self.max_concurrent[site], self.concurrent[site])

    def leave(self, record: RequestRecord) -> None:
        self.concurrent[record.site] -= 1
        self.statuses[record.status] += 1
        self.latest.append(record)

    def reset(self) -> None:
        """Open requests stay counted as concurrent."""
        self.requests.clear()
        self.by_match.clear()
        self.statuses.clear()
        self.last_at.clear()
        self.latest.clear()
        self.max_concurrent = Counter(self.concurrent)

    def as_json(self) -> dict[str, Any]:
        sites: dict[str, Any] = {}
        for (site, target), count in sorted(self.requests.items()):
            entry = sites.setdefault(site, {"total": 0, "targets": {}, "matches": {}})
            entry["total"] += count
            entry["targets"][target] = count
        for (site, match, target), count in sorted(self.by_match.items()):
            sites[site]["matches"].setdefault(match, {})[target] = count
        for site, entry in sites.items():
            entry["concurrent"] = self.concurrent[site]
            entry["max_concurrent"] = self.max_concurrent[site]
            entry["last_request_at"] = iso(self.last_at[site]) if site in self.last_at else None
        return {
            "total": sum(self.requests.values()),
            "sites": sites,
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
        }
