"""The one word of /health, by the rules of the specification. Pure: numbers in, word and reasons out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DEGRADED_FROM_ERRORS = 5
DOWN_ABOVE_ERRORS = 10


class Status(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"


@dataclass(frozen=True, kw_only=True)
class Signs:
    """`unwell_scrapers` are those of live matches: one that waits for tomorrow's match may be quiet."""

    matches_to_watch: int
    active_scrapers: int
    workers: int
    errors_last_minute: int
    unwell_scrapers: int = 0
    paused_live_matches: int = 0
    frozen_matches: int = 0
    sources_without_token: int = 0
    sources_over_budget: int = 0


@dataclass(frozen=True)
class Verdict:
    status: Status
    reasons: tuple[str, ...] = ()


def judge(signs: Signs) -> Verdict:
    if down := _why_down(signs):
        return Verdict(Status.DOWN, down)
    if degraded := _why_degraded(signs):
        return Verdict(Status.DEGRADED, degraded)
    return Verdict(Status.HEALTHY)


def _why_down(signs: Signs) -> tuple[str, ...]:
    reasons = []
    if signs.matches_to_watch and not signs.active_scrapers:
        reasons.append(f"no scraper is active for {_live(signs.matches_to_watch)}")
    elif signs.matches_to_watch and not signs.workers:
        reasons.append(f"no worker is alive for {_live(signs.matches_to_watch)}")
    if signs.errors_last_minute > DOWN_ABOVE_ERRORS:
        reasons.append(f"{signs.errors_last_minute} errors in the last minute")
    return tuple(reasons)


def _why_degraded(signs: Signs) -> tuple[str, ...]:
    reasons = []
    if signs.unwell_scrapers:
        are = "is" if signs.unwell_scrapers == 1 else "are"
        reasons.append(f"{signs.unwell_scrapers} of {signs.active_scrapers} scrapers {are} stale or failing")
    if signs.frozen_matches:
        are = "is" if signs.frozen_matches == 1 else "are"
        reasons.append(f"{_live(signs.frozen_matches)} {are} frozen: everything was tried, and nothing has helped")
    if signs.paused_live_matches:
        are = "is" if signs.paused_live_matches == 1 else "are"
        reasons.append(f"{_live(signs.paused_live_matches)} {are} paused")
    if signs.sources_without_token:
        have = "source has" if signs.sources_without_token == 1 else "sources have"
        reasons.append(f"{signs.sources_without_token} {have} no token: only what is public is read")
    if signs.sources_over_budget:
        has = "source has" if signs.sources_over_budget == 1 else "sources have"
        reasons.append(f"{signs.sources_over_budget} {has} used up the traffic of today: only read directly")
    if signs.errors_last_minute >= DEGRADED_FROM_ERRORS:
        reasons.append(f"{signs.errors_last_minute} errors in the last minute")
    return tuple(reasons)


def _live(number: int) -> str:
    return f"{number} live {'match' if number == 1 else 'matches'}"
