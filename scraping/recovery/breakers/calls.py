"""A task's call through the breakers of its source and its match, and the evaluation of source breakers by all calls.

Guards against calls that a broken source or match would only fail: they are refused before they begin. Outcomes per
source are counted in memory and written with every heartbeat, which saves one statement in every poll.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import F, Max, Min, Q, Sum

from scraping.configuration.policies import Policies
from scraping.errors import BreakerOpen
from scraping.models import Breaker, BreakerState, MatchRef, OutcomeBucket, Source, SourceRate
from scraping.models.traffic import RATE_SECONDS
from scraping.policies import breaker as machine
from scraping.policies import source_breaker
from scraping.policies.breaker import BreakerPolicy, BreakerView
from scraping.policies.source_breaker import BUCKET_SECONDS, CallWindow, is_failing, keep_drift_count
from scraping.recovery.breakers.rows import row_of_ref, row_of_source, swap, view_of
from victoryline.lib import bulk_sql

# One task


def guard(task_id: int, source: Source, ref: MatchRef | None = None, *, policies: Policies, now: datetime) -> None:
    """Raises BreakerOpen, and counts a rejection, while the breaker of the source or of the match is open.

    Queries only breakers that are not closed: the rows must be loaded with their breakers.
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
            swap(of_source, partial(machine.give_back, task=str(task_id)), now=now)
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
        refused_until = min(refused_until, now + timedelta(seconds=machine.ASK_AGAIN_SECONDS))
    why = "is open" if view.state == BreakerState.OPEN else "has no free probe permit"
    raise BreakerOpen(f"the breaker {row.name} {why}", until=refused_until)


def _source_policy(view: BreakerView, policies: Policies) -> BreakerPolicy:
    return source_breaker.policy_for(view, policies.source_breaker, policies.drift)


def record_success(
    task_id: int, source: Source, ref: MatchRef | None = None, *, policies: Policies, now: datetime
) -> None:
    """Counts a successful call. The common case (closed, no failures) is one UPDATE, and none for the source."""
    task = str(task_id)
    if ref is not None and not count_success_of_closed([ref.pk]):
        swap(
            row_of_ref(ref),
            lambda view: machine.after_success(view, task, policies.breaker, now),
            now=now,
            total_calls=F("total_calls") + 1,
            total_successes=F("total_successes") + 1,
        )
    of_source: Breaker | None = getattr(source, "breaker", None)
    if of_source is None:
        return

    def probed(view: BreakerView) -> BreakerView:
        """A readable list proves nothing about match pages, and a drifting source opened because of those."""
        if source_breaker.has_drifted(view, policies.drift) and ref is None:
            return machine.give_back(view, task)
        return machine.after_success(view, task, _source_policy(view, policies), now)

    if task in of_source.probes:
        swap(of_source, keep_drift_count(probed), now=now)
    elif of_source.failure_count and of_source.state == BreakerState.CLOSED and ref is not None:
        # After the commit: no transaction that holds a match's row may wait for the source's row, which all share.
        transaction.on_commit(partial(_reset_invalid_count, of_source.pk), robust=True)


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


def record_failure(
    task_id: int, source_id: int, ref: MatchRef | None, *, why: str, policies: Policies, now: datetime
) -> BreakerView | None:
    """Counts a failure caused by the source. Returns the ref's breaker, which may be open now."""

    def source_failed(view: BreakerView) -> BreakerView:
        return machine.after_failure(view, str(task_id), _source_policy(view, policies), now, why)

    view = None
    if ref is not None:
        view = swap(
            row_of_ref(ref),
            lambda view: machine.after_failure(view, str(task_id), policies.breaker, now, why),
            now=now,
            total_calls=F("total_calls") + 1,
            total_failures=F("total_failures") + 1,
            last_failure_time=now,
        )
    for row in Breaker.objects.filter(source_id=source_id, state=BreakerState.HALF_OPEN):
        swap(row, keep_drift_count(source_failed), now=now)
    return view


def record_invalid_reading(task_id: int, ref: MatchRef, *, why: str, policies: Policies, now: datetime) -> BreakerView:
    """Counts an invalid reading (drift) against the source. Returns the source's breaker."""

    def change(view: BreakerView) -> BreakerView:
        return source_breaker.after_drift_failure(
            view, str(task_id), policies.source_breaker, policies.drift, now=now, why=why
        )

    return swap(row_of_source(ref.source, now=now), change, now=now)


def release_permits(task_id: int, source_id: int, ref: MatchRef | None, *, now: datetime) -> None:
    """Frees the probe permits of an attempt that proved nothing about the source."""
    own = Q(source_id=source_id) | (Q(ref=ref) if ref is not None else Q())
    for row in Breaker.objects.filter(own, state=BreakerState.HALF_OPEN):
        swap(row, partial(machine.give_back, task=str(task_id)), now=now)


# All calls of a source


class Outcomes:
    """Counted by the task threads of one worker, written by its heartbeat thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: bulk_sql.Sums = {}  # by source and bucket: calls, bad, retries

    def count(self, source_id: int, *, is_bad: bool = False, is_retry: bool = False, now: datetime) -> None:
        key = source_id, bulk_sql.bucket_start(now, BUCKET_SECONDS)
        with self._lock:
            bulk_sql.count(self._counts, {key: (1, int(is_bad), int(is_retry))})

    def flush(self, *, now: datetime) -> int:
        """Writes the counts and returns the number of calls. On an error they are kept for the next heartbeat."""
        with self._lock:
            counts, self._counts = self._counts, {}
        totals: bulk_sql.Sums = {}
        for (source_id, _), numbers in counts.items():
            bulk_sql.count(totals, {(source_id,): numbers})
        try:
            with transaction.atomic():
                by, sums = ("source", "starts_at"), ("calls", "bad", "retries")
                bulk_sql.add_up(OutcomeBucket, by=by, sums=sums, rows=counts)
                rates = bulk_sql.in_periods({key: numbers[:2] for key, numbers in counts.items()}, RATE_SECONDS)
                bulk_sql.add_up(SourceRate, by=("source", "seconds", "starts_at"), sums=("calls", "bad"), rows=rates)
                for (source_id,), (calls, bad, _) in sorted(totals.items()):
                    _add_totals(source_id, calls=calls, bad=bad, now=now)
        except BaseException:
            with self._lock:
                bulk_sql.count(self._counts, counts)
            raise
        return sum(calls for calls, _, _ in totals.values())


def _add_totals(source_id: int, *, calls: int, bad: int, now: datetime) -> None:
    """Totals are not state: no swap is needed."""
    Breaker.objects.filter(source_id=source_id).update(
        total_calls=F("total_calls") + calls,
        total_successes=F("total_successes") + calls - bad,
        total_failures=F("total_failures") + bad,
        **({"last_failure_time": now} if bad else {}),
    )


def windows(*, since: datetime, is_after_change: bool = False) -> dict[int, CallWindow]:
    """Returns the calls per source since a time. `is_after_change`: only after the breaker's last state change."""
    buckets = OutcomeBucket.objects.filter(starts_at__gte=since).order_by()
    if is_after_change:
        buckets = buckets.filter(starts_at__gte=F("source__breaker__last_state_change"))
    is_bad = Q(bad__gt=0)
    sums = buckets.values_list("source_id").annotate(
        *(Sum("calls"), Sum("bad"), Sum("retries")),
        first=Min("starts_at", filter=is_bad),
        last=Max("starts_at", filter=is_bad),
    )
    return {
        source_id: CallWindow(
            calls, bad, retries, bad_seconds=(last - first).total_seconds() + BUCKET_SECONDS if bad else 0.0
        )
        for source_id, calls, bad, retries, first, last in sums
    }


def ensure_rows(*, now: datetime) -> int:
    """Creates missing breaker rows, so that operators can see and override every source. Returns how many."""
    missing = list(Source.objects.filter(breaker__isnull=True))
    for source in missing:
        row_of_source(source, now=now)
    return len(missing)


def evaluate_sources(*, policies: Policies, now: datetime) -> int:
    """Opens failing breakers, half-opens those whose time is over, ends expired overrides. Returns how many changed."""
    since = now - timedelta(seconds=policies.window.window_seconds)
    found = windows(since=since, is_after_change=True)
    rows = Breaker.objects.filter(source__isnull=False)
    return sum(_evaluate(row, found.get(row.source_id or 0, CallWindow()), policies, now) for row in rows)


def _evaluate(row: Breaker, window: CallWindow, policies: Policies, now: datetime) -> bool:
    is_bad = row.state == BreakerState.CLOSED and not row.forced and is_failing(window, policies.window)

    def change(view: BreakerView) -> BreakerView:
        view = machine.settled(view, now)
        if not is_bad or view.state != machine.CLOSED or view.forced:
            return view
        minutes = policies.window.window_seconds / 60
        reason = f"{window.bad} of {window.calls} calls in {minutes:g} min were bad ({window.bad_percent:.0f} %)"
        return machine.opened(policies.source_breaker, now, reason=reason)

    if not is_bad and machine.settled(view_of(row), now) == view_of(row):
        return False
    before = row.state, row.forced
    after = swap(row, keep_drift_count(change), now=now)
    return (after.state, after.forced) != before


def probe_limits(policies: Policies, *, now: datetime) -> Mapping[int, tuple[int, frozenset[int]]]:
    """Returns, per source whose breaker is not closed, how many tasks may run and which tasks hold a permit."""
    limits: dict[int, tuple[int, frozenset[int]]] = {}
    for row in Breaker.objects.filter(source__isnull=False).exclude(state=BreakerState.CLOSED):
        view = view_of(row)
        limit = machine.probe_limit(view, _source_policy(view, policies), now)
        if row.source_id is not None and limit is not None:
            limits[row.source_id] = limit, frozenset(int(task) for task in machine.live_probes(view, now))
    return limits
