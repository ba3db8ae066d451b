"""What comes by the hundred takes turns: a few of a source at a time, so that it never stands before a live poll.

The broker's queue knows no priorities; what must not wait there is not sent there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from django.db.models import Count, Q

from scraping.models import ScrapeTask, TaskState
from scraping.payloads import Resource

# Whole matches of a job or of a day's end, line-ups of the next three days.
PATIENT = (Resource.FULL, Resource.FIGURES, Resource.LINEUPS)
LANES = 4  # so many of them are read at the same time at one source

Due = tuple[int, int, str]  # task, source, resource


def take(due: Sequence[Due], *, hinted_after: datetime) -> list[int]:
    """Of the due tasks, those whose turn it is, in their order."""
    if not any(resource in PATIENT for _, _, resource in due):
        return [task_id for task_id, _, _ in due]
    taken = _under_way(hinted_after)
    chosen = []
    for task_id, source_id, resource in due:
        if resource in PATIENT:
            if taken[source_id] >= LANES:
                continue
            taken[source_id] += 1
        chosen.append(task_id)
    return chosen


def _under_way(hinted_after: datetime) -> Counter[int]:
    """Those in work, or on their way to a worker, by source."""
    is_hinted = Q(state=TaskState.PENDING, hinted_at__gt=hinted_after)
    busy = ScrapeTask.objects.filter(is_hinted | Q(state=TaskState.EXECUTING), resource__in=PATIENT).order_by()
    return Counter(dict(busy.values_list("source_id").annotate(number=Count("pk"))))
