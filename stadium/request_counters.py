"""Counts requests to the sites since the start or the last reset."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
    requests: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # by site, match (may be "") and target
    statuses: Counter[int] = field(default_factory=Counter)
    concurrent: Counter[str] = field(default_factory=Counter)
    latest: deque[RequestRecord] = field(
        default_factory=lambda: deque(maxlen=MAX_RECORDS)
    )  # in the order of their responses

    def enter(self, site: str, target: str, match: str) -> None:
        self.requests[site, match, target] += 1
        self.concurrent[site] += 1

    def leave(self, record: RequestRecord) -> None:
        self.concurrent[record.site] -= 1
        self.statuses[record.status] += 1
        self.latest.append(record)

    def reset(self) -> None:
        """Open requests stay counted as concurrent."""
        self.requests.clear()
        self.statuses.clear()
        self.latest.clear()

    def as_json(self) -> dict[str, Any]:
        sites: dict[str, Any] = {}
        for (site, match, target), count in sorted(self.requests.items()):
            new = {"total": 0, "targets": Counter(), "matches": {}, "concurrent": self.concurrent[site]}
            entry = sites.setdefault(site, new)
            entry["total"] += count
            entry["targets"][target] += count
            if match:
                entry["matches"].setdefault(match, {})[target] = count
        return {
            "total": sum(self.requests.values()),
            "sites": sites,
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
        }
