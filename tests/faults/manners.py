"""Requests of a system as its sources received them, compared with breakers, intervals and limits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.faults.database import seconds
from tests.faults.system import System

IN_FLIGHT_SECONDS = 2.0  # a request that was sent before the breaker opened may arrive so much later
DATA = frozenset({"page", "live", "feed", "list"})
STATES = {"circuit_opened": "OPEN", "circuit_half_open": "HALF_OPEN", "circuit_closed": "CLOSED"}


@dataclass(frozen=True)
class SourceRequest:
    at: float
    site: str
    target: str
    match: str
    status: int


@dataclass(frozen=True)
class Span:
    """A time span of a breaker in one state."""

    breaker: str
    state: str
    since: float
    until: float

    def concerns(self, request: SourceRequest) -> bool:
        own = (f"{request.site}_source", f"{request.site}_{request.match}_scraper")
        return self.breaker in own


def asked(system: System, *, since: float) -> list[SourceRequest]:
    """Returns the requests that the stadium received since then, in order."""
    requests = [SourceRequest(*one) for one in system.stadium.ask("/control/requests/latest")]
    return sorted((one for one in requests if one.at >= since), key=lambda one: one.at)


def asked_for_data(system: System, *, since: float, until: float) -> int:
    return sum(one.target in DATA and one.at < until for one in asked(system, since=since))


def spans(system: System, *, since: float, until: float) -> list[Span]:
    """Returns the states of the breakers since then, from their logged changes."""
    found: list[Span] = []
    began: dict[str, tuple[str, float]] = {}
    for at, name, state in _changes(system):
        if name in began:
            found.append(Span(name, *began[name], at))
        began[name] = state, at
    found += [Span(name, state, at, until) for name, (state, at) in began.items()]
    return [span for span in found if span.until > since]


def _changes(system: System) -> Iterator[tuple[float, str, str]]:
    changes = []
    for name in system.processes:
        for line in system.log_of(name).read_text(errors="replace").splitlines():
            entry = _entry(line)
            if entry.get("action") in STATES and "breaker" in entry:
                changes.append((seconds(entry["ts"]), str(entry["breaker"]), STATES[entry["action"]]))
    yield from sorted(changes)


def _entry(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def breaker_violations(system: System, *, since: float, until: float, probes: int) -> list[str]:
    """Returns violations of I8: requests through an open breaker, too many through a half-open one."""
    requests = asked(system, since=since)
    found = []
    for span in spans(system, since=since, until=until):
        if span.state == "OPEN":
            found += [
                f"{one.site} was asked for {one.target} {one.match} through {span.breaker}, "
                f"{one.at - span.since:.2f} s after it had opened and {span.until - one.at:.2f} s before its end"
                for one in requests
                if span.concerns(one) and span.since + IN_FLIGHT_SECONDS < one.at < span.until
            ]
        elif span.state == "HALF_OPEN" and span.breaker.endswith("_source"):
            tried = {
                one.match or one.target
                for one in requests
                if span.concerns(one) and span.since < one.at < span.until and one.target in ("page", "live", "list")
            }
            if len(tried) > probes:
                found.append(f"{span.breaker} was half open, and {len(tried)} went through: {sorted(tried)}")
    return found


def interval_violations(system: System, *, since: float, until: float) -> list[str]:
    """Returns matches that were requested more often than the minimum interval of their source allows."""
    sql = "SELECT key, min_interval_seconds FROM scraping_source WHERE min_interval_seconds > 0"
    allowed = {str(key): (until - since) / interval + 1 for key, interval in system.database.rows(sql)}
    polls = Counter((one.site, one.match) for one in asked(system, since=since) if one.target == "live" and one.match)
    return [
        f"{site} {match}: {count} polls, {allowed[site]:.0f} are allowed"
        for (site, match), count in polls.items()
        if count > allowed[site]
    ]


def concurrency_violations(system: System) -> list[str]:
    """Returns sources with more running tasks than their limit."""
    sql = """
        SELECT s.key, s.max_concurrency, COUNT(*) FROM scrape_tasks t
        JOIN scraping_source s ON s.id = t.source_id WHERE t.state = 'EXECUTING' GROUP BY s.key, s.max_concurrency
    """
    return [
        f"{key} is read by {count} tasks, {most} may" for key, most, count in system.database.rows(sql) if count > most
    ]
