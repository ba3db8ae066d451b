"""Tell the workers which tasks are due. Again and again, until somebody takes them: a hint may be lost at any time."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import dramatiq
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Coalesce
from dramatiq.errors import BrokerConnectionError

from scraping import journal
from scraping.configuration import policies
from scraping.models import Importance, MatchLifecycle, ScrapeTask, TaskState
from scraping.payloads import Resource
from scraping.scheduler import retry_budget, turns
from scraping.scheduler.conditions import has_open_breaker
from scraping.scheduler.source_breakers import let_through
from victoryline.lib.hint_broker import QUEUE

logger = logging.getLogger(__name__)

ACTOR = "run_task"
BATCH = 500


def hint_due_tasks(now: datetime) -> int:
    due = _unhinted(now, BATCH)
    if not due:
        return 0
    sent = _send(due)
    ScrapeTask.objects.filter(pk__in=sent, state=TaskState.PENDING).update(hinted_at=now)
    return len(sent)


def hint_new_tasks(opened: Sequence[journal.Opened]) -> int:
    """Tell of tasks that were opened as hinted. Those that the broker does not take are not: they are due at once."""
    sent = _send([(task.task_id, task.source_id, task.resource) for task in opened])
    unsent = [task.task_id for task in opened if task.task_id not in set(sent)]
    if unsent:
        ScrapeTask.objects.filter(pk__in=unsent, state=TaskState.PENDING).update(hinted_at=None)
    return len(sent)


def own_hints(limit: int, now: datetime) -> list[dramatiq.Message[None]]:
    """For a worker whose broker carries nothing: the hints that it should have got. Other workers leave them to it."""
    due = _unhinted(now, limit * policies.current().poll_group_size)
    ScrapeTask.objects.filter(pk__in=[task_id for task_id, _, _ in due], state=TaskState.PENDING).update(hinted_at=now)
    return [_hint(ids) for ids in _groups(due)][:limit]


def _unhinted(now: datetime, limit: int) -> list[turns.Due]:
    again = now - timedelta(seconds=policies.current().hint_again_seconds)
    due = (
        ScrapeTask.objects.filter(state=TaskState.PENDING, run_at__lte=now)
        .filter(Q(hinted_at__isnull=True) | Q(hinted_at__lte=again))
        .filter(source__is_enabled=True)
        .exclude(ref__match__lifecycle=MatchLifecycle.PAUSED)  # its open task waits until the pause ends
        .exclude(has_open_breaker(now, of="ref__"))
    )
    due = let_through(due, hinted_after=again, now=now)
    due = _most_urgent_first(due)
    found = list(due.values_list("pk", "source_id", "resource")[:limit])
    if len(found) == limit:  # those of a source that bears no more must not hide another's
        others = due.exclude(source_id__in=turns.full_sources(hinted_after=again))
        found = list(others.values_list("pk", "source_id", "resource")[:limit])
    within_budget = set(retry_budget.within([task_id for task_id, _, _ in found], now=now))
    return turns.take([task for task in found if task[0] in within_budget], hinted_after=again)


def _most_urgent_first(due: QuerySet[ScrapeTask]) -> QuerySet[ScrapeTask]:
    """The highest priority, in it what matters most, of that the stalest: what was never read is as old as its find."""
    heard_at = Coalesce("ref__match__last_scraper_update", "ref__match__created_at", "run_at")
    importance = Coalesce("ref__match__importance", Value(Importance.NORMAL.value))
    return due.order_by("priority", importance, heard_at, "pk")


def _groups(due: Sequence[turns.Due]) -> Iterator[list[int]]:
    """Polls of a source go together, as many as a worker's thread has under way at once; anything else goes alone."""
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


def _send(due: Sequence[turns.Due]) -> list[int]:
    """Send what the broker takes. What it does not take stays due and is hinted at the next tick."""
    broker = dramatiq.get_broker()
    broker.declare_queue(QUEUE)
    sent: list[int] = []
    try:
        for ids in _groups(due):
            broker.enqueue(_hint(ids))
            sent += ids
    except BrokerConnectionError:  # known to be away, and told once: see victoryline.lib.hint_broker
        pass
    except Exception as error:  # noqa: BLE001 - Redis away, full, loading, frozen: all the same to us
        logger.warning(
            "The broker does not take hints; tasks wait safely in the journal: %s",
            error,
            extra={"action": "broker_away", "waiting": len(due) - len(sent)},
        )
    return sent
