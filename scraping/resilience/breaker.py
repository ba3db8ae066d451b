"""The circuit breaker as arithmetic: a view of it and an outcome in, a new view out.

Guards against a source being hammered while it is down. Opens after so many failures in a row, waits, lets single
probes through (half open), closes after so many good ones; one bad probe opens it again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

CLOSED, OPEN, HALF_OPEN = "CLOSED", "OPEN", "HALF_OPEN"


@dataclass(frozen=True)
class BreakerPolicy:
    failure_threshold: int = 5
    timeout_seconds: float = 60.0
    success_threshold: int = 5


@dataclass(frozen=True)
class BreakerView:
    state: str = CLOSED
    failure_count: int = 0
    success_count: int = 0
    open_until: datetime | None = None


def allows(view: BreakerView, now: datetime) -> bool:
    """May a request be made? An open breaker whose time is over allows its probe."""
    return view.state != OPEN or view.open_until is None or view.open_until <= now


def after_success(view: BreakerView, policy: BreakerPolicy) -> BreakerView:
    if view.state == CLOSED:
        return replace(view, failure_count=0)
    successes = view.success_count + 1 if view.state == HALF_OPEN else 1
    if successes >= policy.success_threshold:
        return BreakerView()
    return BreakerView(state=HALF_OPEN, success_count=successes)


def after_failure(view: BreakerView, policy: BreakerPolicy, now: datetime) -> BreakerView:
    failures = view.failure_count + 1
    if view.state == CLOSED and failures < policy.failure_threshold:
        return replace(view, failure_count=failures)
    return BreakerView(state=OPEN, failure_count=failures, open_until=now + timedelta(seconds=policy.timeout_seconds))
