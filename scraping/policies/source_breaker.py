"""Opens a source's breaker: after too many bad calls in a sliding window, or too many drift failures in a row.

Guards against a source that answers some calls and fails many: no single match fails often enough in a row for its own
breaker. Guards also against polling for hours a source that has changed its layout: waiting does not help, only a
person who updates its adapter. Such a source is tried rarely, and the first good reading closes the breaker. The row's
`failure_count` holds the drift failures in a row, across all workers and restarts.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from scraping.policies import breaker as machine
from scraping.policies.breaker import BreakerPolicy, BreakerView
from scraping.policies.drift import DriftPolicy

BUCKET_SECONDS = 10  # calls are counted in buckets of this length

Change = Callable[[BreakerView], BreakerView]


@dataclass(frozen=True)
class WindowPolicy:
    window_seconds: float = 600.0
    min_calls: int = 30  # fewer are no evidence
    bad_percent: float = 35.0
    # A source that fails for some seconds is no case for a quarter of an hour without polls: the breakers of its
    # matches cover that. Without this, a young window would open on the first hiccup, having seen little else.
    min_bad_seconds: float = 60.0


@dataclass(frozen=True)
class CallWindow:
    calls: int = 0
    bad: int = 0
    retries: int = 0
    bad_seconds: float = 0.0  # from the first bad call to the last

    @property
    def bad_percent(self) -> float:
        return 100 * self.bad / self.calls if self.calls else 0.0


def is_failing(window: CallWindow, policy: WindowPolicy) -> bool:
    is_often = window.calls >= policy.min_calls and window.bad_percent >= policy.bad_percent
    return is_often and window.bad_seconds >= policy.min_bad_seconds


def has_drifted(view: BreakerView, drift: DriftPolicy) -> bool:
    return view.failure_count > drift.failures


def policy_for(view: BreakerView, usual: BreakerPolicy, drift: DriftPolicy) -> BreakerPolicy:
    """Returns the breaker policy in force: a changed source is tried by one task at a time, and rarely."""
    if not has_drifted(view, drift):
        return usual
    return replace(usual, timeout_seconds=drift.retry_seconds, success_threshold=1, probes=1)


def keep_drift_count(change: Change) -> Change:
    """Wraps a change of the breaker so that the number of drift failures is kept until the breaker closes."""

    def changed(view: BreakerView) -> BreakerView:
        after = change(view)
        has_closed = after.state == machine.CLOSED and view.state != machine.CLOSED
        return after if has_closed else replace(after, failure_count=view.failure_count)

    return changed


def after_drift_failure(
    view: BreakerView, task: str, usual: BreakerPolicy, drift: DriftPolicy, *, now: datetime, why: str
) -> BreakerView:
    """Counts a reading that could not be parsed. One more than allowed opens the breaker, and so does a probe."""
    view = keep_drift_count(lambda seen: machine.settled(seen, now))(view)
    if view.forced or (view.state != machine.CLOSED and task not in view.probes):
        return view
    counted = replace(view, failure_count=view.failure_count + 1)
    if view.state == machine.CLOSED and not has_drifted(counted, drift):
        return counted
    number = counted.failure_count
    reason = f"{number} {'reading' if number == 1 else 'readings'} in a row made no sense, the last: {why}"
    return machine.opened(policy_for(counted, usual, drift), now, reason=reason, failures=number)
