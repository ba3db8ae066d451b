"""The status of GET /health by the rules of the specification. Pure: numbers in, status and reasons out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DEGRADED_FROM_ERRORS = 5
DOWN_ABOVE_ERRORS = 10


class SystemStatus(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"


@dataclass(frozen=True)
class StatusResult:
    status: SystemStatus
    reasons: tuple[str, ...] = ()


def system_status(
    *,
    matches_to_watch: int,
    active_scrapers: int,
    workers: int,
    errors_last_minute: int,
    unhealthy_scrapers: int = 0,
    paused_live_matches: int = 0,
    frozen_matches: int = 0,
    sources_without_token: int = 0,
    sources_over_budget: int = 0,
) -> StatusResult:
    """Counts scrapers of live matches only: a scraper of tomorrow's match may be silent."""
    watched, errors, scrapers = matches_to_watch, errors_last_minute, active_scrapers
    live = "1 live match" if watched == 1 else f"{watched} live matches"
    down = []
    if watched and not scrapers:
        down.append(f"no scraper is active for {live}")
    elif watched and not workers:
        down.append(f"no worker is alive for {live}")
    if errors > DOWN_ABOVE_ERRORS:
        down.append(f"{errors} errors in the last minute")
    if down:
        return StatusResult(SystemStatus.DOWN, tuple(down))
    matches, sources = ("live match is", "live matches are"), ("source has", "sources have")
    rules = (
        (unhealthy_scrapers, (f"of {scrapers} scrapers is", f"of {scrapers} scrapers are"), "stale or failing"),
        (frozen_matches, matches, "frozen: every recovery step was tried without success"),
        (paused_live_matches, matches, "paused"),
        (sources_without_token, sources, "no token: only public data is read"),
        (sources_over_budget, sources, "used up today's traffic budget: only direct reads"),
    )
    degraded = [f"{number} {nouns[number != 1]} {state}" for number, nouns, state in rules if number]
    if errors >= DEGRADED_FROM_ERRORS:
        degraded.append(f"{errors} errors in the last minute")
    return StatusResult(SystemStatus.DEGRADED if degraded else SystemStatus.HEALTHY, tuple(degraded))
