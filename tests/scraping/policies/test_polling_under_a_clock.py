"""The pace of a match under a test clock: real scheduler steps and ingest, a scripted reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from scraping.configuration.policies import Policies
from scraping.errors import ResourceLost, StoreAway, Transient
from scraping.matches.lifecycle import archive_old_matches
from scraping.models import Match, MatchLifecycle, MatchRef, Priority, ScrapeTask, TaskState
from scraping.payloads import Innings, MatchState, Phase, Resource, Status
from scraping.policies.interval import Pace
from scraping.worker.scrape import scrape
from tests.factories import NOW, cricket_state, make_match, make_ref, make_source, make_unread_match
from tests.scraping.attempts import Clock, stopped_clock
from tests.scraping.builders import POLICIES, Outcome, chasing, engine_with, open_task, payload_of
from tests.scraping.due_tasks import open_due_tasks

pytestmark = pytest.mark.django_db

PATIENT = replace(POLICIES, breaker=replace(POLICIES.breaker, failure_threshold=999), pause_after_failures=999)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with stopped_clock(monkeypatch) as clock:
        yield clock


@pytest.fixture
def ref(clock: Clock) -> MatchRef:
    """In play, just read."""
    ref = make_ref(make_unread_match(), captured_at=None, next_poll_at=NOW)
    good(ref, clock)
    return row(ref)


def row(ref: MatchRef) -> MatchRef:
    return MatchRef.objects.select_related("match", "source").get(pk=ref.pk)


def attempt(ref: MatchRef, clock: Clock, outcome: Outcome, policies: Policies = PATIENT) -> MatchRef:
    """The open task, or a new one, when it is due."""
    waiting = ScrapeTask.objects.filter(ref=ref, resource=Resource.SCORECARD, state=TaskState.PENDING).first()
    task_id = waiting.pk if waiting else open_task(ref, at=clock.now)
    clock.now = max(clock.now, waiting.run_at) if waiting else clock.now
    scrape([task_id], engine_with(outcome, policies=policies))
    return row(ref)


def good(ref: MatchRef, clock: Clock, state: MatchState | None = None, policies: Policies = PATIENT) -> MatchRef:
    """Makes a good reading, then moves the clock to the next poll."""
    payload = payload_of(ref, state or chasing(95), at=clock.now)
    found = attempt(ref, clock, payload, policies)
    assert found.next_poll_at is not None
    clock.now = max(clock.now, found.next_poll_at)
    return found


def add_unchanged_polls(ref: MatchRef, polls: int) -> None:
    """Sets the row as after this number of unchanged polls."""
    MatchRef.objects.filter(pk=ref.pk).update(unchanged_polls=polls)


def pace_of(ref: MatchRef) -> tuple[float, str]:
    return ref.polling_interval_seconds, ref.pace_reason


class TestErrors:
    @pytest.mark.requirement("US5.1", "FR-022")
    def test_slow_a_match_step_by_step_until_five_calm_minutes(self, ref: MatchRef, clock: Clock) -> None:
        found = [pace_of(attempt(ref, clock, Transient("502")))[0] for _ in range(20)]
        assert found == [2.5] * 4 + [5.0] * 5 + [10.0] * 10 + [20.0]
        last_error = clock.now
        while clock.now < last_error + timedelta(minutes=5):
            after = good(ref, clock)
            assert pace_of(after) == (20.0, "slowed by errors"), "one good answer changes nothing"
        after = good(ref, clock)
        assert pace_of(after) == (2.5, "in play")
        assert (after.slowed_seconds, after.slowed_until, after.error_level) == (0, None, 0)

    @pytest.mark.requirement("US5.1")
    def test_count_though_every_second_attempt_succeeds(self, ref: MatchRef, clock: Clock) -> None:
        found = []
        for _ in range(10):
            attempt(ref, clock, Transient("502"))
            found.append(good(ref, clock).polling_interval_seconds)
        assert found == [2.5] * 4 + [5.0] * 5 + [10.0]

    def test_that_are_rare_slow_no_match(self, ref: MatchRef, clock: Clock) -> None:
        for number in range(15):
            clock.now = NOW + timedelta(minutes=number + 1)
            failed = attempt(ref, clock, Transient("502"))
            assert (failed.polling_interval_seconds, failed.slowed_until) == (2.5, None)
            assert good(ref, clock).polling_interval_seconds == 2.5

    @pytest.mark.parametrize("fault", [ResourceLost("Chromium died"), StoreAway("away")], ids=["browser", "store"])
    def test_of_our_own_slow_no_match(self, ref: MatchRef, clock: Clock, fault: Exception) -> None:
        for _ in range(9):
            failed = attempt(ref, clock, fault)
        assert (pace_of(failed), failed.error_level, failed.slowed_until) == ((2.5, "in play"), 0, None)
        assert failed.next_poll_at == clock.now + timedelta(seconds=2.5)

    def test_change_nothing_where_the_pace_is_not_adaptive(self, ref: MatchRef, clock: Clock) -> None:
        steady = replace(PATIENT, pace=Pace(is_adaptive=False))
        for _ in range(12):
            failed = attempt(ref, clock, Transient("502"), steady)
        assert pace_of(failed) == (2.5, "the usual pace")


class TestPhases:
    @pytest.mark.requirement("US5.3", "FR-024")
    def test_an_announced_break_and_the_first_ball_after_it(self, ref: MatchRef, clock: Clock) -> None:
        found = [good(ref, clock, chasing(95, phase=Phase.DRINKS)).polling_interval_seconds for _ in range(12)]
        assert found == [2.5] * 10 + [30.0] * 2
        assert pace_of(row(ref))[1] == "a break: no change in 11 polls"
        assert pace_of(good(ref, clock, chasing(96))) == (2.5, "in play")

    @pytest.mark.requirement("FR-024")
    def test_an_unannounced_break(self, ref: MatchRef, clock: Clock) -> None:
        add_unchanged_polls(ref, 37)
        found = [good(ref, clock).polling_interval_seconds for _ in range(4)]
        assert found == [2.5] * 2 + [30.0] * 2
        assert pace_of(good(ref, clock, chasing(96))) == (2.5, "in play")

    @pytest.mark.requirement("US5.4")
    def test_a_rush(self, ref: MatchRef, clock: Clock) -> None:
        found = [good(ref, clock, chasing(95 + number)).polling_interval_seconds for number in range(1, 11)]
        assert found[-1] == 2.0
        assert pace_of(row(ref))[1].startswith("a rush: ")

    def test_a_change_at_a_lighter_source_is_activity_too(self, ref: MatchRef, clock: Clock) -> None:
        """Otherwise it would be read rarely and could not replace a failing heavier source."""
        light = make_ref(ref.match, source=make_source("other", adapter="crex", precedence_weight=10), captured_at=None)
        sequence = good(ref, clock, chasing(95)).match.sequence
        moving = [good(light, clock, chasing(50 + number)).recent_changes for number in range(3)]
        assert (moving, row(ref).match.sequence) == (["1", "11", "111"], sequence)


def whole_reads() -> int:
    return ScrapeTask.objects.filter(resource=Resource.FULL).count()


ALL_OUT = cricket_state(
    innings=(Innings(number=1, team="team_a", runs=187, wickets=10, overs="18.2"),), current_innings=1
)
WON = chasing(188, overs="19.5", metadata={"match_type": "T20"})


@pytest.mark.requirement("FR-024")
class TestMilestones:
    @pytest.mark.parametrize(("detects", "expected"), [(True, 1), (False, 0)])
    def test_the_next_innings_is_a_reason_to_read_everything(
        self, ref: MatchRef, clock: Clock, detects: bool, expected: int
    ) -> None:
        policies = replace(PATIENT, pace=Pace(detects_phases=detects))
        good(ref, clock, chasing(95, current_innings=1), policies)
        good(ref, clock, chasing(95, current_innings=2), policies)
        assert whole_reads() == expected

    @pytest.mark.parametrize(("detects", "expected"), [(True, 1), (False, 0)])
    @pytest.mark.parametrize(
        ("state", "polls"),
        [pytest.param(ALL_OUT, 10, id="all out, no break announced"), pytest.param(WON, 40, id="won, still live")],
    )
    def test_an_unannounced_end_of_the_innings_is_one_too(
        self, clock: Clock, state: MatchState, polls: int, detects: bool, expected: int
    ) -> None:
        policies = replace(PATIENT, pace=Pace(detects_phases=detects))
        ref = make_ref(make_unread_match(), captured_at=None, next_poll_at=NOW)
        good(ref, clock, state, policies)
        add_unchanged_polls(ref, polls - 2)
        good(ref, clock, state, policies)
        assert whole_reads() == 0
        for _ in range(3):
            good(ref, clock, state, policies)
        assert whole_reads() == expected

    def test_an_overdue_end_is_polled_for(self, clock: Clock) -> None:
        ref = make_ref(make_unread_match(), captured_at=None, next_poll_at=NOW)
        good(ref, clock, WON)
        add_unchanged_polls(ref, 40)
        found = good(ref, clock, WON)
        assert pace_of(found) == (2.5, "its end is due: no change in 41 polls")
        failed = attempt(ref, clock, Transient("502"))
        assert pace_of(failed) == (2.5, "its end is due: no change in 41 polls")


Read = Callable[[datetime], MatchState]


def run_until(ref: MatchRef, clock: Clock, end: datetime, read: Read) -> list[datetime]:
    """Runs scheduler and worker until a time; returns the times of the reads."""
    read_at = []
    while True:
        open_due_tasks(clock.now)
        for task in ScrapeTask.objects.filter(state=TaskState.PENDING, run_at__lte=clock.now):
            payload = payload_of(ref, read(clock.now), at=clock.now)
            scrape([task.pk], engine_with(payload))
            task.refresh_from_db()
            assert task.state == TaskState.SUCCESS, task.reason
            read_at.append(clock.now)
        due = row(ref).next_poll_at
        assert due is None or due > clock.now, "due tasks are opened and done"
        if due is None or due > end:
            clock.now = end
            return read_at
        clock.now = max(clock.now, due)


START = NOW + timedelta(hours=2)


def upcoming(_: datetime) -> MatchState:
    return cricket_state(status=Status.UPCOMING, phase=Phase.SCHEDULED, innings=(), start_time=START)


def late_start(minutes: float) -> Read:
    """A source that announces the start of the match late."""
    begins = START + timedelta(minutes=minutes)
    return lambda now: upcoming(now) if now < begins else chasing(95, start_time=START)


class TestUpcomingMatch:
    @pytest.fixture
    def coming(self, clock: Clock) -> MatchRef:
        return make_ref(make_unread_match(start_time=START), captured_at=None, next_poll_at=NOW)

    @pytest.mark.requirement("SO-2", "SO-8")
    def test_is_polled_when_it_starts(self, coming: MatchRef, clock: Clock) -> None:
        early = run_until(coming, clock, START - timedelta(hours=1, seconds=1), upcoming)
        assert len(early) == 12, "every five minutes"
        assert row(coming).match.priority == Priority.COMPLETED
        run_until(coming, clock, START - timedelta(minutes=50), upcoming)
        assert row(coming).match.priority == Priority.IMMINENT
        run_until(coming, clock, START + timedelta(seconds=5), upcoming)
        assert pace_of(row(coming)) == (5.0, "it should have begun")
        read = late_start(1)
        read_at = run_until(coming, clock, START + timedelta(minutes=1, seconds=5), read)
        begun = [at for at in read_at if read(at).status is Status.LIVE]
        assert begun[0] - (START + timedelta(minutes=1)) <= timedelta(seconds=5)
        match = Match.objects.get()
        assert (match.status, match.priority, match.lifecycle) == ("live", Priority.LIVE, MatchLifecycle.ACTIVE)
        assert row(coming).polling_interval_seconds == 2.5

    def test_that_never_begins_is_polled_less_and_less(self, coming: MatchRef, clock: Clock) -> None:
        found = []
        for minutes in (29, 60, 6 * 60, 24 * 60):
            clock.now = START + timedelta(minutes=minutes)
            run_until(coming, clock, clock.now, upcoming)
            found.append(row(coming).polling_interval_seconds)
        assert found == [5, 10, 60, 240]


class TestCompletedMatch:
    @pytest.mark.requirement("SO-8", "SO-16")
    def test_is_read_every_five_minutes_then_archived(self, clock: Clock) -> None:
        match = make_match(status=Status.COMPLETED, lifecycle=MatchLifecycle.COMPLETED, completed_at=NOW)
        ref = make_ref(match, captured_at=NOW - timedelta(minutes=5), next_poll_at=NOW)

        def over(_: datetime) -> MatchState:
            return cricket_state(status=Status.COMPLETED, phase=Phase.FINISHED)

        read_at = run_until(ref, clock, NOW + timedelta(minutes=21), over)
        assert {b - a for a, b in pairwise(read_at)} == {timedelta(minutes=5)}
        assert pace_of(row(ref)) == (300.0, "it is over")
        clock.now = NOW + timedelta(hours=24)
        assert archive_old_matches(clock.now) == 0
        clock.forward(1)
        assert archive_old_matches(clock.now) == 1
        assert Match.objects.get().lifecycle == MatchLifecycle.ARCHIVED
        assert run_until(ref, clock, clock.now + timedelta(hours=2), over) == []
