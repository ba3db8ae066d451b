"""What comes by the hundred takes turns: a few of a source at a time, so that it never stands before a live poll.

Guards a source as well: no more of its tasks are in work, or on their way to a worker, than it bears, whoever opened
them. The broker's queue knows no priorities; what must not wait there is not sent there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Count, Q

from scraping.configuration import policies
from scraping.models import MatchLifecycle, ScrapeTask, Source, TaskState
from scraping.payloads import Resource

# Whole matches of a job or of a day's end, line-ups of the next three days.
PATIENT = (Resource.FULL, Resource.FIGURES, Resource.LINEUPS)
LANES = 4  # so many of them are read at the same time at one source

Due = tuple[int, int, str]  # task, source, resource


def take(due: Sequence[Due], *, hinted_after: datetime) -> list[Due]:
    """Of the due tasks, those whose turn it is, in their order."""
    if not due:
        return []
    under_way, in_lanes = _under_way(hinted_after)
    limits = _limits()
    chosen = []
    for task in due:
        _, source_id, resource = task
        is_patient = resource in PATIENT
        if under_way[source_id] >= limits.get(source_id, 0) or (is_patient and in_lanes[source_id] >= LANES):
            continue
        under_way[source_id] += 1
        in_lanes[source_id] += is_patient
        chosen.append(task)
    return chosen


def full_sources(*, hinted_after: datetime) -> list[int]:
    under_way, _ = _under_way(hinted_after)
    return [source_id for source_id, limit in _limits().items() if under_way[source_id] >= limit]


def waiting_sources(now: datetime) -> set[int]:
    """The sources where something that takes turns is due, not on its way, and has a lane."""
    due = ScrapeTask.objects.filter(state=TaskState.PENDING, run_at__lte=now, hinted_at=None, resource__in=PATIENT)
    due = due.exclude(ref__match__lifecycle=MatchLifecycle.PAUSED)
    found = set(due.order_by().values_list("source_id", flat=True).distinct())
    if not found:
        return found
    _, in_lanes = _under_way(now - timedelta(seconds=policies.current().hint_again_seconds))
    return {source_id for source_id in found if in_lanes[source_id] < LANES}


def _limits() -> dict[int, int]:
    return dict(Source.objects.filter(is_enabled=True).values_list("pk", "max_concurrency"))


def _under_way(hinted_after: datetime) -> tuple[Counter[int], Counter[int]]:
    """Those in work, or on their way to a worker, by source: all of them, and those that take turns."""
    is_hinted = Q(state=TaskState.PENDING, hinted_at__gt=hinted_after)
    tasks = ScrapeTask.objects.filter(is_hinted | Q(state=TaskState.EXECUTING)).order_by()
    counted = tasks.values_list("source_id").annotate(
        number=Count("pk"), patient=Count("pk", filter=Q(resource__in=PATIENT))
    )
    rows = list(counted)
    return Counter({row[0]: row[1] for row in rows}), Counter({row[0]: row[2] for row in rows})
