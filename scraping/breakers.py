"""Breaker rows: sole writer. What the numbers mean is in resilience/breaker.py; here they meet the database.

Every change is compare-and-swap on `version`, so that two workers that fail at the same moment both count.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import F

from scraping.errors import BreakerOpen
from scraping.models import Breaker, MatchRef
from scraping.resilience.breaker import CLOSED, OPEN, BreakerPolicy, BreakerView, after_failure, after_success, allows
from scraping.signals import breaker_closed, breaker_opened

SWAP_TRIES = 20


def guard(ref: MatchRef, *, now: datetime) -> None:
    """BreakerOpen, and one rejection counted, while the source is to be left alone. Needs a ref read with its breaker.

    The scheduler opens and hints no task then; this one was on its way when the breaker opened.
    """
    row: Breaker | None = getattr(ref, "breaker", None)
    if row is None or allows(_view(row), now):
        return
    Breaker.objects.filter(pk=row.pk).update(total_rejections=F("total_rejections") + 1)
    raise BreakerOpen(f"the breaker of {ref.key} is open", until=row.open_until or now)


def record_success(ref: MatchRef, policy: BreakerPolicy, *, now: datetime) -> None:
    """Count a good call. The common case (closed, no failures) is a single UPDATE."""
    calm = Breaker.objects.filter(ref=ref, state=CLOSED, failure_count=0)
    if calm.update(total_calls=F("total_calls") + 1, total_successes=F("total_successes") + 1):
        return
    _swap(ref, policy, is_success=True, now=now)


def record_failure(ref: MatchRef, policy: BreakerPolicy, *, now: datetime) -> BreakerView:
    """Count a failure that was the source's fault; the view afterwards tells whether it opened the breaker."""
    return _swap(ref, policy, is_success=False, now=now)


def _swap(ref: MatchRef, policy: BreakerPolicy, *, is_success: bool, now: datetime) -> BreakerView:
    for _ in range(SWAP_TRIES):
        row = _row_for(ref)
        before = _view(row)
        after = after_success(before, policy) if is_success else after_failure(before, policy, now)
        counted: dict[str, Any] = {"total_calls": F("total_calls") + 1, "version": F("version") + 1}
        if is_success:
            counted["total_successes"] = F("total_successes") + 1
        else:
            counted |= {"total_failures": F("total_failures") + 1, "last_failure_time": now}
        if after.state != before.state:
            counted["last_state_change"] = now
        unchanged = Breaker.objects.filter(pk=row.pk, version=row.version)
        if unchanged.update(
            state=after.state,
            failure_count=after.failure_count,
            success_count=after.success_count,
            open_until=after.open_until,
            **counted,
        ):
            _announce(row, before, after, ref)
            return after
    raise RuntimeError(f"breaker {ref.key} changed {SWAP_TRIES} times while it was being updated")


def _view(row: Breaker) -> BreakerView:
    return BreakerView(row.state, row.failure_count, row.success_count, row.open_until)


def _row_for(ref: MatchRef) -> Breaker:
    row, _ = Breaker.objects.get_or_create(
        ref=ref, defaults={"name": f"{ref.key}_scraper", "last_state_change": ref.created_at}
    )
    return row


def _announce(row: Breaker, before: BreakerView, after: BreakerView, ref: MatchRef) -> None:
    if after.state == before.state:
        return
    signal = {OPEN: breaker_opened, CLOSED: breaker_closed}.get(after.state)
    if signal is not None:
        signal.send_robust(sender=Breaker, name=row.name, match_id=ref.match_id)
