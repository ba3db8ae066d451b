"""The replay of spooled updates: in order, once, never over newer data."""

from __future__ import annotations

import uuid
from datetime import datetime

import pytest
from django.db import OperationalError

from scraping.matches import ingest
from scraping.models import EventAction, Match, MatchEvent, MatchRef, ScrapeTask, Snapshot, TaskState
from scraping.outage import replay
from scraping.outage.spool import Update
from scraping.payloads import Event, Payload
from scraping.policies.interval import Pace
from tests.factories import make_ref
from tests.scraping.builders import ball, balls, chasing, later, payload_of, read

pytestmark = [pytest.mark.both, pytest.mark.django_db, pytest.mark.requirement("BX-13", "EC-2", "FR-020")]


@pytest.fixture
def ref() -> MatchRef:
    found = make_ref()
    read(found, payload_of(found, chasing(100), events=balls(1, 2, 3)))
    return found


def waited(ref: MatchRef, runs: int, *events: Event, at: float) -> Update:
    return update_of(ref, payload_of(ref, chasing(runs), at=later(at), events=events))


def update_of(ref: MatchRef, payload: Payload) -> Update:
    return Update(uuid.uuid4(), ref.pk, ref.key, "w-1", True, payload)


def write(*updates: Update, now: datetime | None = None) -> int:
    return replay.replay(updates, pace=Pace(), now=now or later(120))


def runs(match: Match) -> int:
    match.refresh_from_db()
    return int(match.payload["innings"][1]["runs"])


def event_ids() -> list[str]:
    return list(MatchEvent.objects.filter(is_current=True).order_by("ordinal").values_list("event_id", flat=True))


class TestInOrder:
    def test_every_state_of_the_outage_becomes_a_snapshot(self, ref: MatchRef) -> None:
        assert write(waited(ref, 101, *balls(2, 3, 4), at=10), waited(ref, 105, *balls(3, 4, 5), at=20)) == 2
        assert runs(ref.match) == 105
        assert [s.payload["innings"][1]["runs"] for s in Snapshot.objects.order_by("sequence")] == [100, 101, 105]
        assert event_ids() == [f"2-{n}" for n in range(1, 6)]

    def test_the_age_is_that_of_the_reading(self, ref: MatchRef) -> None:
        write(waited(ref, 101, at=10), now=later(300))
        ref.match.refresh_from_db()
        assert ref.match.last_scraper_update == later(10)

    def test_each_update_has_a_journal_row(self, ref: MatchRef) -> None:
        one = waited(ref, 101, at=10)
        write(one)
        task = ScrapeTask.objects.get(request_id=one.update_id)
        assert (task.state, task.started_at, task.finished_at) == (TaskState.SUCCESS, later(10), later(120))
        assert "away" in task.reason


class TestOnce:
    def test_writing_again_does_nothing(self, ref: MatchRef) -> None:
        updates = [waited(ref, 101, *balls(3, 4), at=10), waited(ref, 105, *balls(4, 5), at=20)]
        write(*updates)
        before = (Snapshot.objects.count(), MatchEvent.objects.count(), ScrapeTask.objects.count())
        assert write(*updates) == 0
        assert (Snapshot.objects.count(), MatchEvent.objects.count(), ScrapeTask.objects.count()) == before

    def test_two_workers_that_read_the_same_write_one_effect(self, ref: MatchRef) -> None:
        write(waited(ref, 101, *balls(3, 4), at=10))
        write(waited(ref, 101, *balls(3, 4), at=10))
        assert Snapshot.objects.count() == 2
        assert event_ids() == ["2-1", "2-2", "2-3", "2-4"]


class TestNeverOverNewerData:
    @pytest.fixture
    def newer(self, ref: MatchRef) -> MatchRef:
        """Another worker has read the match after the outage: its list begins later."""
        read(ref, payload_of(ref, chasing(120), at=later(100), events=[ball(8), ball(9, runs=6)]))
        return ref

    def test_the_state_stays(self, newer: MatchRef) -> None:
        write(waited(newer, 101, at=10))
        assert runs(newer.match) == 120
        newer.match.refresh_from_db()
        assert newer.match.last_scraper_update == later(100)

    def test_missing_events_are_added(self, newer: MatchRef) -> None:
        write(waited(newer, 101, *balls(3, 4, 5, 6, 7), at=10))
        assert event_ids() == [f"2-{n}" for n in range(1, 10)]
        newer.refresh_from_db()
        assert newer.events_through == 9

    def test_events_that_were_corrected_since_stay_corrected(self, newer: MatchRef) -> None:
        write(waited(newer, 101, ball(9, runs=1), at=10))
        assert MatchEvent.objects.get(event_id="2-9").runs == 6

    def test_events_retracted_since_stay_retracted(self, ref: MatchRef) -> None:
        whole = {"events_are_complete": True}
        read(ref, payload_of(ref, chasing(120), at=later(100), events=balls(1, 2), **whole))
        write(update_of(ref, payload_of(ref, chasing(101), at=later(10), events=balls(1, 2, 3, 4), **whole)))
        standing = MatchEvent.objects.filter(is_current=True).exclude(action=EventAction.RETRACT)
        assert sorted(standing.values_list("event_id", flat=True)) == ["2-1", "2-2"]

    def test_the_match_gets_a_new_sequence_number(self, newer: MatchRef) -> None:
        newer.match.refresh_from_db()
        before = newer.match.sequence
        write(waited(newer, 101, *balls(4), at=10))
        newer.match.refresh_from_db()
        assert newer.match.sequence == before + 1 == Snapshot.objects.latest("sequence").sequence


class TestMergedReplay:
    def test_every_event_is_written_and_only_the_last_state(self, ref: MatchRef) -> None:
        updates = [
            waited(ref, 101, *balls(2, 3, 4), at=10),
            waited(ref, 105, ball(5, runs=1), at=20),
            waited(ref, 109, ball(5, runs=4), ball(6), at=30),
        ]
        assert replay.replay(updates, pace=Pace(), now=later(120), is_merged=True) == 3
        assert runs(ref.match) == 109
        assert Snapshot.objects.count() == 2
        assert event_ids() == [f"2-{n}" for n in range(1, 7)]
        assert MatchEvent.objects.get(event_id="2-5").runs == 4
        assert replay.replay(updates, pace=Pace(), now=later(130), is_merged=True) == 0

    def test_updates_written_before_are_skipped(self, ref: MatchRef) -> None:
        first, second = waited(ref, 101, *balls(4), at=10), waited(ref, 105, *balls(5), at=20)
        write(first)
        assert replay.replay([first, second], pace=Pace(), now=later(120), is_merged=True) == 1
        assert runs(ref.match) == 105


class TestOneBadUpdate:
    def test_does_not_block_the_valid_ones(self, ref: MatchRef, caplog: pytest.LogCaptureFixture) -> None:
        complete = {"events_are_complete": True}
        bad = update_of(ref, payload_of(ref, chasing(110), at=later(15), events=[ball(99)], **complete))
        read(ref, payload_of(ref, chasing(100), at=later(5), events=balls(*range(1, 30)), **complete))
        assert write(waited(ref, 101, at=10), bad, waited(ref, 105, at=20)) == 2
        assert runs(ref.match) == 105
        assert not ScrapeTask.objects.filter(request_id=bad.update_id).exists()
        assert any("left out" in record.message for record in caplog.records)

    def test_a_deleted_match_is_logged_and_skipped(self, ref: MatchRef) -> None:
        gone = waited(ref, 101, at=10)
        Match.objects.all().delete()
        assert write(gone) == 0


def test_a_second_outage_rolls_the_batch_back(ref: MatchRef, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = waited(ref, 101, at=10), waited(ref, 105, at=20)
    real = ingest.apply

    def dies_at_the_second(payload: Payload, **rest: object) -> object:
        if payload is second.payload:
            raise OperationalError("server closed the connection unexpectedly")
        return real(payload, **rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(ingest, "apply", dies_at_the_second)
        with pytest.raises(OperationalError):
            write(first, second)
    assert runs(ref.match) == 100
    assert write(first, second) == 2
