"""One breaker row: read as a view, changed by compare-and-swap; every state change is logged and signalled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F

from scraping.configuration import policies
from scraping.models import Breaker, MatchRef, Source
from scraping.policies.breaker import CLOSED, HALF_OPEN, OPEN, BreakerView
from scraping.signals import breaker_closed, breaker_half_opened, breaker_opened

logger = logging.getLogger(__name__)

SWAP_TRIES = 50
REASON_LENGTH = 300
SIGNALS = {OPEN: breaker_opened, HALF_OPEN: breaker_half_opened, CLOSED: breaker_closed}
EVENTS = {OPEN: "circuit_opened", HALF_OPEN: "circuit_half_open", CLOSED: "circuit_closed"}

Change = Callable[[BreakerView], BreakerView]


@dataclass(frozen=True, kw_only=True)
class Operator:
    """The operator who overrides the breaker, with the reason; empty for automatic changes."""

    name: str = ""
    reason: str = ""


AUTOMATIC = Operator()


def view_of(row: Breaker) -> BreakerView:
    return BreakerView(
        state=row.state,
        failure_count=row.failure_count,
        success_count=row.success_count,
        open_until=row.open_until,
        probes={task: datetime.fromisoformat(until) for task, until in row.probes.items()},
        forced=row.forced,
        forced_until=row.forced_until,
        reason=row.reason,
    )


def row_of_ref(ref: MatchRef) -> Breaker:
    row, _ = Breaker.objects.get_or_create(
        ref=ref, defaults={"name": f"{ref.key}_scraper", "last_state_change": ref.created_at}
    )
    return row


def row_of_source(source: Source, *, now: datetime) -> Breaker:
    row, _ = Breaker.objects.get_or_create(
        source=source, defaults={"name": f"{source.key}_source", "last_state_change": now}
    )
    return row


def fetch(pk: int) -> Breaker:
    return Breaker.objects.get(pk=pk)


def swap(
    row: Breaker,
    change: Change,
    *,
    now: datetime,
    counted: Mapping[str, Any] | None = None,
    operator: Operator = AUTOMATIC,
) -> BreakerView:
    """Applies a change to the current row, together with counter increments, and updates `row` in place."""
    for _ in range(SWAP_TRIES):
        seen = fetch(row.pk)
        before = view_of(seen)
        after = change(before)
        if after == before and not counted:
            _copy_to(row, after)
            return after
        columns = {**_columns(before, after, now, operator), **(counted or {})}
        if Breaker.objects.filter(pk=seen.pk, version=seen.version).update(**columns, version=F("version") + 1):
            _copy_to(row, after)
            _announce(seen, before, after, operator)
            return after
    raise RuntimeError(f"breaker {row.name} changed {SWAP_TRIES} times while it was being updated")


def _columns(before: BreakerView, after: BreakerView, now: datetime, operator: Operator) -> dict[str, Any]:
    columns: dict[str, Any] = _plain(after)
    if (after.state, after.forced) != (before.state, before.forced):
        columns["last_state_change"] = now
    if after.state == OPEN and before.state != OPEN:
        columns["total_opens"] = F("total_opens") + 1
    if not after.forced:
        columns |= {"forced_reason": "", "forced_by": ""}
    elif operator.name:
        columns |= {"forced_reason": operator.reason[:200], "forced_by": operator.name[:150]}
    return columns


def _plain(view: BreakerView) -> dict[str, Any]:
    return {
        "state": view.state,
        "failure_count": view.failure_count,
        "success_count": view.success_count,
        "open_until": view.open_until,
        "probes": {task: until.isoformat() for task, until in view.probes.items()},
        "forced": view.forced,
        "forced_until": view.forced_until,
        "reason": view.reason[:REASON_LENGTH],
    }


def _copy_to(row: Breaker, view: BreakerView) -> None:
    for name, value in _plain(view).items():
        setattr(row, name, value)


def _announce(row: Breaker, before: BreakerView, after: BreakerView, operator: Operator) -> None:
    if after.state == before.state:
        return
    match_id = MatchRef.objects.values_list("match_id", flat=True).get(pk=row.ref_id) if row.ref_id else None
    until = f" until {after.open_until:%H:%M:%S} UTC" if after.open_until else ""
    logger.log(
        logging.WARNING if after.state == OPEN else logging.INFO,
        "Breaker %s is %s%s: %s",
        row.name,
        after.state,
        until,
        after.reason,
        extra={"action": EVENTS[after.state], "breaker": row.name, "match_id": match_id},
    )
    if after.state == CLOSED:
        policies.reload()  # after a recovery the configuration is read again (US2.2)
    SIGNALS[after.state].send_robust(
        sender=Breaker,
        name=row.name,
        match_id=match_id,
        source_id=row.source_id,
        reason=after.reason,
        actor=operator.name,
    )
