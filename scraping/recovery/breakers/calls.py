"""A task's call through the breakers of its source and its match: admission before it, counting after it.

Outcomes per source are counted in memory and written with every heartbeat: that saves one statement in every poll. The
source breaker evaluates ten minutes, so a delay of seconds does not matter, nor do the few calls of a killed worker.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import F, Q, Sum

from scraping.configuration.policies import Policies
from scraping.errors import BreakerOpen
from scraping.models import Breaker, BreakerState, MatchRef, OutcomeBucket, Source
from scraping.policies import breaker as machine
from scraping.policies import source_breaker
from scraping.policies.breaker import BreakerPolicy, BreakerView
from scraping.policies.source_breaker import BUCKET_SECONDS, CallWindow, keep_drift_count
from scraping.recovery.breakers.rows import row_of_ref, row_of_source, swap, view_of
from scraping.recovery.breakers.source_breakers import add_totals
from victoryline.lib import bulk_sql
from victoryline.lib.times import bucket_start


def guard(task_id: int, source: Source, ref: MatchRef | None = None, *, policies: Policies, now: datetime) -> None:
    """Raises BreakerOpen, and counts a rejection, while the breaker of the source or of the match is open.

    Queries only breakers that are not closed, so the rows must be loaded with their breakers. The scheduler sends no
    hint for a task behind an open breaker; a refused task was already on its way when the breaker opened.
    """
    of_source: Breaker | None = getattr(source, "breaker", None)
    of_ref: Breaker | None = getattr(ref, "breaker", None)
    if of_source is not None:
        _admit(of_source, task_id, policies, now)
    try:
        if of_ref is not None:
            _admit(of_ref, task_id, policies, now)
    except BreakerOpen:
        if of_source is not None and str(task_id) in of_source.probes:
            _release_permit(of_source, task_id, now)
        raise


def _admit(row: Breaker, task_id: int, policies: Policies, now: datetime) -> None:
    if row.state == BreakerState.CLOSED:
        return
    refused_until: datetime | None = None

    def change(view: BreakerView) -> BreakerView:
        nonlocal refused_until
        policy = policies.breaker if row.source_id is None else _source_policy(view, policies)
        admission = machine.admit(view, str(task_id), policy, now)
        refused_until = admission.refused_until
        return admission.view

    view = swap(row, change if row.source_id is None else keep_drift_count(change), now=now)
    if refused_until is None:
        return
    Breaker.objects.filter(pk=row.pk).update(total_rejections=F("total_rejections") + 1)
    if row.source_id is not None:  # the scheduler holds the task back itself, and an operator's reset must act at once
        refused_until = min(refused_until, _retry_soon(now))
    why = "is open" if view.state == BreakerState.OPEN else "has no free probe permit"
    raise BreakerOpen(f"the breaker {row.name} {why}", until=refused_until)


def _source_policy(view: BreakerView, policies: Policies) -> BreakerPolicy:
    return source_breaker.policy_for(view, policies.source_breaker, policies.drift)


def _retry_soon(now: datetime) -> datetime:
    return now + timedelta(seconds=machine.ASK_AGAIN_SECONDS)


def record_success(
    task_id: int, source: Source, ref: MatchRef | None = None, *, policies: Policies, now: datetime
) -> None:
    """Counts a successful call. The common case (closed, no failures) is one UPDATE, and none for the source."""
    if ref is not None:
        _count_good_of_ref(task_id, ref, policies.breaker, now)
    of_source: Breaker | None = getattr(source, "breaker", None)
    if of_source is None:
        return
    if str(task_id) in of_source.probes:
        probed = partial(_probed, task=str(task_id), policies=policies, is_match=ref is not None, now=now)
        swap(of_source, keep_drift_count(probed), now=now)
    elif of_source.failure_count and of_source.state == BreakerState.CLOSED and ref is not None:
        # After the commit: no transaction that holds a match's row may wait for the source's row, which all share.
        transaction.on_commit(partial(_reset_invalid_count, of_source.pk), robust=True)


def _probed(view: BreakerView, *, task: str, policies: Policies, is_match: bool, now: datetime) -> BreakerView:
    """A readable list proves nothing about match pages, and a drifting source opened because of those."""
    if source_breaker.has_drifted(view, policies.drift) and not is_match:
        return machine.give_back(view, task)
    return machine.after_success(view, task, _source_policy(view, policies), now)


def _reset_invalid_count(pk: int) -> None:
    rows = Breaker.objects.filter(pk=pk, state=BreakerState.CLOSED, failure_count__gt=0)
    rows.update(failure_count=0, version=F("version") + 1)


def count_success_of_closed(ref_ids: Sequence[int]) -> int:
    """Counts a success at those refs' breakers that are closed without a failure. Returns how many there were."""
    return bulk_sql.execute_rows(
        """UPDATE scraping_breaker SET total_calls = total_calls + 1, total_successes = total_successes + 1
           WHERE ref_id IN (VALUES {rows}) AND state = %s AND failure_count = 0""",
        [(ref_id,) for ref_id in ref_ids],
        after=(BreakerState.CLOSED.value,),
    )


def _count_good_of_ref(task_id: int, ref: MatchRef, policy: BreakerPolicy, now: datetime) -> None:
    if not count_success_of_closed([ref.pk]):
        good = {"total_calls": F("total_calls") + 1, "total_successes": F("total_successes") + 1}
        change = partial(_succeeded, task=str(task_id), policy=policy, now=now)
        swap(row_of_ref(ref), change, now=now, counted=good)


def _succeeded(view: BreakerView, *, task: str, policy: BreakerPolicy, now: datetime) -> BreakerView:
    return machine.after_success(view, task, policy, now)


def record_failure(
    task_id: int, source_id: int, ref: MatchRef | None, *, why: str, policies: Policies, now: datetime
) -> BreakerView | None:
    """Counts a failure caused by the source. Returns the ref's breaker, which may be open now."""
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
        failed = partial(_failed, task=task, policy=_source_policy(view_of(row), policies), now=now, why=why)
        swap(row, keep_drift_count(failed), now=now)
    return view


def record_invalid_reading(task_id: int, ref: MatchRef, *, why: str, policies: Policies, now: datetime) -> BreakerView:
    """Counts an invalid reading (drift) against the source. Returns the source's breaker."""

    def change(view: BreakerView) -> BreakerView:
        return source_breaker.after_drift_failure(
            view, str(task_id), policies.source_breaker, policies.drift, now=now, why=why
        )

    return swap(row_of_source(ref.source, now=now), change, now=now)


def _failed(view: BreakerView, *, task: str, policy: BreakerPolicy, now: datetime, why: str) -> BreakerView:
    return machine.after_failure(view, task, policy, now, why)


def release_permits(task_id: int, source_id: int, ref: MatchRef | None, *, now: datetime) -> None:
    """Frees the probe permits of an attempt that proved nothing about the source."""
    own = Q(source_id=source_id) | (Q(ref=ref) if ref is not None else Q())
    for row in Breaker.objects.filter(own, state=BreakerState.HALF_OPEN):
        _release_permit(row, task_id, now)


def _release_permit(row: Breaker, task_id: int, now: datetime) -> None:
    swap(row, partial(machine.give_back, task=str(task_id)), now=now)


Key = tuple[int, datetime]  # source and bucket


class Outcomes:
    """Counted by the task threads of one worker, written by its heartbeat thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[Key] = Counter()
        self._bad: Counter[Key] = Counter()
        self._retries: Counter[Key] = Counter()

    def count(self, source_id: int, *, is_bad: bool = False, is_retry: bool = False, now: datetime) -> None:
        key = source_id, bucket_start(now, BUCKET_SECONDS)
        with self._lock:
            self._calls[key] += 1
            self._bad[key] += is_bad
            self._retries[key] += is_retry

    def flush(self, *, now: datetime) -> int:
        """Writes the counts and returns the number of calls. On an error they are kept for the next heartbeat."""
        with self._lock:
            calls, bad, retries = self._calls, self._bad, self._retries
            self._calls, self._bad, self._retries = Counter(), Counter(), Counter()
        try:
            with transaction.atomic():
                for key in sorted(calls):  # in one order, two workers never deadlock
                    _add(key, calls=calls[key], bad=bad[key], retries=retries[key])
                for source_id in sorted({key[0] for key in calls}):
                    add_totals(source_id, calls=_of(calls, source_id), bad=_of(bad, source_id), now=now)
        except BaseException:
            with self._lock:
                self._calls += calls
                self._bad += bad
                self._retries += retries
            raise
        return calls.total()


def _of(counted: Counter[Key], source_id: int) -> int:
    return sum(number for key, number in counted.items() if key[0] == source_id)


def _add(key: Key, *, calls: int, bad: int, retries: int) -> None:
    source_id, starts_at = key
    bucket = OutcomeBucket.objects.filter(source_id=source_id, starts_at=starts_at)
    more = {"calls": F("calls") + calls, "bad": F("bad") + bad, "retries": F("retries") + retries}
    if bucket.update(**more):
        return
    # Two workers may create the same bucket at once: the second one finds it, and both add to it.
    OutcomeBucket.objects.bulk_create([OutcomeBucket(source_id=source_id, starts_at=starts_at)], ignore_conflicts=True)
    bucket.update(**more)


def windows(source_ids: Iterable[int], *, since: datetime) -> dict[int, CallWindow]:
    """Returns the calls per source since a time."""
    buckets = OutcomeBucket.objects.filter(source_id__in=list(source_ids), starts_at__gte=since).order_by()
    sums = buckets.values_list("source_id").annotate(Sum("calls"), Sum("bad"), Sum("retries"))
    return {source_id: CallWindow(calls, bad, retries) for source_id, calls, bad, retries in sums}
