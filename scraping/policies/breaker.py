"""The circuit breaker as pure functions: a view of it, an outcome and the time in, a new view out.

Guards against a source being hammered while it is down. Opens after a number of failures in a row, waits, lets a few
probes through (half open), closes after a number of successes; one failed probe opens it again. A probe needs a permit,
which is tied to its task and expires: a probe that never ends must not block the breaker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

CLOSED, OPEN, HALF_OPEN = "CLOSED", "OPEN", "HALF_OPEN"
BY_ITSELF, FORCED_OPEN, FORCED_CLOSED = "", "OPEN", "CLOSED"

# Longer than an attempt takes, extended timeouts included. A killed worker's task is given to another worker much
# sooner, and keeps its permit.
PERMIT_SECONDS = 60.0
ASK_AGAIN_SECONDS = 5.0  # the pause of a task that finds all permits taken


@dataclass(frozen=True)
class BreakerPolicy:
    failure_threshold: int = 5  # failures in a row that open it; 0: never by itself (see source_breaker)
    timeout_seconds: float = 60.0
    success_threshold: int = 5
    probes: int = 1  # permits out at the same time


@dataclass(frozen=True)
class BreakerView:
    state: str = CLOSED
    failure_count: int = 0
    success_count: int = 0
    open_until: datetime | None = None
    probes: Mapping[str, datetime] = field(default_factory=dict)  # task to the end of its permit
    forced: str = BY_ITSELF
    forced_until: datetime | None = None
    reason: str = ""


@dataclass(frozen=True)
class Admission:
    """The decision about a request; `refused_until` is None if it may be made."""

    view: BreakerView
    refused_until: datetime | None = None


def settled(view: BreakerView, now: datetime) -> BreakerView:
    """Returns the view at this time: a forced state or an open period may have ended."""
    if view.forced and (view.forced_until is None or view.forced_until <= now):
        view = replace(view, forced=BY_ITSELF, forced_until=None)
    if view.state == OPEN and (view.open_until is None or view.open_until <= now):
        return half_opened("its time is over: probes are let through")
    return view


def live_probes(view: BreakerView, now: datetime) -> dict[str, datetime]:
    return {task: until for task, until in view.probes.items() if until > now}


def probe_limit(view: BreakerView, policy: BreakerPolicy, now: datetime) -> int | None:
    """Returns how many tasks may be under way at this time; None: no limit."""
    view = settled(view, now)
    return None if view.state == CLOSED else _wanted(view, policy) if view.state == HALF_OPEN else 0


def _wanted(view: BreakerView, policy: BreakerPolicy) -> int:
    """Returns how many probes may be under way: never more than are needed to close it."""
    return min(policy.probes, policy.success_threshold - view.success_count)


def admit(view: BreakerView, task: str, policy: BreakerPolicy, now: datetime) -> Admission:
    """Decides whether this task may make its request. Through a half-open breaker it needs a permit."""
    view = settled(view, now)
    if view.state == CLOSED:
        return Admission(view)
    if view.state == OPEN:
        return Admission(view, refused_until=view.open_until)
    live = live_probes(view, now)
    if task not in live and len(live) >= _wanted(view, policy):
        soon = now + timedelta(seconds=ASK_AGAIN_SECONDS)
        return Admission(view, refused_until=min([soon, *live.values()]))
    return Admission(replace(view, probes={**live, task: now + timedelta(seconds=PERMIT_SECONDS)}))


def after_success(view: BreakerView, task: str, policy: BreakerPolicy, now: datetime) -> BreakerView:
    """Counts a good call. One that began before the breaker opened is no evidence about the source now."""
    view = settled(view, now)
    if view.state == CLOSED:
        return replace(view, failure_count=0)
    if not _is_probe(view, task):
        return view
    view = replace(give_back(view, task), success_count=view.success_count + 1)
    return closed("its probes succeeded") if view.success_count >= policy.success_threshold else view


def after_failure(view: BreakerView, task: str, policy: BreakerPolicy, now: datetime, why: str = "") -> BreakerView:
    """Counts a call that failed by the source's fault."""
    view = settled(view, now)
    if view.forced or (view.state == CLOSED and not policy.failure_threshold):
        return view
    if view.state == CLOSED:
        failures = view.failure_count + 1
        if failures < policy.failure_threshold:
            return replace(view, failure_count=failures)
        return opened(policy, now, reason=f"{failures} failures in a row, the last: {why}", failures=failures)
    if _is_probe(view, task):
        return opened(policy, now, reason=f"a probe failed: {why}", failures=view.failure_count + 1)
    return view


def give_back(view: BreakerView, task: str) -> BreakerView:
    """Frees the permit of a probe that ended without evidence about the source."""
    return replace(view, probes={one: until for one, until in view.probes.items() if one != task})


def opened(policy: BreakerPolicy, now: datetime, *, reason: str, failures: int = 0) -> BreakerView:
    until = now + timedelta(seconds=policy.timeout_seconds)
    return BreakerView(state=OPEN, failure_count=failures, open_until=until, reason=reason)


def half_opened(reason: str) -> BreakerView:
    return BreakerView(state=HALF_OPEN, reason=reason)


def closed(reason: str) -> BreakerView:
    return BreakerView(reason=reason)


def forced_open(until: datetime, reason: str) -> BreakerView:
    """Opened by an operator. When that ends, probes decide."""
    return BreakerView(state=OPEN, open_until=until, forced=FORCED_OPEN, forced_until=until, reason=reason)


def forced_closed(until: datetime, reason: str) -> BreakerView:
    """Closed by an operator, even if calls fail. When the override ends, counting starts from zero."""
    return BreakerView(forced=FORCED_CLOSED, forced_until=until, reason=reason)


def _is_probe(view: BreakerView, task: str) -> bool:
    """An expired permit still counts until it is given to another task."""
    return view.state == HALF_OPEN and task in view.probes
