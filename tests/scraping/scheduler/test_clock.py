"""Fault 24: the machine's clock is set an hour back or forward."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError

from scraping.matches import lifecycle
from scraping.models import Match, MatchRef, ScrapeTask
from scraping.scheduler import clock, due
from scraping.scheduler.clock import ClockJumps
from scraping.scheduler.loop import SchedulerLoop, Step
from scraping.scheduler.recover import rescue_expired
from tests.factories import NOW, make_match, make_ref
from tests.scraping.builders import claimed, later, open_task

pytestmark = [pytest.mark.fault, pytest.mark.fault_number(24)]
HOUR = 3600.0


@pytest.mark.parametrize(
    ("wall", "monotonic", "jump"),
    [
        pytest.param(0.1, 0.1, 0, id="as it should be"),
        pytest.param(4, 0.1, 0, id="a correction"),
        pytest.param(60, 60, 0, id="a slow round"),
        pytest.param(3600.1, 0.1, 3600, id="set forward"),
        pytest.param(-3599.9, 0.1, -3600, id="set back"),
    ],
)
def test_finds_jumps_of_the_clock_only(wall: float, monotonic: float, jump: float) -> None:
    jumps = ClockJumps()
    assert jumps.seconds_since_last(NOW, 100.0) == 0
    assert jumps.seconds_since_last(later(wall), 100.0 + monotonic) == pytest.approx(jump, abs=0.01)


def loop(*steps: Step) -> SchedulerLoop:
    return SchedulerLoop(steps, holder="me", tick_seconds=0.01, lease_seconds=10)


def _is_away(*_: object) -> int:
    raise OperationalError("the database system is shutting down")


@pytest.mark.both
@pytest.mark.django_db
class TestClockSetBackOneHour:
    """All times in the database are an hour ahead of the clock."""

    @pytest.fixture
    def running(self) -> SchedulerLoop:
        leader = loop()
        leader.check_clock(NOW, 0.0)
        assert leader.tick(now=NOW) == 0
        return leader

    def test_shifts_the_next_poll_of_a_match(self, running: SchedulerLoop) -> None:
        match = make_match(lifecycle="ACTIVE", last_scraper_update=NOW)
        ref = make_ref(match=match, captured_at=NOW, next_poll_at=later(2.5))
        running.check_clock(later(-HOUR), 0.0)
        assert list(due.due_refs(later(-HOUR + 2.6))) == [ref]
        assert Match.objects.get().last_scraper_update == later(-HOUR), "else it would look fresh for an hour"

    def test_shifts_due_and_hint_times_of_a_task(self, running: SchedulerLoop) -> None:
        open_task(make_ref())
        ScrapeTask.objects.update(run_at=later(8), hinted_at=later(-1))
        running.check_clock(later(-HOUR), 0.0)
        task = ScrapeTask.objects.get()
        assert (task.run_at, task.hinted_at) == (later(8 - HOUR), later(-1 - HOUR))

    def test_shifts_the_lease_of_a_dead_worker(self, running: SchedulerLoop) -> None:
        claimed(open_task(make_ref()))
        running.check_clock(later(-HOUR), 0.0)
        assert rescue_expired(later(-HOUR + 16)) == 1

    def test_a_standby_takes_over_when_the_lease_expires(self, running: SchedulerLoop) -> None:
        running.check_clock(later(-HOUR), 0.0)
        other = SchedulerLoop([Step("one", lambda _: 1, 0)], holder="other", tick_seconds=0.01, lease_seconds=10)
        assert other.tick(now=later(-HOUR + 1)) == 0
        other._leadership.check_at_once()
        assert other.tick(now=later(-HOUR + 11)) == 1

    def test_shifts_the_times_of_a_silent_match(self, running: SchedulerLoop) -> None:
        silent = {"silence_rung": 5, "silence_rung_at": NOW, "silent_since": NOW, "frozen_at": NOW}
        make_ref(match=make_match(last_scraper_update=NOW, **silent), called_in_at=NOW)
        running.check_clock(later(-HOUR), 0.0)
        match, then = Match.objects.get(), later(-HOUR)
        assert (match.silence_rung_at, match.silent_since, match.frozen_at) == (then, then, then)
        assert MatchRef.objects.get().called_in_at == then

    def test_shifts_the_end_of_a_pause(self, running: SchedulerLoop) -> None:
        make_match(lifecycle="PAUSED", pause_until=later(300))
        running.check_clock(later(-HOUR), 0.0)
        assert lifecycle.end_pauses(now=later(-HOUR + 301)) == 1

    def test_is_done_later_while_the_database_is_away(
        self, running: SchedulerLoop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ref = make_ref(next_poll_at=later(2.5))
        with monkeypatch.context() as patched:
            patched.setattr(clock.transaction, "atomic", _is_away)
            for seconds in (0, 1):
                with pytest.raises(OperationalError):
                    running.check_clock(later(seconds - HOUR), float(seconds))
        running.check_clock(later(2 - HOUR), 2.0)
        running.check_clock(later(3 - HOUR), 3.0)
        ref.refresh_from_db()
        assert ref.next_poll_at == later(2.5 - HOUR), "shifted once, by the same time as the clock"

    def test_a_standby_leaves_it_to_the_leader(self, running: SchedulerLoop) -> None:
        ref = make_ref(next_poll_at=later(300))
        other = SchedulerLoop([], holder="other", tick_seconds=0.01, lease_seconds=10)
        other.check_clock(NOW, 0.0)
        assert other.tick(now=NOW) == 0
        other.check_clock(later(-HOUR), 0.0)
        running.check_clock(later(-HOUR), 0.0)
        ref.refresh_from_db()
        assert ref.next_poll_at == later(300 - HOUR), "not twice"

    def test_leaves_past_times_alone(self, running: SchedulerLoop) -> None:
        long_ago = NOW - timedelta(hours=5)
        make_ref(captured_at=long_ago, next_poll_at=long_ago)
        running.check_clock(later(-HOUR), 0.0)
        ref = MatchRef.objects.get()
        assert (ref.captured_at, ref.next_poll_at) == (long_ago, long_ago)


@pytest.mark.django_db
def test_one_hour_forward_delays_the_watchdogs_only() -> None:
    worked, watched = [], []
    leader = loop(
        Step("work", lambda now: worked.append(now) or 1, 0), Step("watch", lambda now: watched.append(1) or 1, 5)
    )
    leader.check_clock(NOW, 0.0)
    leader.tick(now=NOW)
    leader._steps[1].due_at = 0.0
    leader.check_clock(later(HOUR), 0.1)
    leader.tick(now=later(HOUR))
    assert (len(worked), len(watched)) == (2, 1)
