"""Breakers at work: who passes, what an outcome does to them, and sources judged by their windows.

The arithmetic is policies/breaker.py; here is what breakers/passing.py and breakers/sources.py do with rows.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from scraping.policies import breaker as machine
from scraping.policies import source_breaker
from scraping.policies.breaker import BreakerPolicy, BreakerView
from scraping.policies.source_breaker import is_failing, keep_drift_count
from victoryline.night.moments import TICK_SECONDS, moment, seconds_of
from victoryline.night.rows import PENDING, Site, Task, Watch

if TYPE_CHECKING:
    from victoryline.night.engine import Night


def patience(night: Night, site: Site) -> BreakerPolicy:
    return source_breaker.policy_for(site.breaker, night.policies.source_breaker, night.policies.drift)


def admit(night: Night, task: Task) -> bool:
    """May this claimed task make its request? One that may not goes back into the journal."""
    watch, site = task.watch, task.watch.site
    soon = night.now + timedelta(seconds=machine.ASK_AGAIN_SECONDS)
    if site.breaker.state != machine.CLOSED:
        passed = machine.admit(site.breaker, task.key, patience(night, site), night.now)
        night.set_breaker(site, keep_drift_count(lambda _: passed.view)(site.breaker))
        if passed.refused_until is not None:
            return _put_off(night, task, seconds_of(min(passed.refused_until, soon)))
    if watch.breaker.state != machine.CLOSED:
        passed = machine.admit(watch.breaker, task.key, night.policies.breaker, night.now)
        night.set_breaker(watch, passed.view)
        if passed.refused_until is not None:
            night.set_breaker(site, machine.give_back(site.breaker, task.key))
            return _put_off(night, task, seconds_of(passed.refused_until))
    return True


def _put_off(night: Night, task: Task, until: float) -> bool:
    task.attempt -= 1  # an attempt that was not made costs nothing
    until = max(until, night.t + TICK_SECONDS)  # never again in this round
    task.state, task.run_at = PENDING, until
    night.queue.retry_ended(task)
    task.watch.site.pending.append(task)
    night.wake(task.watch.site, until)
    return False


def succeeded(night: Night, task: Task) -> None:
    watch, site = task.watch, task.watch.site
    if watch.breaker.state != machine.CLOSED or watch.breaker.failure_count:
        night.set_breaker(watch, machine.after_success(watch.breaker, task.key, night.policies.breaker, night.now))
    if task.key in site.breaker.probes:
        change = partial(_good, task=task.key, policy=patience(night, site), night=night)
        night.set_breaker(site, keep_drift_count(change)(site.breaker))


def _good(view: BreakerView, *, task: str, policy: BreakerPolicy, night: Night) -> BreakerView:
    return machine.after_success(view, task, policy, night.now)


def failed(night: Night, task: Task, why: str) -> BreakerView:
    """By the source's fault; the view of the match's own breaker."""
    watch, site = task.watch, task.watch.site
    view = machine.after_failure(watch.breaker, task.key, night.policies.breaker, night.now, why)
    night.set_breaker(watch, view)
    if site.breaker.state == machine.HALF_OPEN:
        policy = patience(night, site)
        after = machine.after_failure(site.breaker, task.key, policy, night.now, why)
        night.set_breaker(site, keep_drift_count(lambda _: after)(site.breaker))
    return view


def gave_nothing(night: Night, task: Task) -> None:
    """Our own fault: the permits are free again."""
    for one in (task.watch, task.watch.site):
        if one.breaker.state == machine.HALF_OPEN:
            night.set_breaker(one, machine.give_back(one.breaker, task.key))


def judge_sources(night: Night) -> None:
    """Every second, as the step does: sources that have failed since the last look, and those that have waited."""
    night.at(night.t + 1.0, judge_sources, night)
    if night.scheduler_away():
        return
    for site in night.world.sites:
        has_waited = (
            site.breaker.state == machine.OPEN
            and site.breaker.open_until is not None
            and site.breaker.open_until <= night.now
        )
        if has_waited:
            night.set_breaker(site, keep_drift_count(lambda view: machine.settled(view, night.now))(site.breaker))
            night.wake(site, night.t)
        elif site.is_judged and site.breaker.state == machine.CLOSED:
            _judge(night, site)
        site.is_judged = False


def _judge(night: Night, site: Site) -> None:
    window = site.tally.window(night.now, night.policies.window.window_seconds, since=moment(site.breaker_since))
    if is_failing(window, night.policies.window):
        reason = f"{window.bad} of {window.calls} calls were bad ({window.bad_percent:.0f} %)"
        night.set_breaker(site, machine.opened(night.policies.source_breaker, night.now, reason=reason))


def is_open(of: Watch | Site, night: Night) -> bool:
    view = of.breaker
    return view.state == machine.OPEN and view.open_until is not None and view.open_until > night.now
