"""A source whose pages can no longer be parsed: reported, polled rarely (EC-1)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest

from monitoring.models import Alert
from scraping.errors import EgressRefused, LayoutChanged, SchemaBreak, Transient
from scraping.models import Breaker, BreakerState, MatchRef, ScrapeError, ScrapeTask, TaskState
from scraping.policies import breaker as machine
from scraping.policies.breaker import BreakerPolicy, BreakerView
from scraping.policies.drift import DriftPolicy
from scraping.policies.source_breaker import after_drift_failure, keep_drift_count, policy_for
from scraping.recovery import breakers
from scraping.scheduler.limits import breaker_limits
from scraping.scheduler.recover import evaluate_source_breakers
from tests.factories import NOW, make_match, make_ref
from tests.scraping.attempts import Clock, attempt, stopped_clock
from tests.scraping.builders import POLICIES, payload_of

USUAL = BreakerPolicy(failure_threshold=0, timeout_seconds=900.0, success_threshold=3, probes=3)
DRIFT = DriftPolicy(failures=10, retry_seconds=300.0)
NONSENSE = "no match header found; tried .header, .team with .name"


@pytest.mark.requirement("EC-1")
class TestPolicy:
    """The pure policy: from a view and an outcome to a new view."""

    def nonsense(self, view: BreakerView, times: int = 1, task: str = "1") -> BreakerView:
        for _ in range(times):
            view = after_drift_failure(view, task, USUAL, DRIFT, now=NOW, why=NONSENSE)
        return view

    def test_the_eleventh_failure_in_a_row_opens_it_for_five_minutes(self) -> None:
        ten = self.nonsense(BreakerView(), times=10)
        assert (ten.state, ten.failure_count) == (machine.CLOSED, 10)
        eleven = self.nonsense(ten)
        assert (eleven.state, eleven.failure_count) == (machine.OPEN, 11)
        assert eleven.open_until == NOW + timedelta(minutes=5)
        assert NONSENSE in eleven.reason

    def test_a_failed_probe_opens_it_for_another_five_minutes(self) -> None:
        half = BreakerView(state=machine.HALF_OPEN, failure_count=11, probes={"7": NOW + timedelta(seconds=60)})
        again = self.nonsense(half, task="7")
        assert (again.state, again.failure_count) == (machine.OPEN, 12)
        assert again.open_until == NOW + timedelta(minutes=5)

    def test_a_reading_that_began_before_it_opened_changes_nothing(self) -> None:
        opened = self.nonsense(BreakerView(), times=11)
        assert self.nonsense(opened, task="8") == opened

    def test_a_forced_state_is_kept(self) -> None:
        forced = machine.forced_closed(NOW + timedelta(hours=1), "we know")
        assert self.nonsense(forced, times=20) == forced

    def test_a_changed_source_is_closed_by_one_good_probe_any_other_by_three(self) -> None:
        assert policy_for(BreakerView(failure_count=11), USUAL, DRIFT).success_threshold == 1
        assert policy_for(BreakerView(failure_count=10), USUAL, DRIFT) == USUAL

    def test_the_count_is_kept_until_the_breaker_closes(self) -> None:
        opened = self.nonsense(BreakerView(), times=11)
        waited = keep_drift_count(lambda view: machine.settled(view, NOW + timedelta(minutes=6)))(opened)
        assert (waited.state, waited.failure_count) == (machine.HALF_OPEN, 11)
        assert keep_drift_count(lambda _: machine.closed("well"))(waited).failure_count == 0

    def test_a_failed_probe_of_another_class_does_not_count(self) -> None:
        half = BreakerView(state=machine.HALF_OPEN, failure_count=4, probes={"7": NOW + timedelta(seconds=60)})
        after = keep_drift_count(lambda view: machine.after_failure(view, "7", USUAL, NOW, "502"))(half)
        assert (after.state, after.failure_count) == (machine.OPEN, 4)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with stopped_clock(monkeypatch) as stopped:
        yield stopped


@pytest.fixture
def refs(db: None) -> list[MatchRef]:
    """Four live matches of one source."""
    return [make_ref(make_match()) for _ in range(4)]


@pytest.mark.both
@pytest.mark.requirement("EC-1")
class TestSource:
    def drift(self, refs: list[MatchRef], clock: Clock, times: int) -> None:
        """Makes readings that cannot be parsed, of the matches in turn."""
        for number in range(times):
            attempt(refs[number % len(refs)], clock, LayoutChanged(NONSENSE))

    def row(self, refs: list[MatchRef]) -> Breaker:
        return Breaker.objects.get(source=refs[0].source)

    def read(self, ref: MatchRef, clock: Clock, capture: object) -> ScrapeTask:
        with capture(execute=True):  # type: ignore[operator]  # what follows a commit follows it here too
            return attempt(ref, clock, payload_of(ref, at=clock.now))

    def test_the_eleventh_failure_of_any_match_raises_an_alert(
        self, refs: list[MatchRef], clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.drift(refs, clock, 10)
        assert self.row(refs).state == BreakerState.CLOSED
        assert not [one for one in caplog.records if one.levelno == logging.CRITICAL]
        self.drift(refs[2:], clock, 1)
        critical = [one for one in caplog.records if one.levelno == logging.CRITICAL]
        assert len(critical) == 1
        assert ".header, .team with .name" in critical[0].getMessage()
        assert refs[2].url in critical[0].getMessage()
        alert = Alert.objects.get(key="changed:crex")
        assert (alert.severity, alert.closed_at) == ("critical", None)
        row = self.row(refs)
        assert (row.state, row.failure_count) == (BreakerState.OPEN, 11)
        assert row.open_until == clock.now + timedelta(minutes=5)
        assert breaker_limits(clock.now) == {refs[0].source_id: 0}  # nothing of it is hinted

    def test_a_good_reading_of_any_match_resets_the_count(
        self, refs: list[MatchRef], clock: Clock, django_capture_on_commit_callbacks: object
    ) -> None:
        self.drift(refs[:3], clock, 9)
        self.read(refs[3], clock, django_capture_on_commit_callbacks)
        assert self.row(refs).failure_count == 0
        self.drift(refs[:3], clock, 3)
        assert self.row(refs).state == BreakerState.CLOSED
        assert not Alert.objects.filter(key="changed:crex").exists()

    def test_other_failures_neither_count_nor_reset_the_count(self, refs: list[MatchRef], clock: Clock) -> None:
        self.drift(refs, clock, 3)
        attempt(refs[3], clock, Transient("502"))
        attempt(refs[2], clock, EgressRefused("it leads to 169.254.169.254"))
        assert self.row(refs).failure_count == 3

    def test_one_task_tries_every_five_minutes_and_the_first_success_closes_it(
        self, refs: list[MatchRef], clock: Clock, django_capture_on_commit_callbacks: object
    ) -> None:
        self.drift(refs, clock, 10)
        self.drift(refs[2:], clock, 1)
        clock.forward(301)
        evaluate_source_breakers(clock.now)
        assert self.row(refs).state == BreakerState.HALF_OPEN
        assert breaker_limits(clock.now) == {refs[0].source_id: 1}
        before = ScrapeError.objects.count()
        attempt(refs[3], clock, SchemaBreak("`score` is missing"))
        assert ScrapeError.objects.count() == before + 1
        row = self.row(refs)
        assert (row.state, row.failure_count, row.open_until) == ("OPEN", 12, clock.now + timedelta(minutes=5))
        assert Alert.objects.get(key="changed:crex").closed_at is None
        clock.forward(301)
        evaluate_source_breakers(clock.now)
        assert self.read(refs[3], clock, django_capture_on_commit_callbacks).state == TaskState.SUCCESS
        assert (self.row(refs).state, self.row(refs).failure_count) == (BreakerState.CLOSED, 0)
        assert Alert.objects.get(key="changed:crex").closed_at is not None

    def test_a_readable_list_does_not_close_it(self, refs: list[MatchRef], clock: Clock) -> None:
        self.drift(refs, clock, 11)
        clock.forward(301)
        evaluate_source_breakers(clock.now)
        source = type(refs[0].source).objects.select_related("breaker").get(pk=refs[0].source_id)
        breakers.guard(4711, source, policies=POLICIES, now=clock.now)
        assert "4711" in self.row(refs).probes
        breakers.record_success(4711, source, policies=POLICIES, now=clock.now)
        row = self.row(refs)
        assert (row.state, row.failure_count, row.probes) == (BreakerState.HALF_OPEN, 11, {})
