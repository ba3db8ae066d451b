"""One breaker row: read as a view, changed by compare-and-swap; every state change is logged and signalled."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import fields
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


def view_of(row: Breaker) -> BreakerView:
    columns = {one.name: getattr(row, one.name) for one in fields(BreakerView)}
    columns["probes"] = {task: datetime.fromisoformat(until) for task, until in row.probes.items()}
    return BreakerView(**columns)


def _columns_of(view: BreakerView) -> dict[str, Any]:
    columns = {one.name: getattr(view, one.name) for one in fields(view)}
    columns["probes"] = {task: until.isoformat() for task, until in view.probes.items()}
    columns["reason"] = view.reason[:REASON_LENGTH]
    return columns


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


def swap(row: Breaker, change: Change, *, now: datetime, actor: str = "", **columns: Any) -> BreakerView:
    """Applies a change to the current row, together with these columns, and updates `row` in place.

    `actor`: the operator who overrides the breaker; empty for automatic changes.
    """
    for _ in range(SWAP_TRIES):
        seen = fetch(row.pk)
        before = view_of(seen)
        after = change(before)
        written = _columns_of(after)
        changed: dict[str, Any] = {}
        if (after.state, after.forced) != (before.state, before.forced):
            changed["last_state_change"] = now
        if after.state == OPEN and before.state != OPEN:
            changed["total_opens"] = F("total_opens") + 1
        if not after.forced:
            changed |= {"forced_reason": "", "forced_by": ""}
        rows = Breaker.objects.filter(pk=seen.pk, version=seen.version)
        is_same = after == before and not columns
        if is_same or rows.update(**(written | changed | columns), version=F("version") + 1):
            for name, value in written.items():
                setattr(row, name, value)
            _announce(seen, before, after, actor)
            return after
    raise RuntimeError(f"breaker {row.name} changed {SWAP_TRIES} times while it was being updated")


def _announce(row: Breaker, before: BreakerView, after: BreakerView, actor: str) -> None:
    if after.state == before.state:
        return
    ref = MatchRef.objects.select_related("source").only("match_id", "source_event_id", "source__key")
    of_ref = ref.get(pk=row.ref_id) if row.ref_id else None
    until = f" until {after.open_until:%H:%M:%S} UTC" if after.open_until else ""
    logger.log(
        logging.WARNING if after.state == OPEN else logging.INFO,
        "Breaker %s is %s%s: %s",
        row.name,
        after.state,
        until,
        after.reason,
        extra={"action": EVENTS[after.state], "breaker": row.name, "match_id": of_ref.key if of_ref else None},
    )
    if after.state == CLOSED:
        policies.reload()  # after a recovery the configuration is read again (US2.2)
    SIGNALS[after.state].send_robust(
        sender=Breaker,
        name=row.name,
        match_id=of_ref.match_id if of_ref else None,
        source_id=row.source_id,
        reason=after.reason,
        actor=actor,
    )
