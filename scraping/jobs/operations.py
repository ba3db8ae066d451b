"""Operations on many rows: begins, works off and aborts them. Sole writer of BulkOperation.

Guards against an action on 100,000 rows that locks the database, is lost with its process, or cannot be stopped: the
ids are frozen when it begins; each batch is one short transaction with its rows, counters and position, so that
a killed process leaves no row twice and none out; an abort is seen by the next batch.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from scraping.models import OPEN_OPERATIONS, BulkOperation, OperationIds, OperationState
from scraping.signals import operation_changed
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.crash import crash_point
from victoryline.lib.operator_actions import OperatorCall, find_action
from victoryline.lib.operators import OperationRefused

logger = logging.getLogger(__name__)

MOST_ROWS = 200_000
IDS_IN_A_PART = 500
ROWS_IN_A_BATCH = 25  # one transaction: on SQLite every other writer waits for it
STEP_SECONDS = 0.2
KEPT_REFUSALS = 20


def begin(
    table: str,
    action: str,
    ids: Sequence[Any],
    *,
    filter_text: str,
    values: Mapping[str, Any],
    actor: str,
    now: datetime,
) -> BulkOperation:
    """Writes an operation with its frozen ids. `values`: the form's fields, among them the reason."""
    if not ids:
        raise OperationRefused("no row matches: there is nothing to do")
    if len(ids) > MOST_ROWS:
        raise OperationRefused(f"more than {MOST_ROWS:,} rows match: narrow the filter")
    ids = sorted(ids)  # matches are locked in this order by every other writer
    with transaction.atomic():
        operation = BulkOperation.objects.create(
            table=table,
            action=action,
            label=find_action(table, action).label,
            filter=filter_text[:500],
            values=dict(values),
            reason=str(values.get("reason", ""))[:200],
            actor=actor[:150],
            total=len(ids),
            created_at=now,
        )
        parts = range(0, len(ids), IDS_IN_A_PART)
        OperationIds.objects.bulk_create(
            OperationIds(operation=operation, first=first, ids=ids[first : first + IDS_IN_A_PART]) for first in parts
        )
        _announce(operation, "bulk_started", actor)
    return operation


def abort(pk: int, *, actor: str, now: datetime) -> None:
    """Ends an operation after its current batch. What was applied stays applied."""
    with transaction.atomic():
        operation = BulkOperation.objects.select_for_update().get(pk=pk)
        if operation.state not in OPEN_OPERATIONS:
            raise OperationRefused(f"it is {operation.state}: there is nothing to abort")
        operation.error = f"aborted by {actor}"
        _end(operation, OperationState.ABORTED, now, actor=actor)


def work_off(now: datetime) -> int:
    """Scheduler step: works at the oldest open operation for a moment; returns how many rows were tried."""
    oldest = BulkOperation.objects.filter(state__in=OPEN_OPERATIONS).order_by("pk").values_list("pk", flat=True).first()
    return work(oldest, seconds=STEP_SECONDS) if oldest else 0


def work(pk: int, *, seconds: float) -> int:
    """Works at an operation until it has ended, or for so long; returns how many rows were tried."""
    tried, end = 0, time.monotonic() + seconds
    while number := _try_batch(pk):
        tried += number
        if time.monotonic() >= end:
            break
    return tried


def applied_ids(pk: int) -> list[Any]:
    """Returns the ids that an operation was applied to."""
    parts = OperationIds.objects.filter(operation=pk).order_by("first").values_list("applied", flat=True)
    return [each for part in parts for each in part]


def _try_batch(pk: int) -> int:
    try:
        return _batch(pk)
    except DATABASE_AWAY:
        raise
    except Exception as error:  # a bug of the action: the batch is undone, and would fail again for ever
        logger.exception("Operation %d failed", pk, extra={"action": "operation_failed"})
        with transaction.atomic():
            operation = BulkOperation.objects.select_for_update().get(pk=pk)
            operation.error = f"{type(error).__name__}: {error}"[:500]
            _end(operation, OperationState.FAILED, timezone.now())
        return 0


def _batch(pk: int) -> int:
    """Applies the action to the next rows; returns how many. Everything of a batch is one transaction."""
    with transaction.atomic():
        operation = BulkOperation.objects.select_for_update().filter(pk=pk, state__in=OPEN_OPERATIONS).first()
        if operation is None:
            return 0
        now, before = timezone.now(), operation.position
        part = operation.parts.get(first=before - before % IDS_IN_A_PART)
        ids = part.ids[before - part.first : before - part.first + ROWS_IN_A_BATCH]
        result = find_action(operation.table, operation.action).run(
            ids, OperatorCall(operation.actor, now, operation.values)
        )
        crash_point("operation.applied")
        part.applied = [*part.applied, *result.ids]
        part.save(update_fields=("applied",))
        operation.position += len(ids)
        operation.applied += result.applied
        operation.refused += len(result.refusals)
        operation.refusals = [*operation.refusals, *result.refusals][:KEPT_REFUSALS]
        operation.started_at = operation.started_at or now
        operation.state = OperationState.RUNNING
        if operation.position >= operation.total:
            _end(operation, OperationState.DONE, now)
        else:
            operation.save()
    crash_point("operation.committed")
    return len(ids)


def _end(operation: BulkOperation, state: OperationState, now: datetime, *, actor: str = "") -> None:
    operation.state, operation.finished_at = state, now
    operation.save()
    _announce(operation, f"bulk_{state.lower()}", actor or operation.actor)


def _announce(operation: BulkOperation, event: str, actor: str) -> None:
    operation_changed.send_robust(
        sender=BulkOperation,
        event=event,
        target=f"{operation.label}: {operation.total:,} rows ({operation.filter or 'no filter'})",
        operation_id=operation.pk,
        applied=operation.applied,
        refused=operation.refused,
        reason=operation.error or operation.reason,
        actor=actor,
    )
