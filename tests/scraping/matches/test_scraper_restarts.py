"""EC-7: each scraper of a long match continues where the previous one stopped."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from monitoring.models import AuditEntry, AuditOutcome
from scraping.configuration import policies
from scraping.matches import scrapers
from scraping.models import Match, MatchEvent, MatchRef, Scraper
from scraping.payloads import Event, MatchState, Phase
from scraping.scheduler.recover import restart_scrapers
from scraping.signals import scraper_took_over
from tests.factories import NOW, make_event, make_match, make_ref, make_scraper
from tests.scraping.attempts import Clock, attempt, stopped_clock
from tests.scraping.builders import POLICIES, balls, chasing, payload_of

pytestmark = [pytest.mark.both, pytest.mark.django_db, pytest.mark.requirement("EC-7")]
LIFE = timedelta(hours=6)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with stopped_clock(monkeypatch) as stopped:
        yield stopped


@pytest.fixture(autouse=True)
def usual_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "current", lambda: POLICIES)


class TestQuietMoment:
    @pytest.mark.parametrize(
        ("age", "phase", "unchanged", "expected"),
        [
            pytest.param(timedelta(hours=5, minutes=20), Phase.STUMPS, 99, 0, id="too young"),
            pytest.param(timedelta(hours=5, minutes=31), Phase.PLAY, 3, 0, id="in play"),
            pytest.param(timedelta(hours=5, minutes=31), Phase.LUNCH, 0, 1, id="lunch"),
            pytest.param(timedelta(hours=5, minutes=31), Phase.STUMPS, 0, 1, id="stumps"),
            pytest.param(timedelta(hours=5, minutes=31), Phase.RAIN, 0, 1, id="rain"),
            pytest.param(timedelta(hours=5, minutes=31), Phase.PLAY, 12, 1, id="nothing has changed for a while"),
            pytest.param(timedelta(hours=6, seconds=1), Phase.PLAY, 0, 1, id="its lifetime is over"),
        ],
    )
    def test_is_waited_for_in_the_last_half_hour(
        self, age: timedelta, phase: Phase, unchanged: int, expected: int
    ) -> None:
        match = make_match(phase=phase)
        make_scraper(make_ref(match, unchanged_polls=unchanged), start_time=NOW - age)
        assert restart_scrapers(NOW) == expected

    def test_the_reason_is_on_the_stopped_scraper(self) -> None:
        make_scraper(make_ref(make_match(phase=Phase.TEA)), start_time=NOW - timedelta(hours=5, minutes=45))
        restart_scrapers(NOW)
        worn = Scraper.objects.exclude(stopped_at=None).get()
        assert worn.stop_reason == "lifetime of 6 h ends soon, and the match is in a break (tea)"


class TestPosition:
    def test_is_in_the_database_and_in_the_audit(self) -> None:
        match = make_match()
        ref = make_ref(match, events_through=75, events_seen=75)
        make_event(match, ordinal=75, over="12.3", event_id="2-75", description="Smith to Head, no run")
        make_scraper(ref, start_time=NOW - LIFE - timedelta(seconds=1))
        restart_scrapers(NOW)
        entry = AuditEntry.objects.get(action_type="soft_restart")
        position = {
            "sequence": 1,
            "score": "team_a 187/5 (20.0); team_b 95/3 (12.3)",
            "innings": 2,
            "events_through": 75,
            "last_event": "2-75 12.3 Smith to Head, no run",
        }
        assert entry.metadata | position == entry.metadata


class Watch:
    """A live match with a scraper, read ball by ball."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.ref = clock, make_ref(now=NOW, payload={})
        self.problems: list[str] = []
        scraper_took_over.connect(self._on_first_reading, weak=False, dispatch_uid="watch")

    def _on_first_reading(self, problems: str, **_: Any) -> None:
        self.problems.append(problems)

    def read(self, runs: int, events: tuple[Event, ...], state: MatchState | None = None) -> None:
        self.clock.forward(5)
        attempt(self.ref, self.clock, payload_of(self.ref, state or chasing(runs), at=self.clock.now, events=events))

    def replace(self) -> None:
        self.clock.forward(1)
        scraper = scrapers.active(self.ref)
        assert scraper is not None
        scraper.ref = MatchRef.objects.select_related("match", "source").get(pk=self.ref.pk)
        assert scrapers.restart(scraper, reason="lifetime of 6 h is over", now=self.clock.now)


@pytest.fixture
def watch(clock: Clock) -> Iterator[Watch]:
    yield Watch(clock)
    scraper_took_over.disconnect(dispatch_uid="watch")


@pytest.mark.usefixtures("run_on_commit")
class TestFirstReadingAfterARestart:
    @pytest.fixture
    def run_on_commit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Runs callbacks for the commit at once, because these tests run in one transaction."""
        monkeypatch.setattr("scraping.matches.scrapers.transaction.on_commit", lambda done, **_: done())

    def test_continues_with_nothing_lost_and_nothing_twice(self, watch: Watch) -> None:
        watch.read(95, balls(1, 2, 3))
        before = Match.objects.get()
        watch.replace()
        watch.read(97, balls(2, 3, 4, 5))
        match, ref = Match.objects.get(), MatchRef.objects.get()
        assert watch.problems == [""]
        assert (match.sequence, ref.events_through, ref.events_seen) == (before.sequence + 1, 5, 5)
        assert MatchEvent.objects.filter(is_current=True).count() == 5
        fresh = Scraper.objects.get(stopped_at=None)
        assert (fresh.total_updates, Scraper.objects.count()) == (1, 2)
        entry = AuditEntry.objects.get(action_type="takeover")
        assert (entry.outcome, entry.trigger_condition) == (AuditOutcome.SUCCESS, "lifetime of 6 h is over")

    def test_only_the_first_reading_is_checked(self, watch: Watch) -> None:
        watch.read(95, balls(1))
        watch.replace()
        watch.read(96, balls(1, 2))
        watch.read(97, balls(1, 2, 3))
        assert watch.problems == [""]

    def test_the_first_scraper_of_a_match_is_not_checked(self, watch: Watch) -> None:
        watch.read(95, balls(1))
        assert watch.problems == []

    @pytest.mark.parametrize(
        ("events", "problem"),
        [
            pytest.param(balls(1, 2, 6), "events after number 2 of 6 are still to be read", id="a hole"),
            pytest.param(
                (*balls(1, 2), Event(id="2-again", kind="run", innings=2, over="0.2", ordinal=2)),
                "1 events are there twice",
                id="one twice",
            ),
        ],
    )
    def test_reports_problems(self, watch: Watch, events: tuple[Event, ...], problem: str) -> None:
        watch.read(95, balls(1, 2))
        watch.replace()
        watch.read(96, events)
        assert watch.problems == [problem]
        assert AuditEntry.objects.get(action_type="takeover").outcome == AuditOutcome.PARTIAL

    def test_five_days_of_changes_lose_no_ball(self, watch: Watch) -> None:
        """One ball per reading and a new scraper after every second reading, twenty in all."""
        for number in range(1, 41):
            watch.read(number, balls(*range(max(1, number - 5), number + 1)))
            if number % 2 == 0:
                watch.replace()
        ordinals = MatchEvent.objects.filter(is_current=True).order_by("ordinal").values_list("ordinal", flat=True)
        assert list(ordinals) == list(range(1, 41))
        assert set(watch.problems) == {""}
        assert len(watch.problems) == 19
        assert Scraper.objects.filter(stopped_at=None).count() == 1


def test_a_lower_score_is_reported(clock: Clock) -> None:
    """It is compared with the newest state from before the new scraper's start."""
    ref = make_ref(now=NOW, payload={})
    attempt(ref, clock, payload_of(ref, chasing(95), events=balls(1)))
    clock.forward(5)
    scraper = scrapers.active(ref)
    assert scraper is not None
    scraper.ref = MatchRef.objects.select_related("match", "source").get(pk=ref.pk)
    fresh = scrapers.restart(scraper, reason="old", now=clock.now)
    assert fresh is not None
    read = MatchRef.objects.select_related("match").get()
    read.match.payload, read.match.sequence = chasing(80).model_dump(mode="json"), 0
    found = scrapers.check_first_reading(read, fresh)
    assert found == ("the sequence went from 2 back to 0", "the score is lower than it was")
