"""Both kinds of breakers under any order of events: Hypothesis simulates four processes, the clock and an operator. The
rows are real. Processes decide by outdated rows, and others act between their read of a row and their change of it.
Probes are lost when their process dies. What must hold after each step: B1 no more permits are out than the policy
gives; B2 while a breaker is not closed, no task passes without a permit; B3 an operator's override applies until its
end and not longer; B4 it never sticks: when its time and the permits are over, a probe passes, and good probes close
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from unittest.mock import patch

import pytest
from django.db import transaction
from django.dispatch import Signal
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from scraping.configuration.policies import Policies
from scraping.errors import BreakerOpen
from scraping.models import Breaker, MatchRef, Source
from scraping.policies import breaker as machine
from scraping.policies.breaker import PERMIT_SECONDS, BreakerPolicy
from scraping.recovery import breakers
from scraping.recovery.breakers import rows
from tests.factories import NOW, make_ref, make_source
from tests.scraping.builders import POLICIES

PROCESSES = ("w-1", "w-2", "w-3", "w-4")
SECONDS = st.sampled_from((0.0, 0.5, 4.0, 31.0, 59.9, 60.0, 61.0, 300.0, 899.0, 901.0, 86_400.0))
Between = Callable[[], None]


FRESH = st.sampled_from((False, False, False, True))  # most processes have read the row just now


@contextmanager
def interleaved(other: Between) -> Iterator[None]:
    """Another process acts between the first read of a row and the attempt to change it."""
    fetch, is_due = rows.fetch, True

    def overtaken(pk: int) -> Breaker:
        nonlocal is_due
        found = fetch(pk)
        if is_due:
            is_due = False
            other()
        return found

    with patch.object(rows, "fetch", overtaken):
        yield


class BreakerMachine(RuleBasedStateMachine):
    """Tests a ref's breaker; the subclass tests a source's."""

    is_of_source = False

    def __init__(self) -> None:
        super().__init__()
        Breaker.objects.all().delete()
        self.now: datetime = NOW
        self.policies: Policies = POLICIES
        self.source: Source = make_source()
        known = MatchRef.objects.filter(source_event_id="A1").first()
        self.ref: MatchRef = known or make_ref(source=self.source, source_event_id="A1")
        self.tasks = 0
        self.under_way: dict[int, tuple[Source, MatchRef | None]] = {}  # admitted, outcome not recorded yet
        self.seen: dict[str, tuple[Source, MatchRef | None]] = {}
        self.forced: tuple[str, datetime] | None = None
        self.permits: dict[int, tuple[datetime, object]] = {}  # of admitted tasks: their end, and the time of admission

    @property
    def policy(self) -> BreakerPolicy:
        return self.policies.source_breaker if self.is_of_source else self.policies.breaker

    @property
    def row(self) -> Breaker:
        of = {"source": self.source} if self.is_of_source else {"ref": self.ref}
        return Breaker.objects.get(**of)

    def pick(self) -> tuple[Source, MatchRef | None]:
        if self.is_of_source:
            return Source.objects.select_related("breaker").get(pk=self.source.pk), None
        ref = MatchRef.objects.select_related("source__breaker", "breaker").get(pk=self.ref.pk)
        return ref.source, ref

    # --- rules

    @initialize(state=st.sampled_from(("HALF_OPEN", "HALF_OPEN", "CLOSED", "OPEN")))
    def begin(self, state: str) -> None:
        rows.row_of_source(self.source, now=self.now)
        rows.row_of_ref(self.ref)
        self.seen = {process: self.pick() for process in PROCESSES}
        views = {"OPEN": machine.opened(self.policy, self.now, reason="x"), "HALF_OPEN": machine.half_opened("x")}
        if state in views:
            rows.swap(self.row, lambda _: views[state], now=self.now)

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        if self.forced and self.forced[1] <= self.now:
            self.forced = None

    @rule(process=st.sampled_from(PROCESSES), is_stale=FRESH, another=st.booleans())
    def request_admission(self, process: str, is_stale: bool, another: bool) -> None:
        """Requests admission by the row as this process read it, perhaps at the same moment as another process."""
        if not is_stale:
            self.seen[process] = self.pick()
        was_closed = self.seen[process][0 if self.is_of_source else 1].breaker.state == "CLOSED"
        other = partial(self._ask, self.pick(), was_closed=False) if another and not was_closed else None
        with interleaved(other or (lambda: None)):
            self._ask(self.seen[process], was_closed=was_closed)

    @rule(number=st.integers(2, 5))
    def request_admission_at_once(self, number: int) -> None:
        for seen in [self.pick() for _ in range(number)]:
            of_row = seen[0 if self.is_of_source else 1]
            assert of_row is not None
            self._ask(seen, was_closed=of_row.breaker.state == "CLOSED")

    @rule(data=st.data(), is_good=st.booleans(), another=st.booleans())
    @precondition(lambda self: self.under_way)
    def record_outcome(self, data: st.DataObject, is_good: bool, another: bool) -> None:
        task_id = data.draw(st.sampled_from(sorted(self.under_way)))
        other = (lambda: self._ask(self.pick(), was_closed=False)) if another else (lambda: None)
        with interleaved(other):
            self._tell(task_id, is_good=is_good)

    @rule(number=st.integers(1, 6))
    def fail_in_a_row(self, number: int) -> None:
        """Requests of other processes that passed while it was closed, and all of them failed."""
        for _ in range(number):
            self.tasks += 1
            self.under_way[self.tasks] = self.pick()
            self._tell(self.tasks, is_good=False)

    @rule(data=st.data())
    @precondition(lambda self: self.under_way)
    def end_without_evidence(self, data: st.DataObject) -> None:
        task_id = data.draw(st.sampled_from(sorted(self.under_way)))
        del self.under_way[task_id]
        self.permits.pop(task_id, None)
        breakers.release_permits(task_id, self.source.pk, None if self.is_of_source else self.ref, now=self.now)

    @rule(data=st.data())
    @precondition(lambda self: self.under_way)
    def lose_probe(self, data: st.DataObject) -> None:
        """The probe is lost: its result is never reported."""
        del self.under_way[data.draw(st.sampled_from(sorted(self.under_way)))]

    @rule()
    def open_by_bad_calls(self) -> None:
        """Opens the breaker as the step does for a window of bad calls; a ref's breaker has no such step."""
        if self.is_of_source and self.row.state == "CLOSED" and not self.forced:
            rows.swap(self.row, lambda _: machine.opened(self.policy, self.now, reason="35 %"), now=self.now)

    @rule()
    def run_step(self) -> None:
        breakers.evaluate_sources(policies=self.policies, now=self.now)

    @rule(does=st.sampled_from(("open", "closed", "reset", "probe")), minutes=st.sampled_from((0.5, 10.0, 60.0)))
    def override(self, does: str, minutes: float) -> None:
        if does in {"open", "closed"}:
            force = breakers.force_open if does == "open" else breakers.force_closed
            force(self.row, minutes=minutes, reason="test", actor="anna", now=self.now)
            self.forced = (does.upper(), self.now + timedelta(minutes=minutes))
        elif does == "reset":
            breakers.reset(self.row, actor="anna", now=self.now)
            self.forced = None
        elif self.row.state != "CLOSED":
            breakers.probe_now(self.row, actor="anna", now=self.now)
            self.forced = None

    # --- invariants, checked after each rule

    @invariant()
    def row_is_valid(self) -> None:
        row = self.row
        live = [until for until in row.probes.values() if datetime.fromisoformat(until) > self.now]
        out = [end for end, trial in self.permits.values() if end > self.now and trial == self._time_of_trial(row)]
        assert len(live) <= self.policy.probes  # B1, by the row
        assert row.state != "HALF_OPEN" or len(out) <= self.policy.probes  # B1, by the admitted tasks
        assert row.state == "HALF_OPEN" or not row.probes
        assert row.failure_count <= max(self.policy.failure_threshold, 1)
        assert row.success_count < self.policy.success_threshold
        assert (row.open_until is not None) == (row.state == "OPEN")
        if row.open_until is not None and not row.forced:
            assert row.open_until <= self.now + timedelta(seconds=self.policy.timeout_seconds)
        if self.forced is not None:  # B3
            state, until = self.forced
            assert (row.state, row.forced, row.forced_until) == (state, state, until)

    @rule()
    def closes_in_the_end(self) -> None:
        """B4, tried in a transaction that is rolled back: later, with good probes only, it closes."""
        with transaction.atomic():
            row = self.row
            later = max(self.now, row.open_until or self.now, row.forced_until or self.now)
            later += timedelta(seconds=PERMIT_SECONDS)
            for number in range(self.policy.success_threshold):
                task_id = 10_000_000 + number
                source, ref = self.pick()
                breakers.guard(task_id, source, ref, policies=self.policies, now=later)
                breakers.record_success(task_id, source, ref, policies=self.policies, now=later)
            assert self.row.state == "CLOSED"
            transaction.set_rollback(True)

    def teardown(self) -> None:
        self.closes_in_the_end()

    # --- helpers

    def _ask(self, seen: tuple[Source, MatchRef | None], *, was_closed: bool) -> None:
        self.tasks += 1
        task_id, (source, ref) = self.tasks, seen
        refused_until: datetime | None = None
        try:
            breakers.guard(task_id, source, ref, policies=self.policies, now=self.now)
        except BreakerOpen as refusal:
            refused_until = refusal.until
        if refused_until is not None:
            assert refused_until > self.now  # else it would come back at once, again and again
            assert self.forced is None or self.forced[0] == "OPEN"  # B3
            return
        self.under_way[task_id] = seen
        row = self.row
        if row.state == "HALF_OPEN" and not was_closed:
            ends_at = self.now + timedelta(seconds=PERMIT_SECONDS)
            self.permits[task_id] = ends_at, self._time_of_trial(row)
        if was_closed:  # its row was read before the breaker opened: the request was on its way
            return
        assert row.state == "CLOSED" or str(task_id) in row.probes  # B2
        assert self.forced is None or self.forced[0] == "CLOSED"  # B3

    @staticmethod
    def _time_of_trial(row: Breaker) -> object:
        return row.total_opens, row.last_state_change

    def _tell(self, task_id: int, *, is_good: bool) -> None:
        source, ref = self.under_way.pop(task_id)
        self.permits.pop(task_id, None)
        if is_good:
            breakers.record_success(task_id, source, ref, policies=self.policies, now=self.now)
        else:
            own = None if self.is_of_source else self.ref
            breakers.record_failure(task_id, self.source.pk, own, why="502", policies=self.policies, now=self.now)


class SourceBreakerMachine(BreakerMachine):
    is_of_source = True


@pytest.fixture
def no_receivers() -> Iterator[None]:
    """Disconnects the receivers of monitoring, which are not tested here and would take most of the time."""
    silent = {state: Signal() for state in rows.SIGNALS}
    with patch.dict(rows.SIGNALS, silent), patch("scraping.recovery.breakers.overrides.breaker_operated", Signal()):
        yield


@pytest.mark.both
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_receivers")
@pytest.mark.requirement("FR-003", "FS-12", "DM-2", "BX-7")
@pytest.mark.parametrize("kind", [BreakerMachine, SourceBreakerMachine], ids=["of a match", "of a source"])
def test_holds_in_every_order_of_events(kind: type[BreakerMachine]) -> None:
    run_state_machine_as_test(
        kind,
        settings=settings(
            max_examples=10,
            stateful_step_count=25,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
