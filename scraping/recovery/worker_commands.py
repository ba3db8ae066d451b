"""What workers are asked to do to themselves: a fresh session, a fresh browser. Sole writer of orders.

An order is a row, so that it outlives whoever gave it; the worker's heartbeat takes it (see heartbeat). One that nobody
took in time, for its worker is gone, is closed by the scheduler. Its end is announced once, whoever saw it first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction

from scraping.models import OrderKind, Worker, WorkerOrder
from scraping.signals import order_done

UNTAKEN_AFTER = timedelta(seconds=60)


def give(
    kind: OrderKind, *, worker_id: str, reason: str, actor: str, now: datetime, source_key: str = ""
) -> WorkerOrder | None:
    """None where the same is asked of the worker already, and not done yet."""
    try:
        with transaction.atomic():
            return WorkerOrder.objects.create(
                worker_id=worker_id,
                kind=kind,
                source_key=source_key,
                reason=reason[:300],
                actor=actor[:150],
                asked_at=now,
            )
    except IntegrityError:
        return None


def workers_at_work(now: datetime) -> list[str]:
    return list(Worker.objects.at_work(now).order_by("worker_id").values_list("worker_id", flat=True))


@dataclass(frozen=True)
class Asked:
    workers: list[str]  # whose browsers are replaced
    orders: list[int]  # given for it; a worker that was asked already gets none


def recycle(worker_id: str, *, reason: str, actor: str, now: datetime) -> Asked:
    """Ask the workers that are at work, or one of them, for a fresh browser. Visits under way are finished first."""
    at_work = [name for name in workers_at_work(now) if worker_id in ("", name)]
    given = [
        order.pk
        for name in at_work
        if (order := give(OrderKind.RECYCLE_BROWSER, worker_id=name, reason=reason, actor=actor, now=now))
    ]
    return Asked(at_work, given)


def take(worker_id: str, *, now: datetime) -> list[WorkerOrder]:
    """Those that this worker has not begun yet; each is given out once."""
    waiting = WorkerOrder.objects.filter(worker_id=worker_id, taken_at__isnull=True, done_at__isnull=True)
    taken = []
    for order in waiting.order_by("pk"):
        if WorkerOrder.objects.filter(pk=order.pk, taken_at__isnull=True, done_at__isnull=True).update(taken_at=now):
            order.taken_at = now
            taken.append(order)
    return taken


def done(order_ids: Iterable[int], *, outcome: str, now: datetime) -> int:
    return WorkerOrder.objects.filter(pk__in=list(order_ids), done_at__isnull=True).update(
        done_at=now, outcome=outcome[:200]
    )


def finish(order: WorkerOrder, *, outcome: str, now: datetime, has_failed: bool = False) -> bool:
    """`has_failed`: what was asked for did not come about. False where its end is known already."""
    if not done([order.pk], outcome=outcome, now=now):
        return False
    order_done.send_robust(
        sender=WorkerOrder,
        order_id=order.pk,
        worker_id=order.worker_id,
        kind=order.kind,
        actor=order.actor,
        reason=order.reason,
        outcome=outcome,
        has_failed=has_failed,
        seconds=(now - order.asked_at).total_seconds(),
        now=now,
    )
    return True


def close_untaken(now: datetime) -> int:
    """Scheduler step. An order whose worker is gone must not keep the next one from being given."""
    late = WorkerOrder.objects.filter(done_at__isnull=True, asked_at__lt=now - UNTAKEN_AFTER)
    return sum(finish(order, outcome="nobody did it in time", now=now, has_failed=True) for order in late)
