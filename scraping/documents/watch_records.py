"""The watch over each match: freshness, failures, time and reason of the next poll.

Read from columns that ingest, lifecycle and pacing write, in two queries for any number of matches.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, QuerySet

from scraping.models import Importance, Match, MatchLifecycle, MatchRef, Priority
from scraping.payloads import Status
from scraping.policies.error_slowdown import Slowdown
from scraping.policies.ladder import Rung

TRIED = {
    Rung.HINT: "hinted again",
    Rung.SESSION: "fresh session tried",
    Rung.BROWSER: "fresh browser tried",
    Rung.OTHER_SOURCE: "another source called in",
    Rung.FROZEN: "frozen",
}
MOST = 1000
COPIED = ("title", "status", "phase", "is_importance_fixed", "frozen_at", "total_scrapes", "total_failures")


@dataclass(frozen=True, kw_only=True)
class WatchRecord:
    match_id: int
    keys: tuple[str, ...]  # its names at its sources, the most trusted first
    sources: tuple[str, ...]
    title: str
    status: str
    phase: str
    last_update_at: datetime | None
    age_seconds: float | None  # None: never read
    priority: Priority
    importance: Importance
    is_importance_fixed: bool
    consecutive_failures: int
    errors: float  # more than may come, by all its sources; see policies/error_slowdown.py
    is_paused: bool
    pause_until: datetime | None
    pause_reason: str
    interval_seconds: float | None  # of the source that is polled next
    pace_reason: str
    next_poll_in: float | None  # negative: overdue; None: it is not polled
    rung: Rung
    rung_at: datetime | None
    frozen_at: datetime | None
    total_scrapes: int
    total_failures: int
    created_at: datetime

    def document(self) -> dict[str, Any]:
        return asdict(self) | {
            "priority": self.priority.name.lower(),
            "importance": self.importance.name.lower(),
            "rung": self.rung.name.lower(),
        }


def silence_words(rung: int, rung_at: datetime | None, frozen_at: datetime | None, now: datetime) -> str:
    """Returns the last recovery step of a silent match, and when; empty where it is not silent."""
    if rung == Rung.GROUND:
        return ""
    since = frozen_at if rung == Rung.FROZEN else rung_at
    if since is None:
        return f"silent: {TRIED[Rung(rung)]}"
    seconds = max(0.0, (now - since).total_seconds())
    ago = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    return f"silent: {TRIED[Rung(rung)]} {ago} ago"


def stalest_first(now: datetime, **conditions: Any) -> list[WatchRecord]:
    """Returns the matches that are still read and meet the conditions; those that were never read come first."""
    matches = Match.objects.watched().filter(merged_into=None, **conditions)
    return _records(matches.stalest_first()[:MOST], now)


def live(now: datetime) -> list[WatchRecord]:
    return stalest_first(now, status=Status.LIVE)


def paused(now: datetime) -> list[WatchRecord]:
    """Returns the paused matches, the first to go on first."""
    return _records(Match.objects.watched().paused().filter(merged_into=None).order_by("pause_until", "pk"), now)


def _records(matches: QuerySet[Match], now: datetime) -> list[WatchRecord]:
    refs = MatchRef.objects.select_related("source").defer("payload", "source__metadata", "source__selectors")
    by_weight = refs.order_by("-source__precedence_weight", "pk")
    rows = matches.defer("payload", "provenance").prefetch_related(Prefetch("refs", queryset=by_weight))
    return [_record(match, now) for match in rows]


def _record(match: Match, now: datetime) -> WatchRecord:
    known = match.refs.all()
    asked = [ref for ref in known if ref.is_watched and ref.next_poll_at is not None]
    first = min(asked, key=lambda ref: ref.next_poll_at or now, default=None)
    is_paused = match.lifecycle == MatchLifecycle.PAUSED
    next_at = match.pause_until if is_paused else first.next_poll_at if first else None
    return WatchRecord(
        match_id=match.pk,
        keys=tuple(ref.key for ref in known),
        sources=tuple(ref.source.key for ref in known if ref.is_watched),
        last_update_at=match.last_scraper_update,
        age_seconds=match.age_seconds(now),
        priority=Priority(match.priority),
        importance=Importance(match.importance),
        consecutive_failures=match.consecutive_failure_count,
        errors=sum(Slowdown.of(ref).level_after_decay(now) for ref in known),
        is_paused=is_paused,
        pause_until=match.pause_until if is_paused else None,
        pause_reason=match.pause_reason if is_paused else "",
        interval_seconds=first.polling_interval_seconds if first else None,
        pace_reason=first.pace_reason if first else "",
        next_poll_in=(next_at - now).total_seconds() if next_at else None,
        rung=Rung(match.silence_rung),
        rung_at=match.silence_rung_at,
        created_at=match.created_at,
        **{name: getattr(match, name) for name in COPIED},
    )
