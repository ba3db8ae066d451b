"""Breakers of whole sources. The scheduler evaluates them from the calls that all workers have counted."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from django.db.models import F

from scraping.configuration.policies import Policies
from scraping.models import Breaker, BreakerState, Forced, OutcomeBucket, Source
from scraping.policies import breaker as machine
from scraping.policies.breaker import BreakerView
from scraping.policies.source_breaker import (
    Bucket,
    CallWindow,
    WindowPolicy,
    is_failing,
    keep_drift_count,
    policy_for,
    sum_buckets,
)
from scraping.recovery.breakers.rows import row_of_source, swap, view_of

logger = logging.getLogger(__name__)


def ensure_rows(*, now: datetime) -> int:
    """Creates missing breaker rows, so that operators can see and override every source. Returns how many."""
    missing = list(Source.objects.filter(breaker__isnull=True))
    for source in missing:
        row_of_source(source, now=now)
    return len(missing)


def add_totals(source_id: int, *, calls: int, bad: int, now: datetime) -> None:
    """Adds the calls that a worker counted since its last heartbeat. Totals are not state: no swap is needed."""
    counted = {
        "total_calls": F("total_calls") + calls,
        "total_successes": F("total_successes") + calls - bad,
        "total_failures": F("total_failures") + bad,
    }
    if bad:
        Breaker.objects.filter(source_id=source_id).update(**counted, last_failure_time=now)
    else:
        Breaker.objects.filter(source_id=source_id).update(**counted)


def evaluate_sources(*, policies: Policies, now: datetime) -> int:
    """Opens failing breakers, half-opens those whose time is over, ends expired overrides. Returns how many changed."""
    rows = list(Breaker.objects.filter(source__isnull=False))
    windows = windows_of(rows, policies.window, now)
    return sum(_evaluate(row, windows[row.pk], policies, now) for row in rows)


def _evaluate(row: Breaker, window: CallWindow, policies: Policies, now: datetime) -> bool:
    is_bad = row.state == BreakerState.CLOSED and not row.forced and is_failing(window, policies.window)
    has_waited = row.state == BreakerState.OPEN and row.open_until is not None and row.open_until <= now
    is_released = row.forced != Forced.NONE and row.forced_until is not None and row.forced_until <= now
    if not (is_bad or has_waited or is_released):
        return False
    before = row.state, row.forced
    change = partial(_after_window, window=window, is_bad=is_bad, policies=policies, now=now)
    after = swap(row, keep_drift_count(change), now=now)
    return (after.state, after.forced) != before


def _after_window(
    view: BreakerView, *, window: CallWindow, is_bad: bool, policies: Policies, now: datetime
) -> BreakerView:
    view = machine.settled(view, now)
    if not is_bad or view.state != machine.CLOSED or view.forced:
        return view
    minutes = policies.window.window_seconds / 60
    reason = f"{window.bad} of {window.calls} calls in {minutes:g} min were bad ({window.bad_percent:.0f} %)"
    return machine.opened(policies.source_breaker, now, reason=reason)


def windows_of(rows: list[Breaker], policy: WindowPolicy, now: datetime) -> dict[int, CallWindow]:
    """Returns the calls in the window per breaker, without those before its last state change.

    A breaker that has just closed is not opened again by the failures that had opened it.
    """
    start = now - timedelta(seconds=policy.window_seconds)
    buckets: dict[int, list[Bucket]] = {}
    found = OutcomeBucket.objects.filter(starts_at__gte=start, source__in=[row.source_id for row in rows])
    for one in found:
        buckets.setdefault(one.source_id, []).append(Bucket(one.starts_at, one.calls, one.bad, one.retries))
    return {
        row.pk: sum_buckets(buckets.get(row.source_id or 0, ()), since=max(start, row.last_state_change))
        for row in rows
    }


def probe_limits(policies: Policies, *, now: datetime) -> Mapping[int, tuple[int, frozenset[int]]]:
    """Returns, per source whose breaker is not closed, how many tasks may run and which tasks hold a permit."""
    limits: dict[int, tuple[int, frozenset[int]]] = {}
    for row in Breaker.objects.filter(source__isnull=False).exclude(state=BreakerState.CLOSED):
        view = view_of(row)
        limit = machine.probe_limit(view, policy_for(view, policies.source_breaker, policies.drift), now)
        if row.source_id is not None and limit is not None:
            holders = frozenset(int(task) for task in machine.live_probes(view, now))
            limits[row.source_id] = limit, holders
    return limits
