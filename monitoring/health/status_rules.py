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
    if down := _reasons_for_down(inputs):
        return StatusResult(SystemStatus.DOWN, down)
    if degraded := _reasons_for_degraded(inputs):
        return StatusResult(SystemStatus.DEGRADED, degraded)
    return StatusResult(SystemStatus.HEALTHY)


def _reasons_for_down(inputs: StatusInputs) -> tuple[str, ...]:
    reasons = []
    if inputs.matches_to_watch and not inputs.active_scrapers:
        reasons.append(f"no scraper is active for {_live(inputs.matches_to_watch)}")
    elif inputs.matches_to_watch and not inputs.workers:
        reasons.append(f"no worker is alive for {_live(inputs.matches_to_watch)}")
    if inputs.errors_last_minute > DOWN_ABOVE_ERRORS:
        reasons.append(f"{inputs.errors_last_minute} errors in the last minute")
    return tuple(reasons)


def _reasons_for_degraded(inputs: StatusInputs) -> tuple[str, ...]:
    reasons = []
    if inputs.unhealthy_scrapers:
        are = "is" if inputs.unhealthy_scrapers == 1 else "are"
        reasons.append(f"{inputs.unhealthy_scrapers} of {inputs.active_scrapers} scrapers {are} stale or failing")
    if inputs.frozen_matches:
        are = "is" if inputs.frozen_matches == 1 else "are"
        reasons.append(f"{_live(inputs.frozen_matches)} {are} frozen: every recovery step was tried without success")
    if inputs.paused_live_matches:
        are = "is" if inputs.paused_live_matches == 1 else "are"
        reasons.append(f"{_live(inputs.paused_live_matches)} {are} paused")
    if inputs.sources_without_token:
        have = "source has" if inputs.sources_without_token == 1 else "sources have"
        reasons.append(f"{inputs.sources_without_token} {have} no token: only public data is read")
    if inputs.sources_over_budget:
        has = "source has" if inputs.sources_over_budget == 1 else "sources have"
        reasons.append(f"{inputs.sources_over_budget} {has} used up today's traffic budget: only direct reads")
    if inputs.errors_last_minute >= DEGRADED_FROM_ERRORS:
        reasons.append(f"{inputs.errors_last_minute} errors in the last minute")
    return tuple(reasons)


def _live(number: int) -> str:
    return f"{number} live {'match' if number == 1 else 'matches'}"
