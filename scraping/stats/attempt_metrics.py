"""Counts the attempts of this worker for Prometheus: outcomes, latencies, and how complete readings are.

Guards rates against retention: a sum over rows falls when rows are deleted, and Prometheus takes that for a restart.
These counters only grow until the process ends, so sums over workers are right. The series of a match end with its
watch, and of leagues only so many are distinguished: the number of series is bounded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from datetime import datetime

from prometheus_client import Counter, Gauge, Histogram

from scraping.payloads import STARTERS, Figures, Lineups, Parsed, Payload

MAX_LEAGUES, LEAGUE_LENGTH, OTHER = 50, 40, "other"
SIDES = 2
KEPT_SECONDS = 120.0
OF_PAYLOADS = ["endpoint_family", "league_id"]

SCRAPES = Counter("scraper_scrapes", "Attempts to read something of a source, by outcome.", ["domain", "status"])
FAILURES = Counter(
    "scraper_fail", "Failed attempts; soft: may pass without a change of ours.", ["source", "type", "reason"]
)
ERRORS = Counter("scraper_errors", "Failed attempts at a match.", ["match_id", "error_type"])
UPDATES = Counter("scraper_updates", "Successful polls.", ["match_id"])
# One bucket, as there are series of every match. `scraper_recent_latency_seconds` has the p95.
LATENCY = Histogram(
    "scraper_update_latency_seconds", "From the end of a reading to its commit.", ["match_id"], buckets=(0.5,)
)
NULL_RATE = Gauge(
    "integrity_null_rate", "Share of the wanted fields that the latest reading lacks.", ["match_id", *OF_PAYLOADS]
)
MISSING = Counter(
    "integrity_required_missing", "Wanted fields that a source left out.", ["source", "field", *OF_PAYLOADS]
)
OF_MATCHES = (ERRORS, UPDATES, LATENCY, NULL_RATE)
_matches: dict[str, float] = {}  # with series, and the monotonic time of the last count
_leagues: dict[str, str] = {}  # of a match, as its last score named it


def succeeded(source: str) -> None:
    SCRAPES.labels(source, "success").inc()


def failed(source: str, *, match_key: str, error_type: str, is_soft: bool, reason: str) -> None:
    SCRAPES.labels(source, "failure").inc()
    FAILURES.labels(source, "soft" if is_soft else "hard", reason).inc()
    if match_key:
        _matches[match_key] = time.monotonic()
        ERRORS.labels(match_key, error_type).inc()


def updated(match_key: str, captured_at: datetime, now: datetime) -> None:
    """Counts a poll that was committed."""
    _matches[match_key] = time.monotonic()
    UPDATES.labels(match_key).inc()
    LATENCY.labels(match_key).observe(max(0.0, (now - captured_at).total_seconds()))


def completeness(source: str, read: Parsed) -> None:
    """Records how complete a reading is: a score, the line-ups with their formations, or the players' ratings."""
    key = f"{source}_{read.source_event_id}"
    _matches[key] = time.monotonic()
    if isinstance(read, Payload):
        _leagues[key] = _known(str(read.state.metadata.get("series") or ""))
    league = _leagues.get(key, "")
    for family, rate, missing in _rates(read):
        NULL_RATE.labels(key, family, league).set(rate)
        for name in missing:
            MISSING.labels(source, name, family, league).inc()


def _known(league: str) -> str:
    known = set(_leagues.values())
    league = league[:LEAGUE_LENGTH]
    return league if league in known or len(known) < MAX_LEAGUES else OTHER


def _rates(read: Parsed) -> Iterator[tuple[str, float, list[str]]]:
    """Yields endpoint family, null rate and missing fields; nothing for what the source does not have yet."""
    if isinstance(read, Payload):
        yield "score", read.integrity.null_field_rate, list(read.integrity.missing_fields)
    elif isinstance(read, Lineups) and any(side.starters or side.is_confirmed for side in read.lineups):
        starters = [player for side in read.lineups for player in side.starters]
        placed = sum(bool(player.position) for player in starters)
        short = [f"{side.side}.starters" for side in read.lineups if side.is_xi_missing]
        yield "lineups", max(0.0, 1 - (placed or len(starters)) / (STARTERS * SIDES)), short
        if placed:  # football: cricketers have no positions, and no formation
            formless = [f"{side.side}.formation" for side in read.lineups if not side.formation]
            yield "formation", len(formless) / SIDES, formless
    elif isinstance(read, Figures):
        played = [one.values for one in read.figures if one.role == "rating" and one.values.get("minutes")]
        unrated = sum("rating" not in values for values in played)
        if played:
            yield "ratings", unrated / len(played), ["rating"] * bool(unrated)


def end_series(watched: Callable[[], Collection[str]]) -> None:
    """Ends the series of matches that were not read for a while and are not watched; their last values were scraped."""
    before = time.monotonic() - KEPT_SECONDS
    quiet = [key for key, counted_at in _matches.copy().items() if counted_at < before]
    for key in set(quiet).difference(watched()) if quiet else ():
        _matches.pop(key, None)
        _leagues.pop(key, None)
        for metric in OF_MATCHES:
            metric.remove_by_labels({"match_id": key})
