"""A source's breaker once more: besides its window it looks at readings in a row that made no sense.

Guards against asking a source for hours that has changed its layout: no pause mends that, only a person who teaches its
adapter. So it is tried rarely, and the first reading that makes sense again ends it. The row's `failure_count` holds
how many there were, across all workers and restarts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from scraping.policies import breaker as machine
from scraping.policies.breaker import BreakerPolicy, BreakerView
from scraping.policies.drift import DriftPolicy

Change = Callable[[BreakerView], BreakerView]


def is_lost(view: BreakerView, drift: DriftPolicy) -> bool:
    """Does the source count as changed?"""
    return view.failure_count > drift.failures


def patience(view: BreakerView, usual: BreakerPolicy, drift: DriftPolicy) -> BreakerPolicy:
    """How long it stays open and what closes it: a changed source is tried by one task at a time."""
    if not is_lost(view, drift):
        return usual
    return replace(usual, timeout_seconds=drift.retry_seconds, success_threshold=1, probes=1)


def keeping_count(change: Change) -> Change:
    """Around a change that knows nothing of readings that made no sense: their number stays, until it has closed."""

    def changed(view: BreakerView) -> BreakerView:
        after = change(view)
        has_closed = after.state == machine.CLOSED and view.state != machine.CLOSED
        return after if has_closed else replace(after, failure_count=view.failure_count)

    return changed


def after_nonsense(
    view: BreakerView, task: str, usual: BreakerPolicy, drift: DriftPolicy, *, now: datetime, why: str
) -> BreakerView:
    """A reading of a match made no sense. One more than may be opens the breaker, and so does a probe."""
    view = keeping_count(lambda seen: machine.settled(seen, now))(view)
    if view.forced or (view.state != machine.CLOSED and task not in view.probes):
        return view
    counted = replace(view, failure_count=view.failure_count + 1)
    if view.state == machine.CLOSED and not is_lost(counted, drift):
        return counted
    number = counted.failure_count
    reason = f"{number} {'reading' if number == 1 else 'readings'} in a row made no sense, the last: {why}"
    return machine.opened(patience(counted, usual, drift), now, reason=reason, failures=number)
