"""A task at the breakers of its source and of its match: it passes or is put off, and its outcome counts."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from django.db.models import F, Q

from scraping.breakers.rows import row_of_ref, swap
from scraping.errors import BreakerOpen
from scraping.models import Breaker, BreakerState, MatchRef, Source
from scraping.policies import Policies
from scraping.resilience import breaker as machine
from scraping.resilience.breaker import BreakerPolicy, BreakerView


def guard(task_id: int, source: Source, ref: MatchRef | None = None, *, policies: Policies, now: datetime) -> None:
    """BreakerOpen, and one rejection counted, while the source or the match is to be left alone.

    Asks the database only where a breaker is not closed; so it needs rows that were read with their breakers. The
    scheduler opens and hints no task of an open breaker; one that comes here was on its way when it opened.
    """
    of_source: Breaker | None = getattr(source, "breaker", None)
    of_ref: Breaker | None = getattr(ref, "breaker", None)
    if of_source is not None:
        _pass(of_source, task_id, policies.source_breaker, now)
    try:
        if of_ref is not None:
            _pass(of_ref, task_id, policies.breaker, now)
    except BreakerOpen:
        if of_source is not None and str(task_id) in of_source.probes:
            _take_back(of_source, task_id, now)
        raise


def _pass(row: Breaker, task_id: int, policy: BreakerPolicy, now: datetime) -> None:
    if row.state == BreakerState.CLOSED:
        return
    refused_until: datetime | None = None

    def change(view: BreakerView) -> BreakerView:
        nonlocal refused_until
        admission = machine.admit(view, str(task_id), policy, now)
        refused_until = admission.refused_until
        return admission.view

    view = swap(row, change, now=now)
    if refused_until is None:
        return
    Breaker.objects.filter(pk=row.pk).update(total_rejections=F("total_rejections") + 1)
    if row.source_id is not None:  # the scheduler holds the task back; when an operator lets it go, it goes at once
        refused_until = min(refused_until, _soon(now))
    why = "is open" if view.state == BreakerState.OPEN else "has no probe left to give"
    raise BreakerOpen(f"the breaker {row.name} {why}", until=refused_until)


def _soon(now: datetime) -> datetime:
    return now + timedelta(seconds=machine.ASK_AGAIN_SECONDS)


def record_success(
    task_id: int, source: Source, ref: MatchRef | None = None, *, policies: Policies, now: datetime
) -> None:
    """Count a good call. The common case (closed, no failures) is a single UPDATE, and none for the source."""
    if ref is not None:
        _count_good_of_ref(task_id, ref, policies.breaker, now)
    of_source: Breaker | None = getattr(source, "breaker", None)
    if of_source is not None and str(task_id) in of_source.probes:
        change = partial(_succeeded, task=str(task_id), policy=policies.source_breaker, now=now)
        swap(of_source, change, now=now)


def _count_good_of_ref(task_id: int, ref: MatchRef, policy: BreakerPolicy, now: datetime) -> None:
    good = {"total_calls": F("total_calls") + 1, "total_successes": F("total_successes") + 1}
    calm = Breaker.objects.filter(ref=ref, state=BreakerState.CLOSED, failure_count=0)
    if not calm.update(**good):
        change = partial(_succeeded, task=str(task_id), policy=policy, now=now)
        swap(row_of_ref(ref), change, now=now, counted=good)


def _succeeded(view: BreakerView, *, task: str, policy: BreakerPolicy, now: datetime) -> BreakerView:
    return machine.after_success(view, task, policy, now)


def record_failure(
    task_id: int, source_id: int, ref: MatchRef | None, *, why: str, policies: Policies, now: datetime
) -> BreakerView | None:
    """Count a failure that was the source's fault; the view of the ref's breaker tells whether that has opened it."""
    task, view = str(task_id), None
    if ref is not None:
        bad = {
            "total_calls": F("total_calls") + 1,
            "total_failures": F("total_failures") + 1,
            "last_failure_time": now,
        }
        change = partial(_failed, task=task, policy=policies.breaker, now=now, why=why)
        view = swap(row_of_ref(ref), change, now=now, counted=bad)
    for row in Breaker.objects.filter(source_id=source_id, state=BreakerState.HALF_OPEN):
        swap(row, partial(_failed, task=task, policy=policies.source_breaker, now=now, why=why), now=now)
    return view


def _failed(view: BreakerView, *, task: str, policy: BreakerPolicy, now: datetime, why: str) -> BreakerView:
    return machine.after_failure(view, task, policy, now, why)


def give_back(task_id: int, source_id: int, ref: MatchRef | None, *, now: datetime) -> None:
    """The attempt ended without saying anything about the source: its permits, if any, are free again."""
    own = Q(source_id=source_id) | (Q(ref=ref) if ref is not None else Q())
    for row in Breaker.objects.filter(own, state=BreakerState.HALF_OPEN):
        _take_back(row, task_id, now)


def _take_back(row: Breaker, task_id: int, now: datetime) -> None:
    swap(row, partial(machine.give_back, task=str(task_id)), now=now)
