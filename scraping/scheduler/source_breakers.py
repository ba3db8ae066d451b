"""Whole sources that fail are left alone, and tried again with a few probes.

A task of such a source stays PENDING: it is not hinted, whatever it reads, until the breaker lets it through.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet

from scraping.configuration import policies
from scraping.models import ScrapeTask, TaskState
from scraping.recovery import breakers


def judge_sources(now: datetime) -> int:
    """The step: rows for new sources, and every source judged by what its calls came to."""
    made = breakers.ensure_rows(now=now)
    return made + breakers.evaluate_sources(policies=policies.current(), now=now)


def task_limits(now: datetime) -> dict[int, int]:
    """How many tasks a source may have open, where its breaker has a say in it."""
    limits = breakers.probe_limits(policies.current(), now=now)
    return {source_id: limit for source_id, (limit, _) in limits.items()}


def let_through(due: QuerySet[ScrapeTask], *, hinted_after: datetime, now: datetime) -> QuerySet[ScrapeTask]:
    """Of the due tasks those whose source may be asked: all of a closed one, no more of a half-open one than probes."""
    limits = breakers.probe_limits(policies.current(), now=now)
    if not limits:
        return due
    probes: list[int] = []
    for source_id, (limit, holders) in limits.items():
        probes += _probes(due.filter(source_id=source_id), limit, holders, hinted_after)
    return due.filter(~Q(source_id__in=list(limits)) | Q(pk__in=probes))


def _probes(due: QuerySet[ScrapeTask], limit: int, holders: frozenset[int], hinted_after: datetime) -> list[int]:
    """Tasks that have a permit already (their worker died), and as many others as there are permits to be had."""
    if not limit:
        return []
    waiting = list(due.order_by("priority", "run_at").values_list("pk", "source_id")[: limit + len(holders)])
    if not waiting:
        return []
    hinted = ScrapeTask.objects.filter(state=TaskState.PENDING, hinted_at__gt=hinted_after, source_id=waiting[0][1])
    taken = holders | set(hinted.values_list("pk", flat=True))
    others = [pk for pk, _ in waiting if pk not in holders]
    return [pk for pk, _ in waiting if pk in holders] + others[: max(0, limit - len(taken))]
