"""Sends hints: messages that carry the ids of due tasks to the workers.

A hint may be lost at any time, so a due task is hinted again until a worker has claimed it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import dramatiq
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce
from dramatiq.errors import BrokerConnectionError

from scraping.configuration import policies
from scraping.jobs.lifecycle import OF_JOBS
from scraping.matches import watches
from scraping.models import Importance, JobKind, MatchLifecycle, ScrapeTask, TaskState
from scraping.payloads import Resource
from scraping.scheduler import limits
from scraping.scheduler.due import open_due
from scraping.scheduler.limits import DueTask
from victoryline.lib.hint_broker import QUEUE

logger = logging.getLogger(__name__)

ACTOR = "run_task"
BATCH = 500


def dispatch_due(now: datetime) -> int:
    """Opens the polls that are due and hints them in the same step: most polls are never searched for again."""
    opened = open_due(now, is_hinted=True)
    sent = set(_send([(task.task_id, task.source_id, task.resource) for task in opened]))
    unsent = [task.task_id for task in opened if task.task_id not in sent]
    if unsent:  # the broker did not take them: they become unhinted
        ScrapeTask.objects.filter(pk__in=unsent, state=TaskState.PENDING).update(hinted_at=None)
    return len(opened)


def hint_due_tasks(now: datetime) -> int:
    """Hints the tasks that are due and were not hinted for a while."""
    due = _unhinted(now, BATCH)
    if not due:
        return 0
    sent = _send(due)
    ScrapeTask.objects.filter(pk__in=sent, state=TaskState.PENDING).update(hinted_at=now)
    return len(sent)


def own_hints(limit: int, now: datetime) -> list[dramatiq.Message[None]]:
    """Returns hints for a worker whose broker is unreachable, and marks the tasks so that no other worker gets them."""
    due = _unhinted(now, limit * policies.current().poll_group_size)
    ScrapeTask.objects.filter(pk__in=[task_id for task_id, _, _ in due], state=TaskState.PENDING).update(hinted_at=now)
    return [_hint(ids) for ids in _groups(due)][:limit]


def _unhinted(now: datetime, limit: int) -> list[DueTask]:
    again = now - timedelta(seconds=policies.current().hint_again_seconds)
    due = (
        ScrapeTask.objects.filter(state=TaskState.PENDING, run_at__lte=now)
        .filter(Q(hinted_at__isnull=True) | Q(hinted_at__lte=again))
        .filter(source__is_enabled=True)
        .exclude(source__paused_resources__contains=F("resource"))
        .exclude(ref__match__lifecycle=MatchLifecycle.PAUSED)  # its open task waits until the pause ends
        .exclude(limits.has_open_breaker(now, of="ref__"))
    )
    # By priority, then importance, then age of the data; a match that was never read is as old as its row.
    heard_at = Coalesce("ref__match__last_scraper_update", "ref__match__created_at", "run_at")
    importance = Coalesce("ref__match__importance", Value(Importance.NORMAL.value))
    due = limits.allowed_by_breakers(due, hinted_after=again, now=now).order_by("priority", importance, heard_at, "pk")
    found = list(due.values_list("pk", "source_id", "resource")[:limit])
    if any(resource in OF_JOBS for _, _, resource in found) and watches.memory_shortage(now):
        due = due.exclude(job__kind__in=(JobKind.ROUND, JobKind.URLS))  # they wait in the journal until there is memory
        found = list(due.values_list("pk", "source_id", "resource")[:limit])
    if len(found) == limit:  # tasks of a source without a free place must not hide another's
        others = due.exclude(source_id__in=limits.full_sources(hinted_after=again))
        found = list(others.values_list("pk", "source_id", "resource")[:limit])
    return limits.within_limits(found, hinted_after=again, now=now)


def _groups(due: Sequence[DueTask]) -> Iterator[list[int]]:
    """Puts polls of one source into one hint, as many as a worker's thread reads at once; other tasks go alone."""
    size = policies.current().poll_group_size
    polls: dict[int, list[int]] = {}
    for task_id, source_id, resource in due:
        if resource != Resource.SCORECARD:
            yield [task_id]
            continue
        group = polls.setdefault(source_id, [])
        group.append(task_id)
        if len(group) == size:
            yield polls.pop(source_id)
    yield from polls.values()


def _hint(ids: Sequence[int]) -> dramatiq.Message[None]:
    return dramatiq.Message(queue_name=QUEUE, actor_name=ACTOR, args=tuple(ids), kwargs={}, options={})


def _send(due: Sequence[DueTask]) -> list[int]:
    """Sends hints and returns the tasks that the broker accepted; the others stay due for the next tick."""
    broker = dramatiq.get_broker()
    broker.declare_queue(QUEUE)
    sent: list[int] = []
    try:
        for ids in _groups(due):
            broker.enqueue(_hint(ids))
            sent += ids
    except BrokerConnectionError:  # known to be away and logged once: see victoryline.lib.hint_broker
        pass
    except Exception as error:  # noqa: BLE001 - Redis away, full, loading, frozen: all the same to us
        logger.warning(
            "The broker does not take hints; tasks wait safely in the journal: %s",
            error,
            extra={"action": "broker_away", "waiting": len(due) - len(sent)},
        )
    return sent
