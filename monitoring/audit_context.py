"""The state of matches and of the system that an audit entry records before and after an action.

Two queries for any number of matches.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from monitoring.models import Grade, GradeChange
from monitoring.queries import live_ages, percentile, workers_at_work
from scraping.models import Breaker, BreakerState, Match, MatchLifecycle, MatchRef

ENDED = (MatchLifecycle.COMPLETED, MatchLifecycle.ARCHIVED)
MATCH_COLUMNS = (
    *("pk", "lifecycle", "scraper_status", "silence_rung", "consecutive_failure_count"),
    *("last_scraper_update", "created_at"),
)
REF_COLUMNS = ("match_id", "source__key", "captured_at", "polling_interval_seconds", "slowed_until", "called_in_at")


@dataclass(frozen=True, kw_only=True)
class SourceContext:
    """A match at one of its sources."""

    key: str
    read_at: datetime | None = None
    interval: float = 0.0
    is_slowed: bool = False
    is_fallback: bool = False  # polled only because another source is silent


@dataclass(frozen=True, kw_only=True)
class MatchContext:
    """The columns of a match that show whether a recovery has helped it."""

    lifecycle: str = MatchLifecycle.ACTIVE
    scraper_status: str = ""
    rung: int = 0
    error_count: int = 0
    read_at: datetime | None = None
    known_since: datetime | None = None
    sources: tuple[SourceContext, ...] = ()

    @property
    def has_ended(self) -> bool:
        return self.lifecycle in ENDED

    @property
    def is_paused(self) -> bool:
        return self.lifecycle == MatchLifecycle.PAUSED

    def as_document(self, now: datetime) -> dict[str, Any]:
        read = self.read_at or self.known_since
        return {
            "age_s": round(max(0.0, (now - read).total_seconds()), 1) if read else None,
            "rung": self.rung,
            "scraper_status": self.scraper_status,
            "lifecycle": self.lifecycle,
            "error_count": self.error_count,
            "interval_s": min((source.interval for source in self.sources), default=None),
            "sources": [source.key for source in self.sources],
        }


def match_contexts(ids: Collection[int], now: datetime) -> dict[int, MatchContext]:
    """Returns contexts by match id, without matches that are deleted."""
    if not ids:
        return {}
    sources: dict[int, list[SourceContext]] = {}
    refs = MatchRef.objects.filter(match_id__in=ids, is_watched=True).order_by("pk").values_list(*REF_COLUMNS)
    for match_id, key, read_at, interval, slowed_until, called_in_at in refs:
        seen = SourceContext(
            key=key,
            read_at=read_at,
            interval=interval,
            is_slowed=slowed_until is not None and slowed_until > now,
            is_fallback=called_in_at is not None,
        )
        sources.setdefault(match_id, []).append(seen)
    return {
        pk: MatchContext(
            lifecycle=lifecycle,
            scraper_status=status,
            rung=rung,
            error_count=errors,
            read_at=read_at,
            known_since=created_at,
            sources=tuple(sources.get(pk, ())),
        )
        for pk, lifecycle, status, rung, errors, read_at, created_at in Match.objects.filter(pk__in=ids).values_list(
            *MATCH_COLUMNS
        )
    }


@dataclass(frozen=True, kw_only=True)
class SystemContext:
    """The whole system."""

    grade: Grade
    ages: tuple[float, ...] = ()
    workers: int = 0
    open_breakers: int = 0

    def has_read_within(self, seconds: float) -> bool:
        """Returns whether a live match was read in that time, or none is live."""
        return not self.ages or min(self.ages) < seconds

    def as_document(self) -> dict[str, Any]:
        return {
            "grade": self.grade.value,
            "median_s": round(percentile(self.ages, 0.5), 1),
            "p95_s": round(percentile(self.ages, 0.95), 1),
            "max_s": round(max(self.ages, default=0.0), 1),
            "matches": len(self.ages),
            "workers": self.workers,
            "open_breakers": self.open_breakers,
        }


def system_context(now: datetime) -> SystemContext:
    return SystemContext(
        grade=_latest_grade(),
        ages=tuple(live_ages(now)),
        workers=len(workers_at_work(now)),
        open_breakers=Breaker.objects.exclude(state=BreakerState.CLOSED).count(),
    )


def _latest_grade() -> Grade:
    latest = GradeChange.objects.order_by("-pk").values_list("to_grade", flat=True).first()
    return Grade(latest) if latest else Grade.HEALTHY
