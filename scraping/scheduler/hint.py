"""Tell the workers which tasks are due. Again and again, until somebody takes them: a hint may be lost at any time."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

import dramatiq
from django.db.models import Q
from dramatiq.errors import BrokerConnectionError

from scraping import policies
from scraping.models import MatchLifecycle, ScrapeTask, TaskState
from scraping.scheduler import retry_budget, turns
from scraping.scheduler.due import has_open_breaker
from scraping.scheduler.source_breakers import let_through

logger = logging.getLogger(__name__)

QUEUE = "tasks"
ACTOR = "run_task"
BATCH = 500


def hint_due_tasks(now: datetime) -> int:
    ids = _unhinted(now, BATCH)
    if not ids:
        return 0
    sent = _send(ids)
    ScrapeTask.objects.filter(pk__in=sent, state=TaskState.PENDING).update(hinted_at=now)
    return len(sent)


def own_hints(limit: int, now: datetime) -> list[dramatiq.Message[None]]:
    """For a worker whose broker carries nothing: the hints that it should have got. Other workers leave them to it."""
    ids = _unhinted(now, limit)
    ScrapeTask.objects.filter(pk__in=ids, state=TaskState.PENDING).update(hinted_at=now)
    return [_hint(task_id) for task_id in ids]


def _unhinted(now: datetime, limit: int) -> list[int]:
    again = now - timedelta(seconds=policies.current().hint_again_seconds)
    due = (
        ScrapeTask.objects.filter(state=TaskState.PENDING, run_at__lte=now)
        .filter(Q(hinted_at__isnull=True) | Q(hinted_at__lte=again))
        .filter(source__is_enabled=True)
        .exclude(ref__match__lifecycle=MatchLifecycle.PAUSED)  # its open task waits until the pause ends
        .exclude(has_open_breaker(now, of="ref__"))
    )
    due = let_through(due, hinted_after=again, now=now)
    found = list(due.order_by("priority", "run_at").values_list("pk", "source_id", "resource")[:limit])
    return retry_budget.within(turns.take(found, hinted_after=again), now=now)


def _hint(task_id: int) -> dramatiq.Message[None]:
    return dramatiq.Message(queue_name=QUEUE, actor_name=ACTOR, args=(task_id,), kwargs={}, options={})


def _send(ids: list[int]) -> list[int]:
    """Send what the broker takes. What it does not take stays due and is hinted at the next tick."""
    broker = dramatiq.get_broker()
    broker.declare_queue(QUEUE)
    sent: list[int] = []
    try:
        for task_id in ids:
            broker.enqueue(_hint(task_id))
            sent.append(task_id)
    except BrokerConnectionError:  # known to be away, and told once: see victoryline.lib.hint_broker
        pass
    except Exception as error:  # noqa: BLE001 - Redis away, full, loading, frozen: all the same to us
        logger.warning(
            "The broker does not take hints; tasks wait safely in the journal: %s",
            error,
            extra={"action": "broker_away", "waiting": len(ids) - len(sent)},
        )
    return sent
