"""Ingest of payloads: sequence, events, corrections, gaps, scraper, next poll time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from monitoring.invariants import CheckContext
from monitoring.invariants.data import readings_ahead
from scraping import journal
from scraping.errors import PayloadRejected
from scraping.matches import ingest, late_updates, lifecycle
from scraping.models import (
    Match,
    MatchEvent,
    MatchLifecycle,
    MatchRef,
    Priority,
    Scraper,
    ScraperStatus,
    ScrapeTask,
    Snapshot,
    TaskState,
)
from scraping.payloads import Event, Innings, Integrity, Payload, Phase, Resource, SideScore, Status, Team, Teams, Toss
from scraping.payloads import Score as ScoreOf
from scraping.scheduler import other_tasks
from tests.factories import NOW, cricket_state, football_state, make_ref, make_source, make_unread_match
from tests.scraping.builders import ball, balls, chasing, claimed, later, new_claim, payload_of, read

pytestmark = [pytest.mark.both, pytest.mark.django_db]


def next_poll(ref: MatchRef, payload: Payload) -> datetime:
    """Returns the next poll time after a poll that brought this payload."""
    read(ref, payload)
    at = MatchRef.objects.get(pk=ref.pk).next_poll_at
    assert at is not None
    return at


@pytest.fixture
def ref() -> MatchRef:
    """A discovered match that was never read."""
    return make_ref(make_unread_match(), captured_at=None)


def match_of(ref: MatchRef) -> Match:
    return Match.objects.get(pk=ref.match_id)


def columns_of(ref: MatchRef) -> tuple[dict[str, Any], dict[str, Any]]:
    return MatchRef.objects.filter(pk=ref.pk).values().get(), Match.objects.filter(pk=ref.match_id).values().get()


def feed(ref: MatchRef) -> list[tuple[str, str, int]]:
    rows = MatchEvent.objects.filter(match=ref.match_id).order_by("pk")
    return [(row.event_id, row.action, row.revision) for row in rows]


@pytest.mark.requirement("SO-3")
class TestFirstReading:
    def test_makes_snapshot_one_with_checksum_and_provenance(self, ref: MatchRef) -> None:
        payload = payload_of(ref)
        ingested = read(ref, payload)
        snapshot = Snapshot.objects.get()
        assert ingested.is_changed
        assert (snapshot.sequence, match_of(ref).sequence) == (1, 1)
        assert snapshot.payload == payload.normalized()
        assert snapshot.checksum == payload.state.checksum()
        assert snapshot.provenance["score"] == {
            "source": "crex",
            "confidence": 1.0,
            "timestamp": "2026-01-10T12:00:00.000Z",
        }

    @pytest.mark.requirement("FS-8")
    def test_stores_the_envelope_with_its_integrity(self, ref: MatchRef) -> None:
        integrity = Integrity(missing_fields=("venue",), null_field_rate=0.1)
        sent = payload_of(ref).model_copy(update={"payload_schema": "crex.v2", "integrity": integrity})
        read(ref, sent)
        ref.refresh_from_db()
        assert (ref.payload_schema, ref.captured_at, ref.payload) == ("crex.v2", sent.captured_at, sent.normalized())
        assert ref.integrity == integrity.model_dump(mode="json")

    def test_fills_the_columns_that_lists_are_filtered_by(self, ref: MatchRef) -> None:
        start = NOW - timedelta(hours=1)
        read(ref, payload_of(ref, cricket_state(start_time=start)))
        match = match_of(ref)
        assert (match.title, match.team_a, match.team_b) == ("India vs Australia", "India", "Australia")
        assert (match.status, match.phase, match.series) == ("live", "play", "India tour of Australia")
        assert match.start_time == start
        assert match.last_scraper_update == NOW


@pytest.mark.requirement("SO-3")
class TestUnchanged:
    def test_makes_no_snapshot_but_moves_freshness(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref))
        ingested = read(ref, payload_of(ref, at=later(3)))
        match = match_of(ref)
        assert not ingested.is_changed
        assert Snapshot.objects.count() == 1
        assert (match.sequence, match.last_changed_at) == (1, NOW)
        assert match.last_scraper_update == later(3)
        assert match.total_scrapes == 2


@pytest.mark.requirement("SO-3", "NFR-008")
class TestOvertakenReading:
    """A reading that is written after a newer one of the same source."""

    @pytest.fixture
    def newer(self, ref: MatchRef) -> MatchRef:
        read(ref, payload_of(ref, chasing(100, venue="Perth"), at=later(10), events=balls(5, 6)))
        return MatchRef.objects.get(pk=ref.pk)

    @staticmethod
    def overtaken(ref: MatchRef, runs: int = 94, second: float = 5, **fields: Any) -> ingest.IngestResult:
        older = payload_of(ref, chasing(runs, venue="Sydney"), at=later(second), **fields)
        return read(ref, older, at=later(11))

    def test_changes_neither_the_state_nor_its_time(self, newer: MatchRef) -> None:
        before = columns_of(newer)
        for runs in (94, 94, 94, 100, 104):
            result = self.overtaken(newer, runs)
            assert (result.is_taken, result.is_overtaken, result.is_changed) == (False, True, False)
        assert columns_of(newer) == before
        assert Snapshot.objects.count() == 1

    def test_does_not_confirm_or_delay_a_lower_score(self, newer: MatchRef) -> None:
        read(newer, payload_of(newer, chasing(99), at=later(12)))
        for second in (4, 5, 6):
            self.overtaken(newer, 99, second)
        assert match_of(newer).provisional["readings"] == 1
        read(newer, payload_of(newer, chasing(99), at=later(14)))
        assert read(newer, payload_of(newer, chasing(99), at=later(16))).is_taken

    def test_adds_the_events_that_are_unknown(self, newer: MatchRef) -> None:
        sequence = match_of(newer).sequence
        result = self.overtaken(newer, events=[*balls(3, 4), ball(5, runs=6)])
        assert (result.is_changed, result.events.added, result.sequence) == (True, 2, sequence + 1)
        assert feed(newer)[2:] == [("2-3", "add", 1), ("2-4", "add", 1)]
        assert Snapshot.objects.latest("sequence").payload["venue"] == "Perth"

    def test_retracts_nothing_and_brings_back_nothing(self, ref: MatchRef) -> None:
        for at, numbers in ((8, (1, 2, 3)), (10, (1, 2))):
            known = balls(*numbers)
            read(ref, payload_of(ref, chasing(100), at=later(at), events=known, events_are_complete=True))
        before = feed(ref)
        for numbers in ((1,), (1, 2, 3), (1, 2, 3, 4)):
            self.overtaken(ref, events=balls(*numbers), events_are_complete=True)
        assert feed(ref) == before

    def test_a_whole_list_fills_the_gap_of_the_newer_one(self, newer: MatchRef) -> None:
        assert newer.has_gap
        self.overtaken(newer, events=balls(1, 2, 3, 4), events_are_complete=True)
        assert not MatchRef.objects.get(pk=newer.pk).has_gap

    def test_of_the_same_time_is_not_overtaken(self, newer: MatchRef) -> None:
        assert self.overtaken(newer, 101, 10).is_taken

    @pytest.mark.parametrize(("due", "expected"), [(12, 12), (11, 12.25), (None, None)])
    def test_the_planned_poll_stays_and_one_that_is_due_comes_after_a_pause(
        self, newer: MatchRef, due: float | None, expected: float | None
    ) -> None:
        """It would be polled without a pause as long as the clock of another worker is ahead."""
        MatchRef.objects.update(next_poll_at=None if due is None else later(due))
        self.overtaken(newer)
        planned = MatchRef.objects.get(pk=newer.pk).next_poll_at
        assert planned == (None if expected is None else later(expected))


@pytest.mark.requirement("FR-013")
class TestWithoutEvents:
    """The source's list of events could not be read, its score could."""

    @staticmethod
    def lacking(ref: MatchRef, runs: int, at: float, **fields: Any) -> Payload:
        missing = Integrity(missing_fields=("events",), null_field_rate=0.1)
        return payload_of(ref, chasing(runs), at=later(at), integrity=missing, **fields)

    def test_the_state_is_updated_and_the_age_is_that_of_the_events(
        self, ref: MatchRef, caplog: pytest.LogCaptureFixture
    ) -> None:
        read(ref, payload_of(ref, chasing(95), events=balls(1, 2)))
        for seconds in (3, 6):
            read(ref, self.lacking(ref, 95 + seconds, seconds))
            assert match_of(ref).payload["innings"][1]["runs"] == 95 + seconds
            assert match_of(ref).last_scraper_update == NOW
            assert Scraper.objects.get().last_update_time == NOW
        assert caplog.text.count("could not be read") == 1
        assert list(readings_ahead(CheckContext(later(6)))) == []
        read(ref, payload_of(ref, chasing(110), at=later(9), events=balls(1, 2, 3)))
        assert match_of(ref).last_scraper_update == later(9)
        assert Scraper.objects.get().last_update_time == later(9)

    def test_without_a_token_the_public_score_counts(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, chasing(95), events=balls(1, 2)))
        read(ref, self.lacking(ref, 96, 3, is_partial_state=True))
        assert match_of(ref).last_scraper_update == later(3)

    def test_a_source_without_lists_of_events_is_as_old_as_its_score(self, ref: MatchRef) -> None:
        for seconds in (0, 3):
            read(ref, self.lacking(ref, 95 + seconds, seconds))
        assert match_of(ref).last_scraper_update == later(3)

    def test_the_same_list_afterwards_changes_nothing(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, chasing(95), events=balls(1, 2)))
        read(ref, self.lacking(ref, 95, 3))
        assert not read(ref, payload_of(ref, chasing(95), at=later(6), events=balls(1, 2))).is_changed
        assert feed(ref) == [("2-1", "add", 1), ("2-2", "add", 1)]


class TestChanged:
    @pytest.mark.requirement("SO-3", "SO-4")
    def test_adds_one_to_the_sequence_and_writes_the_delta(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, chasing(95)))
        read(ref, payload_of(ref, chasing(99), at=later(3)))
        first, second = Snapshot.objects.order_by("sequence")
        assert (first.sequence, second.sequence) == (1, 2)
        assert first.checksum != second.checksum
        assert first.delta["_diff_type"] == "initial"
        assert second.delta["_diff_type"] == "update"
        assert second.delta["_sequence_delta"] == 1
        assert set(second.delta) == {"_diff_type", "_sequence_delta", "score", "innings"}
        assert {**first.payload, "score": second.delta["score"], "innings": second.delta["innings"]} == second.payload

    def test_new_events_alone_are_a_change(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, events=balls(1)))
        assert read(ref, payload_of(ref, at=later(3), events=balls(1, 2))).is_changed
        assert match_of(ref).sequence == 2

    def test_an_old_clock_of_the_reader_does_not_overflow_the_latency(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, at=NOW - timedelta(days=400)), at=NOW)
        assert Snapshot.objects.get().update_latency_ms == 2**31 - 1


@pytest.mark.requirement("BX-3")
class TestEvents:
    def test_are_added_once(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, events=balls(1, 2)))
        read(ref, payload_of(ref, at=later(3), events=balls(2, 3)))
        assert feed(ref) == [("2-1", "add", 1), ("2-2", "add", 1), ("2-3", "add", 1)]

    def test_a_correction_is_a_new_revision_and_the_only_current_one(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, events=balls(1, 2)))
        read(ref, payload_of(ref, at=later(3), events=(ball(1), ball(2, runs=4, kind="boundary"))))
        assert feed(ref)[2:] == [("2-2", "update", 2)]
        (current,) = MatchEvent.objects.filter(event_id="2-2", is_current=True)
        assert (current.revision, current.runs, current.kind, current.sequence) == (2, 4, "boundary", 2)

    def test_missing_from_a_complete_list_is_a_retraction(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, events=balls(1, 2, 3), events_are_complete=True))
        read(ref, payload_of(ref, at=later(3), events=balls(1, 3), events_are_complete=True))
        assert feed(ref)[3:] == [("2-2", "retract", 2)]

    def test_two_of_some_events_may_be_retracted_at_once(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, events=balls(*range(1, 7)), events_are_complete=True))
        read(ref, payload_of(ref, at=later(3), events=balls(1, 2, 4, 6), events_are_complete=True))
        assert feed(ref)[6:] == [("2-3", "retract", 2), ("2-5", "retract", 2)]

    def test_missing_from_a_partial_list_is_no_retraction(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, events=balls(1, 2, 3)))
        assert not read(ref, payload_of(ref, at=later(3), events=balls(3))).is_changed

    @pytest.mark.parametrize("is_complete", [True, False])
    def test_a_retracted_event_may_come_back(self, ref: MatchRef, is_complete: bool) -> None:
        read(ref, payload_of(ref, events=balls(1, 2), events_are_complete=True))
        read(ref, payload_of(ref, at=later(3), events=balls(1), events_are_complete=True))
        read(ref, payload_of(ref, at=later(6), events=balls(1, 2), events_are_complete=is_complete))
        assert feed(ref)[2:] == [("2-2", "retract", 2), ("2-2", "update", 3)]
        assert MatchEvent.objects.get(event_id="2-2", is_current=True).runs == 1

    def test_a_retraction_is_written_once(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, events=balls(1, 2), events_are_complete=True))
        for poll in range(1, 4):
            events = (ball(1, runs=poll),)  # the list changes, so that it is compared
            read(ref, payload_of(ref, at=later(3 * poll), events=events, events_are_complete=True))
        assert [action for id_, action, _ in feed(ref) if id_ == "2-2"] == ["add", "retract"]

    @pytest.mark.requirement("ZT-5")
    @pytest.mark.parametrize(("known", "missing"), [(20, 10), (7, 3), (5, 2), (4, 2)])
    def test_half_a_list_is_rejected_and_changes_nothing(self, ref: MatchRef, known: int, missing: int) -> None:
        read(ref, payload_of(ref, events=balls(*range(1, known + 1)), events_are_complete=True))
        claim = new_claim(ref, at=later(3))
        before = (feed(ref), match_of(ref).checksum)
        half = payload_of(
            ref, chasing(120), at=later(3), events=balls(*range(1, known + 1, 2)), events_are_complete=True
        )

        def finish() -> None:
            with journal.finishing(claim, now=later(3)):
                attempt = ingest.Attempt("w-1", later(3), had_failures=False, now=later(3))
                ingest.apply(half, ref_id=ref.pk, pace=PACE, attempt=attempt)

        with pytest.raises(PayloadRejected, match=f"{missing} of {known} known events are missing"):
            finish()
        assert (feed(ref), match_of(ref).checksum) == before
        assert ScrapeTask.objects.get(pk=claim.task_id).state == TaskState.EXECUTING

    def test_the_database_itself_allows_one_current_revision(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, events=balls(1)))
        row = MatchEvent.objects.get()
        row.pk, row.revision = None, 2
        with pytest.raises(IntegrityError), transaction.atomic():
            row.save(force_insert=True)


PACE = ingest.Pace()


@pytest.mark.requirement("BX-3")
class TestScoreRegression:
    @pytest.mark.requirement("BX-3")
    def test_a_lower_score_is_accepted_when_two_more_readings_confirm_it(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, chasing(95)))
        for number in (1, 2):
            result = read(ref, payload_of(ref, chasing(94), at=later(3 * number)))
            assert (result.is_changed, match_of(ref).payload["innings"][1]["runs"]) == (False, 95)
            provisional = match_of(ref).provisional
            assert (provisional["source"], provisional["readings"], provisional["score"]["team_b"]["runs"]) == (
                "crex",
                number,
                94,
            )
        third = read(ref, payload_of(ref, chasing(94), at=later(9)))
        assert (third.is_changed, match_of(ref).payload["innings"][1]["runs"]) == (True, 94)
        assert (match_of(ref).sequence, match_of(ref).provisional) == (2, {})

    def test_a_score_that_was_only_late_is_no_longer_provisional(self, ref: MatchRef) -> None:
        for number, runs in enumerate((95, 90, 96)):
            read(ref, payload_of(ref, chasing(runs), at=later(3 * number)))
        assert match_of(ref).provisional == {}

    def test_the_next_poll_comes_early(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, chasing(95)))
        assert next_poll(ref, payload_of(ref, chasing(94), at=later(3))) == later(3 + 1.25)

    def test_the_next_poll_respects_the_sources_interval(self, ref: MatchRef) -> None:
        ref.source.min_interval_seconds = 4
        ref.source.save()
        read(ref, payload_of(ref, chasing(95)))
        assert next_poll(ref, payload_of(ref, chasing(94), at=later(3))) == later(3 + 4)

    def test_does_not_update_the_freshness(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, chasing(95)))
        read(ref, payload_of(ref, chasing(94), at=later(3)))
        assert match_of(ref).last_scraper_update == NOW

    def test_a_stale_copy_between_good_readings_is_never_served(self, ref: MatchRef) -> None:
        for number, runs in enumerate((95, 90, 95, 90, 96)):
            read(ref, payload_of(ref, chasing(runs), at=later(3 * number)))
        shown = [snapshot.payload["innings"][1]["runs"] for snapshot in Snapshot.objects.order_by("sequence")]
        assert shown == [95, 96]

    def test_two_different_lower_scores_do_not_confirm_each_other(self, ref: MatchRef) -> None:
        for number, runs in enumerate((95, 12, 47)):
            read(ref, payload_of(ref, chasing(runs), at=later(3 * number)))
        assert match_of(ref).payload["innings"][1]["runs"] == 95

    def test_a_third_lower_score_in_a_row_is_accepted_though_all_differ(self, ref: MatchRef) -> None:
        for number, runs in enumerate((95, 70, 71, 72)):
            read(ref, payload_of(ref, chasing(runs), at=later(3 * number)))
        assert match_of(ref).payload["innings"][1]["runs"] == 72

    def test_reopening_a_match_needs_three_readings_too(self, ref: MatchRef) -> None:
        done = chasing(95, status=Status.COMPLETED, phase=Phase.FINISHED)
        read(ref, payload_of(ref, done))
        for seconds in (3, 5):
            read(ref, payload_of(ref, chasing(95), at=later(seconds)))
            assert match_of(ref).lifecycle == MatchLifecycle.COMPLETED
        read(ref, payload_of(ref, chasing(95), at=later(7)))
        assert (match_of(ref).lifecycle, match_of(ref).completed_at) == (MatchLifecycle.ACTIVE, None)


class TestPartialState:
    """A state read from the page's markup: short names, no venue, perhaps no score."""

    @staticmethod
    def seen(**fields: Any) -> Any:
        teams = Teams(team_a=Team(name="IND", short_name=""), team_b=Team(name="AUS", short_name=""))
        return cricket_state(teams=teams, metadata={}, **fields)

    def test_erases_nothing(self, ref: MatchRef) -> None:
        full = cricket_state(
            venue="Perth", toss=Toss(winner="India", decision="bat"), metadata={"series": "Tour", "match_type": "T20"}
        )
        read(ref, payload_of(ref, full))
        empty = self.seen(score=ScoreOf(), innings=(), current_innings=None)
        assert not read(ref, payload_of(ref, empty, at=later(3), is_partial_state=True)).is_changed
        assert match_of(ref).payload == full.model_dump(mode="json")

    def test_updates_the_score(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, cricket_state(venue="Perth")))
        innings = (
            Innings(number=1, team="team_a", runs=187, wickets=5, overs="20.0"),
            Innings(number=2, team="team_b", runs=101, wickets=3, overs="13.0"),
        )
        one_side = ScoreOf(team_b=SideScore(runs=101, wickets=3, overs="13.0"))
        read(ref, payload_of(ref, self.seen(score=one_side, innings=innings), at=later(3), is_partial_state=True))
        served = match_of(ref).payload
        assert (served["score"]["team_a"]["runs"], served["score"]["team_b"]["runs"]) == (187, 101)
        assert (served["venue"], served["teams"]["team_a"]["name"]) == ("Perth", "India")

    def test_keeps_names_and_sides_where_the_page_shows_the_batting_side_first(self, ref: MatchRef) -> None:
        full = cricket_state(venue="Perth")
        read(ref, payload_of(ref, full))
        teams = full.teams
        shown = Teams(
            team_a=Team(name=teams.team_b.short_name, short_name=teams.team_b.short_name),
            team_b=Team(name=teams.team_a.short_name, short_name=teams.team_a.short_name),
        )
        innings = (
            Innings(number=1, team="team_b", runs=187, wickets=5, overs="20.0"),
            Innings(number=2, team="team_a", runs=101, wickets=3, overs="13.0"),
        )
        score = ScoreOf(
            team_a=SideScore(runs=101, wickets=3, overs="13.0"), team_b=SideScore(runs=187, wickets=5, overs="20.0")
        )
        partial = cricket_state(teams=shown, title="AUS v IND", metadata={}, score=score, innings=innings)
        read(ref, payload_of(ref, partial, at=later(3), is_partial_state=True))
        served = match_of(ref).payload
        assert (served["teams"], served["title"]) == (full.model_dump(mode="json")["teams"], full.title)
        assert [(one["team"], one["runs"]) for one in served["innings"]] == [("team_a", 187), ("team_b", 101)]
        assert (served["score"]["team_a"]["runs"], served["score"]["team_b"]["runs"]) == (187, 101)

    @pytest.mark.requirement("ZT-5")
    def test_of_other_teams_is_rejected(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, cricket_state()))
        before = match_of(ref).payload
        teams = Teams(team_a=Team(name="PAK", short_name="PAK"), team_b=Team(name="NZ", short_name="NZ"))
        other = payload_of(ref, cricket_state(teams=teams), at=later(3), is_partial_state=True)
        with pytest.raises(PayloadRejected, match="rejected"):
            read(ref, other)
        assert match_of(ref).payload == before

    def test_keeps_the_rest_of_the_metadata(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, cricket_state(metadata={"series": "Tour", "match_type": "T20"})))
        partial = self.seen().model_copy(update={"metadata": {"series": "Tour of India"}})
        read(ref, payload_of(ref, partial, at=later(3), is_partial_state=True))
        assert match_of(ref).payload["metadata"] == {"series": "Tour of India", "match_type": "T20"}


@pytest.mark.requirement("ZT-8")
@pytest.mark.django_db(transaction=True)
class TestOneTransaction:
    def count(self) -> tuple[int, ...]:
        return tuple(table._default_manager.count() for table in (Snapshot, MatchEvent, Scraper))

    def test_a_crash_anywhere_leaves_nothing(self, ref: MatchRef) -> None:
        """Crashes before each statement of the transaction in turn, until a run reaches the end."""
        claim = new_claim(ref)
        before = (self.count(), Match.objects.values().get(), MatchRef.objects.values().get(), self.task(claim))
        statements = 0
        for crash_before in range(1, 100):
            if not self.finishes(claim, ref, crash_before):
                statements += 1
                assert (
                    self.count(),
                    Match.objects.values().get(),
                    MatchRef.objects.values().get(),
                    self.task(claim),
                ) == before
            else:
                break
        assert statements > 8
        assert self.count() == (1, 2, 1)
        assert ScrapeTask.objects.get().state == TaskState.SUCCESS

    @staticmethod
    def task(claim: journal.Claim) -> Any:
        return ScrapeTask.objects.filter(pk=claim.task_id).values().get()

    @staticmethod
    def finishes(claim: journal.Claim, ref: MatchRef, crash_before: int) -> bool:
        seen = 0

        def power_cut(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
            nonlocal seen
            seen += not sql.startswith("BEGIN")
            if seen == crash_before:
                raise KeyboardInterrupt
            return execute(sql, params, many, context)

        try:
            with connection.execute_wrapper(power_cut), journal.finishing(claim, now=NOW):
                attempt = ingest.Attempt("w-1", NOW, had_failures=False, now=NOW)
                ingest.apply(payload_of(ref, events=balls(1, 2)), ref_id=ref.pk, pace=PACE, attempt=attempt)
        except KeyboardInterrupt:
            return False
        return True


class TestGaps:
    def marks(self, ref: MatchRef) -> tuple[int, int]:
        return MatchRef.objects.values_list("events_through", "events_seen").get(pk=ref.pk)

    def fill(self, ref: MatchRef, *numbers: int, at: float = 60) -> Any:
        with journal.finishing(new_claim(ref, at=later(at), resource=Resource.COMMENTARY), now=later(at)):
            return late_updates.add_events(balls(*numbers), ref_id=ref.pk, now=later(at))

    @pytest.mark.parametrize(
        ("what", "pages", "expected"),
        [
            ("from the first ball on", [(1, 2, 3)], (3, 3)),
            ("the list grows without a hole", [(1, 2, 3), (3, 4, 5)], (5, 5)),
            ("found in the middle of a match", [(90, 91, 92)], (0, 92)),
            ("an outage of four balls", [(1, 2, 3), (8, 9)], (3, 9)),
            ("a hole inside one page", [(1, 2, 5)], (2, 5)),
            ("filled by the next page", [(1, 2, 5), (2, 3, 4)], (5, 5)),
            ("a page that begins with the very next ball may lack its wicket", [(1, 2), (3, 4)], (2, 4)),
            ("an old page changes nothing", [(1, 2, 3), (1, 2)], (3, 3)),
        ],
    )
    def test_marks(self, ref: MatchRef, what: str, pages: list[tuple[int, ...]], expected: tuple[int, int]) -> None:
        for number, page in enumerate(pages):
            read(ref, payload_of(ref, at=later(3 * number), events=balls(*page)))
        assert self.marks(ref) == expected

    def test_older_events_fill_the_gap_and_are_a_change_of_their_own(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, events=balls(1, 2)))
        read(ref, payload_of(ref, at=later(3), events=balls(6, 7)))
        found = self.fill(ref, 2, 3, 4, 5, 6)
        assert (found.added, self.marks(ref)) == (3, (7, 7))
        assert (match_of(ref).sequence, Snapshot.objects.count()) == (3, 3)
        assert sorted(MatchEvent.objects.values_list("ordinal", flat=True)) == [1, 2, 3, 4, 5, 6, 7]

    def test_a_partial_fill_leaves_the_rest_open(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, events=balls(9)))
        self.fill(ref, 6, 7, 8)
        assert self.marks(ref) == (0, 9)

    def test_a_gap_that_the_source_cannot_fill_is_closed(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, events=balls(1, 5)))
        for number in range(1, late_updates.EMPTY_READS + 1):
            assert self.marks(ref) == (1, 5)
            assert not self.fill(ref, 1, 5, at=60 + 5 * number)
        assert self.marks(ref) == (5, 5)
        assert match_of(ref).sequence == 1

    def test_a_source_with_a_short_list_is_read_again(self, ref: MatchRef) -> None:
        """The source returns the same half of its list each time, without a sign that it is incomplete."""
        read(ref, payload_of(ref, events=balls(2, 4, 6)))
        for number in range(1, late_updates.EMPTY_READS):
            self.fill(ref, 2, 4, 6, at=60 + 5 * number)
        assert self.fill(ref, *range(1, 7), at=100).added == 3
        assert self.marks(ref) == (6, 6)

    def test_old_reads_do_not_count(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, events=balls(1, 5)))
        for number in range(late_updates.EMPTY_READS + 1):
            self.fill(ref, 1, 5, at=60 + 200 * number)
        assert self.marks(ref) == (1, 5)


def over_end(number: int, **fields: Any) -> Event:
    """The end of this over, as a list has it that numbers deliveries only."""
    return Event(id=f"2-o{number}", kind="over_complete", innings=2, over=str(number), is_critical=False, **fields)


class TestOmissions:
    """A list that omits known events may omit unknown ones too, also those without a number."""

    def marks(self, ref: MatchRef) -> tuple[int, int]:
        return MatchRef.objects.values_list("events_through", "events_seen").get(pk=ref.pk)

    def poll(self, ref: MatchRef, *events: Event, at: float) -> tuple[int, int]:
        read(ref, payload_of(ref, at=later(at), events=events))
        return self.marks(ref)

    def fill(self, ref: MatchRef, *events: Event, at: float) -> Any:
        waiting = ScrapeTask.objects.filter(resource=Resource.COMMENTARY, state=TaskState.PENDING).first()
        asked = {"at": later(at), "resource": Resource.COMMENTARY}
        claim = claimed(waiting.pk, at=later(at)) if waiting else new_claim(ref, **asked)
        with journal.finishing(claim, now=later(at)):
            return late_updates.add_events(events, ref_id=ref.pk, now=later(at))

    @staticmethod
    def whole(last: int) -> list[Event]:
        """Every event up to this ball, in order, each with its time."""
        listed: list[Event] = []
        for number in range(1, last + 1):
            listed.append(ball(number, happened_at=later(30 * number)))
            if number % 6 == 0:
                listed.append(over_end(number // 6, happened_at=later(30 * number + 5)))
        return listed

    @pytest.mark.parametrize("has_times", [True, False])
    def test_an_end_of_over_that_is_omitted_opens_a_gap_which_is_filled(self, ref: MatchRef, has_times: bool) -> None:
        listed = self.whole(8)
        if not has_times:
            listed = [one.model_copy(update={"happened_at": None}) for one in listed]
        assert self.poll(ref, *listed, at=0) == (8, 8)
        without = [one for one in listed if one.ordinal] + [ball(9, happened_at=later(270) if has_times else None)]
        assert self.poll(ref, *without, at=3) == (8, 9)
        assert other_tasks.open_gap_tasks(later(4)) == 1
        assert not self.fill(ref, *without, at=5)
        assert self.marks(ref) == (8, 9)
        self.fill(ref, *listed, ball(9, happened_at=later(270) if has_times else None), at=10)
        assert self.marks(ref) == (9, 9)

    @pytest.mark.parametrize(
        ("what", "omitted", "expected"),
        [
            ("a ball", "2-3", 8),
            ("an end of over", "2-o1", 8),
            ("the oldest: the list begins later", "2-1", 9),
            ("an end after the last ball of the list", "2-o2", 9),
        ],
    )
    def test_only_the_part_that_a_list_covers_counts(
        self, ref: MatchRef, what: str, omitted: str, expected: int
    ) -> None:
        self.poll(ref, *self.whole(8), over_end(2, happened_at=later(1000)), at=0)
        listed = [one for one in self.whole(9) if one.id != omitted]
        assert self.poll(ref, *listed, at=3)[0] == expected

    def test_what_belongs_to_a_listed_ball_needs_no_row_of_its_own(self, ref: MatchRef) -> None:
        """Another page of the source gives the end of the over with its ball, this one gives balls only."""
        first = [*balls(1, 2, 3), ball(2, id="2-2:w", ordinal=None, kind="dismissal")]
        self.poll(ref, *first, at=0)
        assert self.poll(ref, *balls(1, 2, 3, 4), at=3) == (4, 4)

    def test_a_retracted_event_is_not_missed(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, events=self.whole(8), events_are_complete=True))
        listed = [one for one in self.whole(8) if one.id != "2-o1"]
        read(ref, payload_of(ref, at=later(3), events=listed, events_are_complete=True))
        assert self.poll(ref, *(one for one in self.whole(9) if one.id != "2-o1"), at=6) == (9, 9)

    def test_half_of_the_list_for_a_while_loses_nothing(self, ref: MatchRef) -> None:
        """Twenty rows a page, every second one dropped, for longer than the tasks keep looking."""
        now, size = 0.0, 20
        self.poll(ref, *self.whole(24), at=now)
        for last in range(26, 74, 2):
            now += 5
            page = self.whole(last)[-size:][::-2]
            assert self.poll(ref, *page, at=now)[1] >= last - 1
            if MatchRef.objects.get(pk=ref.pk).has_gap:
                self.fill(ref, *self.whole(last)[::-2], at=now + 1)
        assert self.poll(ref, *self.whole(80)[-size:], at=now + 5) == (24, 80)
        self.fill(ref, *self.whole(80)[20:], at=now + 6)
        assert self.marks(ref) == (80, 80)
        stored = set(MatchEvent.objects.values_list("event_id", flat=True))
        assert stored == {one.id for one in self.whole(80)}

    def test_a_source_that_always_omits_some_is_not_read_again_for_each_ball(self, ref: MatchRef) -> None:
        """Its polls give balls only, its older pages the ends of overs too: after some tasks that is its way."""
        self.poll(ref, *self.whole(13), at=0)
        tasks = 0
        for last in range(14, 60):
            listed = [one for one in self.whole(last)[-12:] if one.ordinal]
            self.poll(ref, *listed, at=30 * last)
            if MatchRef.objects.get(pk=ref.pk).has_gap:
                tasks += 1
                self.fill(ref, *self.whole(last), at=30 * last + 5)
            assert self.marks(ref) == (last, last)
        assert late_updates.EMPTY_READS <= tasks <= 15


class TestTwoSources:
    @pytest.fixture
    def other(self, ref: MatchRef) -> MatchRef:
        """The same match at a source with less weight."""
        light = make_source("cricinfo", precedence_weight=10)
        return make_ref(ref.match, source=light, captured_at=None)

    def test_the_heavier_source_is_chosen_where_both_have_a_value(self, ref: MatchRef, other: MatchRef) -> None:
        read(ref, payload_of(ref, chasing(95)))
        read(other, payload_of(other, chasing(99), at=later(3)))
        match = match_of(ref)
        assert match.payload["innings"][1]["runs"] == 95
        assert match.provenance["score"]["source"] == "crex"
        assert match.sequence == 1

    def test_the_lighter_one_fills_what_the_heavier_lacks(self, ref: MatchRef, other: MatchRef) -> None:
        read(ref, payload_of(ref))
        read(other, payload_of(other, cricket_state(venue="Perth"), at=later(3)))
        match = match_of(ref)
        assert match.payload["venue"] == "Perth"
        assert match.provenance["venue"]["source"] == "cricinfo"
        assert match.provenance["score"]["source"] == "crex"

    def test_each_source_has_events_of_its_own(self, ref: MatchRef, other: MatchRef) -> None:
        read(ref, payload_of(ref, events=balls(1, 2), events_are_complete=True))
        read(other, payload_of(other, at=later(3), events=balls(1), events_are_complete=True))
        assert [action for _, action, _ in feed(ref)] == ["add", "add", "add"]


class TestScraper:
    def test_a_live_match_has_one_scraper_whose_counters_move(self, ref: MatchRef) -> None:
        for number in range(3):
            read(ref, payload_of(ref, at=later(3 * number)))
        scraper = Scraper.objects.get()
        assert (scraper.total_updates, scraper.worker_id) == (3, "w-1")
        assert (scraper.start_time, scraper.last_update_time, scraper.stopped_at) == (NOW, later(6), None)
        assert Snapshot.objects.get().scraper_id == scraper.pk

    def test_it_stops_when_the_match_ends(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref))
        ended = cricket_state(status=Status.COMPLETED, phase=Phase.FINISHED, result="India won by 92 runs")
        read(ref, payload_of(ref, ended, at=later(60)))
        scraper = Scraper.objects.get()
        assert (scraper.stopped_at, scraper.stop_reason) == (later(60), "the match is completed")

    def test_a_match_that_has_not_begun_has_none(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, cricket_state(status=Status.UPCOMING, phase=Phase.SCHEDULED)))
        assert not Scraper.objects.exists()


@pytest.mark.requirement("SO-8")
class TestLifecycle:
    def test_discovered_becomes_active_with_the_first_reading(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref))
        match = match_of(ref)
        assert (match.lifecycle, match.scraper_status) == (MatchLifecycle.ACTIVE, ScraperStatus.ACTIVE)
        assert match.priority == Priority.LIVE

    @pytest.mark.parametrize("status", [Status.COMPLETED, Status.ABANDONED])
    def test_an_end_completes_it(self, ref: MatchRef, status: Status) -> None:
        read(ref, payload_of(ref))
        read(ref, payload_of(ref, cricket_state(status=status, phase=Phase.FINISHED), at=later(60)))
        match = match_of(ref)
        assert (match.lifecycle, match.completed_at) == (MatchLifecycle.COMPLETED, later(60))
        assert (match.scraper_status, match.priority) == (ScraperStatus.STOPPED, Priority.COMPLETED)

    def test_a_reading_under_way_does_not_end_a_pause(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        lifecycle.pause(match_id=ref.match_id, until=later(3600), reason="rain", actor="anna", now=later(1))
        with journal.finishing(claim, now=later(2)):
            attempt = ingest.Attempt("w-1", later(2), had_failures=False, now=later(2))
            ingest.apply(payload_of(ref, at=later(2)), ref_id=ref.pk, pace=PACE, attempt=attempt)
        match = match_of(ref)
        assert (match.lifecycle, match.pause_until) == (MatchLifecycle.PAUSED, later(3600))
        assert (match.scraper_status, match.sequence) == (ScraperStatus.STOPPED, 1)
        assert not Scraper.objects.filter(stopped_at=None).exists()

    def test_a_match_that_ends_while_it_is_paused_is_completed(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        lifecycle.pause(match_id=ref.match_id, until=later(3600), reason="rain", actor="anna", now=later(1))
        done = payload_of(ref, cricket_state(status=Status.COMPLETED, phase=Phase.FINISHED), at=later(2))
        with journal.finishing(claim, now=later(2)):
            attempt = ingest.Attempt("w-1", later(2), had_failures=False, now=later(2))
            ingest.apply(done, ref_id=ref.pk, pace=PACE, attempt=attempt)
        match = match_of(ref)
        assert (match.lifecycle, match.pause_until, match.pause_reason) == (MatchLifecycle.COMPLETED, None, "")

    def test_success_ends_a_row_of_failures(self, ref: MatchRef) -> None:
        Match.objects.update(consecutive_failure_count=4, failing_since=NOW, scraper_status=ScraperStatus.ERROR)
        read(ref, payload_of(ref, at=later(3)))
        match = match_of(ref)
        assert (match.consecutive_failure_count, match.failing_since) == (0, None)
        assert match.scraper_status == ScraperStatus.ACTIVE


class TestRemovedMatch:
    def test_its_known_state_becomes_final(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, chasing(95)))
        with transaction.atomic():
            late_updates.close_removed(ref.pk, now=later(10))
        match = match_of(ref)
        assert (match.lifecycle, match.status, match.phase) == (MatchLifecycle.COMPLETED, "completed", "finished")
        assert (match.payload["status"], match.payload["innings"][1]["runs"]) == ("completed", 95)
        assert (match.sequence, Snapshot.objects.latest("sequence").delta["status"]) == (2, "completed")
        assert not Scraper.objects.filter(stopped_at=None).exists()

    def test_is_polled_as_rarely_as_a_finished_match(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, chasing(95)))
        with transaction.atomic():
            late_updates.close_removed(ref.pk, now=later(10))
        assert MatchRef.objects.get().next_poll_at == later(10 + 300)

    def test_is_polled_no_more_where_it_was_never_read(self, ref: MatchRef) -> None:
        with transaction.atomic():
            late_updates.close_removed(ref.pk, now=later(10))
        assert MatchRef.objects.get().next_poll_at is None
        assert match_of(ref).status == Status.ABANDONED  # no reading had its start

    def test_a_match_that_is_listed_again_continues(self, ref: MatchRef) -> None:
        read(ref, payload_of(ref, chasing(95)))
        with transaction.atomic():
            late_updates.close_removed(ref.pk, now=later(10))
        read(ref, payload_of(ref, chasing(95), at=later(310)))
        match = match_of(ref)
        assert (match.lifecycle, match.status, match.payload["status"]) == (MatchLifecycle.ACTIVE, "live", "live")
        assert match.sequence == 3


class TestNextPoll:
    def poll(self, ref: MatchRef, number: int, runs: int, phase: Phase = Phase.PLAY) -> float:
        at = later(40 * number)
        state = chasing(runs).model_copy(update={"phase": phase})
        return (next_poll(ref, payload_of(ref, state, at=at)) - at).total_seconds()

    def test_in_play(self, ref: MatchRef) -> None:
        assert self.poll(ref, 0, 95) == 2.5

    @pytest.mark.requirement("FR-024")
    def test_slower_in_a_break_after_ten_unchanged_polls_and_back_with_the_next_change(self, ref: MatchRef) -> None:
        intervals = [self.poll(ref, number, 95, Phase.RAIN) for number in range(12)]
        assert intervals == [2.5] * 10 + [30.0] * 2
        assert self.poll(ref, 12, 96) == 2.5

    def test_faster_when_most_polls_bring_a_change(self, ref: MatchRef) -> None:
        assert [self.poll(ref, number, 95 + number) for number in range(10)][-1] == 2.0

    def test_never_below_the_sources_own_limit(self, ref: MatchRef) -> None:
        ref.source.min_interval_seconds = 8
        ref.source.save()
        assert self.poll(ref, 0, 95) == 8

    def test_football_has_the_same_intervals(self) -> None:
        football = make_ref(make_unread_match(sport="football"), source="sofascore", captured_at=None)
        assert next_poll(football, payload_of(football, football_state())) == later(2.5)
