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


@dataclass(frozen=True, kw_only=True)
class StatusInputs:
    """`unhealthy_scrapers` counts those of live matches only: a scraper of tomorrow's match may be silent."""

    matches_to_watch: int
    active_scrapers: int
    workers: int
    errors_last_minute: int
    unhealthy_scrapers: int = 0
    paused_live_matches: int = 0
    frozen_matches: int = 0
    sources_without_token: int = 0
    sources_over_budget: int = 0


@dataclass(frozen=True)
class StatusResult:
    status: SystemStatus
    reasons: tuple[str, ...] = ()


def system_status(inputs: StatusInputs) -> StatusResult:
    watched, errors = inputs.matches_to_watch, inputs.errors_last_minute
    live = "1 live match" if watched == 1 else f"{watched} live matches"
    down = []
    if watched and not inputs.active_scrapers:
        down.append(f"no scraper is active for {live}")
    elif watched and not inputs.workers:
        down.append(f"no worker is alive for {live}")
    if errors > DOWN_ABOVE_ERRORS:
        down.append(f"{errors} errors in the last minute")
    if down:
        return StatusResult(SystemStatus.DOWN, tuple(down))
    matches, scrapers = ("live match is", "live matches are"), inputs.active_scrapers
    rules = (
        (inputs.unhealthy_scrapers, (f"of {scrapers} scrapers is", f"of {scrapers} scrapers are"), "stale or failing"),
        (inputs.frozen_matches, matches, "frozen: every recovery step was tried without success"),
        (inputs.paused_live_matches, matches, "paused"),
        (inputs.sources_without_token, ("source has", "sources have"), "no token: only public data is read"),
        (
            inputs.sources_over_budget,
            ("source has", "sources have"),
            "used up today's traffic budget: only direct reads",
        ),
    )
    degraded = [f"{number} {nouns[number != 1]} {state}" for number, nouns, state in rules if number]
    if errors >= DEGRADED_FROM_ERRORS:
        degraded.append(f"{errors} errors in the last minute")
    return StatusResult(SystemStatus.DEGRADED if degraded else SystemStatus.HEALTHY, tuple(degraded))
