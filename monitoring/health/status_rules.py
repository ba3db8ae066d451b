"""The status of GET /health by the rules of the specification. Pure: numbers in, status and reasons out."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

DEGRADED_FROM_ERRORS = 5
DOWN_ABOVE_ERRORS = 10
DOWN_ABOVE_SHARE = 0.05  # of the minute's polls: with many matches ten errors are few
NO_NAMES: Mapping[str, str] = MappingProxyType({})


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
    polls_last_minute: int = 0,
    unhealthy_scrapers: int = 0,
    paused_live_matches: int = 0,
    frozen_matches: int = 0,
    sources_without_token: int = 0,
    sources_over_budget: int = 0,
    names: Mapping[str, str] = NO_NAMES,
) -> StatusResult:
    """Counts scrapers of live matches only: a scraper of tomorrow's match may be silent, and jobs have their own state.

    `polls_last_minute`: all of them, failed ones included. `names`: the match that a figure is about, by its parameter.
    """
    watched, errors, scrapers = matches_to_watch, errors_last_minute, active_scrapers
    live = "1 live match" if watched == 1 else f"{watched} live matches"
    about = {name: f": {match}" for name, match in names.items() if match}
    errors_text = f"{errors} errors in the last minute{about.get('errors_last_minute', '')}"
    down = []
    if watched and not scrapers:
        down.append(f"no scraper is active for {live}")
    elif watched and not workers:
        down.append(f"no worker is alive for {live}")
    if errors > DOWN_ABOVE_ERRORS and errors > DOWN_ABOVE_SHARE * polls_last_minute:
        down.append(errors_text)
    if down:
        return StatusResult(SystemStatus.DOWN, tuple(down))
    matches, sources = ("live match is", "live matches are"), ("source has", "sources have")
    of_scrapers = (f"of {scrapers} scrapers is", f"of {scrapers} scrapers are")
    rules = (
        ("unhealthy_scrapers", unhealthy_scrapers, of_scrapers, "stale or failing"),
        ("frozen_matches", frozen_matches, matches, "frozen, every recovery step was tried without success"),
        ("paused_live_matches", paused_live_matches, matches, "paused"),
        ("", sources_without_token, sources, "no token: only public data is read"),
        ("", sources_over_budget, sources, "used up today's traffic budget: only direct reads"),
    )
    degraded = [
        f"{number} {nouns[number != 1]} {state}{about.get(name, '')}" for name, number, nouns, state in rules if number
    ]
    if errors >= DEGRADED_FROM_ERRORS:
        degraded.append(errors_text)
    return StatusResult(SystemStatus.DEGRADED if degraded else SystemStatus.HEALTHY, tuple(degraded))
