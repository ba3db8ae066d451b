"""Limits of each source that the scheduler keeps before it opens or hints a task.

Guards a source against us. Four limits, each a filter over due tasks: an open breaker stops everything; a half-open
one lets a few probes through; no more tasks are under way than the source's concurrency, and few of them are background
work; on average no more than one task begins in the source's minimum interval, and never more at once than its burst.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.db.models import Count, Q, QuerySet

from scraping.configuration import policies
from scraping.models import (
    POLLED_LIFECYCLES,
    BreakerState,
    MatchLifecycle,
    MatchRef,
    ScrapeTask,
    Source,
    TaskState,
)
from scraping.payloads import Resource
from scraping.recovery import breakers

# Opened by the hundred: whole matches of a job or of a day's end, line-ups of the next three days. The broker's queue
# has no priorities, so they wait in the journal and only a few of a source are hinted at a time.
BACKGROUND = (Resource.FULL, Resource.FIGURES, Resource.LINEUPS)
BACKGROUND_AT_ONCE = 4  # of one source
CANARY_DUE_WITHIN = timedelta(minutes=1)

DueTask = tuple[int, int, str]  # task, source, resource


# Spacing


class Spacing:
    """Counts the tasks that begin at each source, as a leaky bucket that empties by one in each minimum interval.

    In the memory of the scheduler that leads; a new one begins with empty buckets.
    """

    def __init__(self) -> None:
        self._levels: dict[int, tuple[float, datetime]] = {}  # by source

    def room(self, source_id: int, interval_seconds: float, burst: int, *, now: datetime) -> int:
        """Returns how many tasks may begin at the source now."""
        level, at = self._levels.get(source_id, (0.0, now))
        emptied = max((now - at).total_seconds(), 0.0) / interval_seconds if interval_seconds else level
        level = max(level - emptied, 0.0)
        self._levels[source_id] = level, now
        return max(0, int(burst - level + 1e-6))

    def begin(self, source_id: int, number: int = 1) -> None:
        """Counts tasks that begin; `room` was called before."""
        level, at = self._levels[source_id]
        self._levels[source_id] = level + number, at

    def clear(self) -> None:
        self._levels.clear()


spacing = Spacing()


# Breakers


def has_open_breaker(now: datetime, *, of: str = "") -> Q:
    """Returns the condition on refs; `of` is the way to them from another table ("ref__")."""
    return Q(**{f"{of}breaker__state": BreakerState.OPEN, f"{of}breaker__open_until__gt": now})


def breaker_limits(now: datetime) -> dict[int, int]:
    """Returns how many tasks a source may have open, for sources whose breaker is not closed."""
    limits = breakers.probe_limits(policies.current(), now=now)
    return {source_id: limit for source_id, (limit, _) in limits.items()}


def canary_refs(source_ids: Iterable[int], now: datetime) -> dict[int, set[int]]:
    """Returns the canary matches (refs) of sources whose breaker is half open: only these probe the source (FS-12).

    A source is left out where no canary could be read soon, because then nothing would ever close its breaker.
    """
    named = Source.objects.filter(pk__in=source_ids).exclude(canary_matches=[])
    readable = MatchRef.objects.filter(is_watched=True, match__lifecycle__in=POLLED_LIFECYCLES)
    readable = readable.filter(next_poll_at__lte=now + CANARY_DUE_WITHIN).exclude(has_open_breaker(now))
    found: dict[int, set[int]] = {}
    for source_id, keys in named.values_list("pk", "canary_matches"):
        refs = readable.filter(source_id=source_id, source_event_id__in=keys)
        if ids := set(refs.values_list("pk", flat=True)):
            found[source_id] = ids
    return found


def allowed_by_breakers(due: QuerySet[ScrapeTask], *, hinted_after: datetime, now: datetime) -> QuerySet[ScrapeTask]:
    """Returns the due tasks of sources with a closed breaker, and the probes of half-open ones."""
    limits = breakers.probe_limits(policies.current(), now=now)
    if not limits:
        return due
    probes: list[int] = []
    canaries = canary_refs(limits, now)
    for source_id, (limit, holders) in limits.items():
        if not limit:
            continue
        of_source = due.filter(source_id=source_id).order_by("priority", "run_at")
        if source_id in canaries:
            of_source = of_source.filter(Q(ref__in=canaries[source_id]) | Q(pk__in=holders))
        waiting = list(of_source.values_list("pk", flat=True)[: limit + len(holders)])
        hinted = ScrapeTask.objects.filter(state=TaskState.PENDING, hinted_at__gt=hinted_after, source_id=source_id)
        taken = holders | set(hinted.values_list("pk", flat=True))
        # Tasks that hold a permit already (their worker died), and as many others as permits are left.
        probes += [pk for pk in waiting if pk in holders]
        probes += [pk for pk in waiting if pk not in holders][: max(0, limit - len(taken))]
    return due.filter(~Q(source_id__in=list(limits)) | Q(pk__in=probes))


# Concurrency


def within_limits(due: Sequence[DueTask], *, hinted_after: datetime, now: datetime) -> list[DueTask]:
    """Returns the due tasks, in their order, for which their source has a free place; counts them as begun."""
    if not due:
        return []
    under_way, in_background = _under_way(hinted_after)
    most, room = _concurrency(), _room(now)
    chosen = []
    for task in due:
        _, source_id, resource = task
        is_background = resource in BACKGROUND
        if under_way[source_id] >= most.get(source_id, 0) or room[source_id] <= 0:
            continue
        if is_background and in_background[source_id] >= BACKGROUND_AT_ONCE:
            continue
        spacing.begin(source_id)
        room[source_id] -= 1
        under_way[source_id] += 1
        in_background[source_id] += is_background
        chosen.append(task)
    return chosen


def full_sources(*, hinted_after: datetime) -> list[int]:
    under_way, _ = _under_way(hinted_after)
    return [source_id for source_id, most in _concurrency().items() if under_way[source_id] >= most]


def sources_with_background_work(now: datetime) -> set[int]:
    """Returns the sources at which a background task is due, not hinted, and may be hinted now."""
    due = ScrapeTask.objects.filter(state=TaskState.PENDING, run_at__lte=now, hinted_at=None, resource__in=BACKGROUND)
    due = due.exclude(ref__match__lifecycle=MatchLifecycle.PAUSED)
    found = set(due.order_by().values_list("source_id", flat=True).distinct())
    if not found:
        return found
    _, in_background = _under_way(now - timedelta(seconds=policies.current().hint_again_seconds))
    return {source_id for source_id in found if in_background[source_id] < BACKGROUND_AT_ONCE}


def _room(now: datetime) -> dict[int, int]:
    rows = Source.objects.values_list("pk", "min_interval_seconds", "burst_allowance")
    return {source_id: spacing.room(source_id, seconds, burst, now=now) for source_id, seconds, burst in rows}


def _concurrency() -> dict[int, int]:
    return dict(Source.objects.filter(is_enabled=True).values_list("pk", "max_concurrency"))


def _under_way(hinted_after: datetime) -> tuple[Counter[int], Counter[int]]:
    """Returns how many tasks are executing or hinted, by source: all of them, and the background ones."""
    is_hinted = Q(state=TaskState.PENDING, hinted_at__gt=hinted_after)
    tasks = ScrapeTask.objects.filter(is_hinted | Q(state=TaskState.EXECUTING)).order_by()
    counted = tasks.values_list("source_id").annotate(
        number=Count("pk"), background=Count("pk", filter=Q(resource__in=BACKGROUND))
    )
    rows = list(counted)
    return Counter({row[0]: row[1] for row in rows}), Counter({row[0]: row[2] for row in rows})
