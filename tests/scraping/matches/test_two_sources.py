"""One match at two sources: one state, one score that does not flicker, and its provenance."""

from __future__ import annotations

from datetime import datetime

import pytest

from scraping import journal
from scraping.matches import ingest, late_updates
from scraping.models import Conflict, Match, MatchEvent, MatchLifecycle, MatchRef, Snapshot, Source
from scraping.payloads import Event, Innings, MatchState, Phase, Score, SideScore, Status, Team, Teams
from scraping.policies.interval import Pace
from scraping.worker import unchanged
from scraping.worker.unchanged import for_polling
from tests.factories import NOW, football_state, make_match, make_ref, make_source
from tests.scraping.builders import ball, chasing, cricket_state, later, new_claim, payload_of, read

pytestmark = [pytest.mark.django_db, pytest.mark.both]


@pytest.fixture
def heavy() -> MatchRef:
    return make_ref(source=make_source("crex", precedence_weight=100))


@pytest.fixture
def light(heavy: MatchRef) -> MatchRef:
    return make_ref(heavy.match, source=make_source("espncricinfo", adapter="crex", precedence_weight=80))


def runs(ref: MatchRef) -> int:
    found: int = match_of(ref).payload["innings"][1]["runs"]
    return found


def match_of(ref: MatchRef) -> Match:
    return Match.objects.get(pk=ref.match_id)


def write(ref: MatchRef, state: MatchState, at: datetime = NOW) -> ingest.IngestResult:
    return read(ref, payload_of(ref, state, at=at))


@pytest.mark.requirement("SO-13", "BX-5")
class TestOneState:
    def test_the_heavier_is_chosen_and_the_other_value_is_in_the_provenance(
        self, heavy: MatchRef, light: MatchRef
    ) -> None:
        write(heavy, chasing(95))
        write(light, chasing(80), later(2))
        match = match_of(heavy)
        assert runs(heavy) == 95
        said = match.provenance["innings"]
        assert (said["source"], [one["source"] for one in said["others"]]) == ("crex", ["espncricinfo"])

    def test_a_missing_field_comes_from_the_other(self, heavy: MatchRef, light: MatchRef) -> None:
        write(heavy, chasing(95, venue=""))
        write(light, chasing(95, venue="MCG, Melbourne"), later(2))
        match = match_of(heavy)
        assert (match.payload["venue"], match.provenance["venue"]["source"]) == ("MCG, Melbourne", "espncricinfo")

    def test_a_silent_heavier_one_is_replaced(self, heavy: MatchRef, light: MatchRef) -> None:
        write(heavy, chasing(95))
        write(light, chasing(99), later(5))
        assert runs(heavy) == 95
        write(light, chasing(120), later(60))
        assert runs(heavy) == 120
        write(heavy, chasing(121), later(62))
        assert runs(heavy) == 121

    def test_a_reading_that_is_written_late_does_not_replace_a_newer_one_of_the_other(
        self, heavy: MatchRef, light: MatchRef
    ) -> None:
        write(heavy, chasing(95))
        write(light, chasing(120), later(60))
        read(heavy, payload_of(heavy, chasing(119), at=later(55)), at=later(61))
        assert runs(heavy) == 120
        write(heavy, chasing(120), later(63))
        assert (runs(heavy), match_of(heavy).provenance["score"]["source"]) == (120, "crex")

    def test_a_conflict_is_listed_until_it_is_over(self, heavy: MatchRef, light: MatchRef) -> None:
        write(heavy, chasing(95))
        write(light, chasing(60), later(2))
        conflict = Conflict.objects.get(match=heavy.match_id, field="innings.2.runs")
        assert (conflict.chosen_value, conflict.other_value, conflict.resolved_at) == (95, 60, None)
        write(light, chasing(95), later(4))
        conflict.refresh_from_db()
        assert conflict.resolved_at == later(4)

    def test_a_reading_of_the_second_source_alone_is_no_change(self, heavy: MatchRef, light: MatchRef) -> None:
        write(heavy, chasing(95))
        write(light, chasing(95), later(2))
        before = match_of(heavy).sequence
        assert not write(light, chasing(95, overs="12.3"), later(4)).is_changed
        assert match_of(heavy).sequence == before
        assert match_of(heavy).last_scraper_update == later(4)

    def test_the_sides_keep_the_order_of_the_match(self, heavy: MatchRef, light: MatchRef) -> None:
        write(heavy, chasing(95))
        ours = match_of(heavy).payload["teams"]
        other_way = Teams(team_a=Team(**ours["team_b"]), team_b=Team(**ours["team_a"]))
        innings = (
            Innings(number=1, team="team_b", runs=187, wickets=5, overs="20.0"),
            Innings(number=2, team="team_a", runs=130, wickets=3, overs="14.0"),
        )
        score = Score(team_a=SideScore(runs=130, wickets=3, overs="14.0"), team_b=SideScore(runs=187, wickets=5))
        write(light, cricket_state(teams=other_way, innings=innings, score=score), later(60))
        match = match_of(heavy)
        assert MatchRef.objects.get(pk=light.pk).is_crossed
        assert match.payload["teams"] == ours
        assert [one["team"] for one in match.payload["innings"]] == ["team_a", "team_b"]
        assert match.payload["score"]["team_b"]["runs"] == 130


class TestHeavierSourceStuckOnLive:
    def end(self, ref: MatchRef, at: datetime) -> ingest.IngestResult:
        return write(ref, chasing(188, status=Status.COMPLETED, phase=Phase.FINISHED), at)

    def test_the_end_is_accepted_after_ten_minutes_and_kept(self, heavy: MatchRef, light: MatchRef) -> None:
        write(heavy, chasing(188))
        self.end(light, later(5))
        found = []
        for minute in range(1, 13):
            write(heavy, chasing(188), later(60 * minute))
            self.end(light, later(60 * minute + 5))
            found.append(match_of(heavy).status)
        assert found == ["live"] * 9 + ["completed"] * 3
        assert match_of(heavy).lifecycle == MatchLifecycle.COMPLETED
        assert match_of(heavy).sequence == 3, "it does not flicker"

    def test_a_source_that_still_changes_wins(self, heavy: MatchRef, light: MatchRef) -> None:
        for minute in range(30):
            write(heavy, chasing(150 + minute), later(60 * minute))
            write(light, chasing(150, status=Status.COMPLETED, phase=Phase.FINISHED), later(60 * minute + 5))
        assert match_of(heavy).status == "live"

    def test_the_heavier_one_wins_again_when_it_changes(self, heavy: MatchRef, light: MatchRef) -> None:
        write(heavy, chasing(150))
        self.end(light, later(5))
        write(heavy, chasing(150), later(700))
        assert match_of(heavy).status == "completed"
        write(heavy, chasing(151), later(1000))
        assert (match_of(heavy).status, runs(heavy)) == ("live", 151)
        write(heavy, chasing(151), later(1300))
        assert match_of(heavy).status == "live"

    def test_is_checked_though_both_readings_are_unchanged(self, heavy: MatchRef, light: MatchRef) -> None:
        """Unchanged readings are not reconciled otherwise, so the end would never be compared again."""
        write(heavy, chasing(188))
        self.end(light, later(5))
        Match.objects.update(last_changed_at=later(-590))
        ref = for_polling([heavy.pk]).get()
        assert [unchanged._keeps_source_order(ref, later(seconds)) for seconds in (9, 10)] == [True, False]


class TestDisabledSource:
    def test_its_last_state_does_not_count(self, heavy: MatchRef, light: MatchRef) -> None:
        """Otherwise an end at the disabled source alone would be kept for ever."""
        write(light, chasing(95))
        write(heavy, chasing(95, status=Status.COMPLETED, phase=Phase.FINISHED, result="no"), later(2))
        Source.objects.filter(pk=heavy.source_id).update(is_enabled=False)
        write(light, chasing(99), later(4))
        assert (match_of(heavy).status, runs(heavy)) == (Status.LIVE, 99)

    def test_does_not_keep_a_match_open_that_the_others_removed(self, heavy: MatchRef, light: MatchRef) -> None:
        write(heavy, chasing(95))
        Source.objects.filter(pk=light.source_id).update(is_enabled=False)
        late_updates.close_removed(heavy.pk, now=later(2))
        assert match_of(heavy).lifecycle == MatchLifecycle.COMPLETED


class TestSecondSourceAddedMeanwhile:
    def test_no_event_is_served_twice(self, heavy: MatchRef, light: MatchRef) -> None:
        """It was added and read while a reading of the first source was under way."""
        known = for_polling([heavy.pk]).get()
        known.has_other_sources = False
        over = ball(1, slot="b:2:12:1")
        read(light, payload_of(light, chasing(95), events=[over]))
        with journal.finishing(new_claim(heavy), now=later(1)):
            ours = payload_of(heavy, chasing(95), events=[over.model_copy(update={"id": "x"})], at=later(1))
            attempt = ingest.Attempt("w-1", later(1), had_failures=False, now=later(1))
            ingest.apply(ours, ref_id=heavy.pk, pace=Pace(), attempt=attempt, known=known)
        assert MatchEvent.objects.filter(is_served=True).count() == 1


class TestSecondSourceNeverRead:
    @pytest.mark.parametrize(("read_at", "is_short"), [(None, True), (NOW, True), (later(-60), False)])
    def test_does_not_disable_the_batched_write(
        self, heavy: MatchRef, read_at: datetime | None, is_short: bool
    ) -> None:
        make_ref(heavy.match, source="espn", captured_at=read_at)
        known = for_polling([heavy.pk]).get()
        assert unchanged._keeps_source_order(known, later(2)) is is_short


class TestCrossedSource:
    """A goal of the source's home side is one of the match's away side, in name, side and score."""

    @pytest.fixture
    def crossed(self) -> MatchRef:
        ref = make_ref(make_match(sport="football"), source="espnsoccer", is_crossed=True)
        make_ref(ref.match, source="sofascore")
        return ref

    @staticmethod
    def goal(number: int, ordinal: int | None = None) -> Event:
        detail = {"team": "team_a", "score": "1-0"}
        return Event(id=str(number), kind="goal", slot=f"g:team_a:{number}", ordinal=ordinal, detail=detail)

    @staticmethod
    def stored() -> list[tuple[str, str, str]]:
        rows = MatchEvent.objects.order_by("pk")
        return [(row.slot, row.detail["team"], row.detail["score"]) for row in rows]

    def test_events_of_a_poll_are_swapped(self, crossed: MatchRef) -> None:
        turned = Teams(team_a=football_state().teams.team_b, team_b=football_state().teams.team_a)
        for second in (1, 2):
            state = football_state(teams=turned, clock=str(second))
            read(crossed, payload_of(crossed, state, events=[self.goal(1)], at=later(second)))
        assert self.stored() == [("g:team_b:1", "team_b", "0-1")]

    def test_events_of_a_gap_fill_are_swapped(self, crossed: MatchRef) -> None:
        late_updates.add_events([self.goal(1)], ref_id=crossed.pk, now=NOW)
        assert self.stored() == [("g:team_b:1", "team_b", "0-1")]

    def test_events_of_a_spooled_payload_are_swapped(self, crossed: MatchRef) -> None:
        late = payload_of(crossed, football_state(), events=[self.goal(1)], at=later(-60))
        attempt = ingest.Attempt("w-1", later(-60), had_failures=False, now=NOW, is_replayed=True)
        ingest.apply(late, ref_id=crossed.pk, pace=Pace(), attempt=attempt)
        assert self.stored() == [("g:team_b:1", "team_b", "0-1")]

    def test_events_that_are_not_served_are_no_change(self, heavy: MatchRef, light: MatchRef) -> None:
        read(heavy, payload_of(heavy, chasing(95), events=[ball(1, slot="b:2:12:1")]))
        before = match_of(heavy).sequence
        late = payload_of(light, chasing(95), events=[ball(1, slot="b:2:12:1")], at=later(-60))
        attempt = ingest.Attempt("w-1", later(-60), had_failures=False, now=NOW, is_replayed=True)
        ingest.apply(late, ref_id=light.pk, pace=Pace(), attempt=attempt)
        assert match_of(heavy).sequence == before


@pytest.mark.requirement("BX-3")
class TestScoreRegression:
    def test_is_accepted_at_once_when_the_other_source_has_the_same_score(
        self, heavy: MatchRef, light: MatchRef
    ) -> None:
        write(heavy, chasing(95))
        write(light, chasing(94), later(1))
        assert write(heavy, chasing(94), later(2)).is_taken
        assert runs(heavy) == 94
        assert match_of(heavy).provisional == {}

    def test_is_not_confirmed_by_a_source_that_was_late(self, heavy: MatchRef, light: MatchRef) -> None:
        write(light, chasing(94))
        write(heavy, chasing(95), later(1))
        assert not write(heavy, chasing(94), later(2)).is_taken
        assert runs(heavy) == 95

    def test_is_confirmed_by_a_crossed_source(self) -> None:
        goals = {(2, 1): Score(team_a=SideScore(goals=2), team_b=SideScore(goals=1))}
        goals[1, 1] = Score(team_a=SideScore(goals=1), team_b=SideScore(goals=1))
        goals[1, 2] = Score(team_a=SideScore(goals=1), team_b=SideScore(goals=2))
        first = make_ref(make_match(sport="football"), source="sofascore")
        turned = Teams(team_a=football_state().teams.team_b, team_b=football_state().teams.team_a)
        other = make_ref(first.match, source="espnsoccer")
        write(first, football_state(score=goals[2, 1]))
        write(other, football_state(score=goals[1, 2], teams=turned), later(1))
        write(first, football_state(score=Score(team_a=SideScore(goals=3), team_b=SideScore(goals=1))), later(2))
        write(other, football_state(score=Score(team_a=SideScore(goals=1), team_b=SideScore(goals=3)), teams=turned),
             later(3))  # fmt: skip
        write(first, football_state(score=goals[2, 1]), later(4))
        assert write(other, football_state(score=goals[1, 2], teams=turned), later(5)).is_taken is False
        assert write(first, football_state(score=goals[2, 1]), later(6)).is_taken is False
        assert write(first, football_state(score=goals[2, 1]), later(7)).is_taken
        assert write(other, football_state(score=goals[1, 2], teams=turned), later(8)).is_taken

    def test_is_dropped_if_it_is_never_confirmed(self, heavy: MatchRef, light: MatchRef) -> None:
        write(heavy, chasing(95))
        write(light, chasing(95), later(1))
        write(light, chasing(90), later(2))
        assert match_of(heavy).provisional["source"] == "espncricinfo"
        write(heavy, chasing(96), later(4))
        assert match_of(heavy).provisional["source"] == "espncricinfo", "it may be confirmed yet"
        write(heavy, chasing(97), later(90))
        assert match_of(heavy).provisional == {}

    def test_is_dropped_if_its_source_removes_the_match(self, heavy: MatchRef, light: MatchRef) -> None:
        write(heavy, chasing(95))
        write(light, chasing(95), later(1))
        write(light, chasing(90), later(2))
        late_updates.close_removed(light.pk, now=later(3))
        assert match_of(heavy).provisional == {}
        assert MatchRef.objects.get(pk=light.pk).suspect_checksum == ""

    def test_two_sources_of_equal_weight_do_not_alternate(self, heavy: MatchRef) -> None:
        """One of the sources is always a ball late."""
        equal = make_ref(heavy.match, source=make_source("espn", adapter="crex", precedence_weight=100))
        served = []
        for second in range(0, 40, 4):
            write(heavy, chasing(95 + second, venue="Perth"), later(second))
            served.append(runs(heavy))
            before = match_of(heavy).sequence
            write(equal, chasing(94 + second, venue="WACA, Perth"), later(second + 2))
            served.append(runs(heavy))
            assert second == 0 or match_of(heavy).sequence == before
        assert served == sorted(served)

    def test_waits_while_the_other_has_the_higher_score(self, heavy: MatchRef, light: MatchRef) -> None:
        write(heavy, chasing(95))
        write(light, chasing(95), later(1))
        assert not write(heavy, chasing(94), later(2)).is_taken
        assert (runs(heavy), match_of(heavy).provisional["source"]) == (95, "crex")

    def test_does_not_flicker_between_two_sources_in_conflict(self, heavy: MatchRef, light: MatchRef) -> None:
        for number in range(6):
            write(heavy, chasing(95 + number), later(4 * number))
            write(light, chasing(90 + number), later(4 * number + 2))
        served = Snapshot.objects.filter(match=heavy.match_id).order_by("sequence")
        shown = [snapshot.payload["innings"][1]["runs"] for snapshot in served]
        assert shown == sorted(shown)


@pytest.mark.requirement("EC-3")
class TestRemovedAtOneSource:
    def test_the_match_continues_with_the_other(self, heavy: MatchRef, light: MatchRef) -> None:
        write(heavy, chasing(95))
        write(light, chasing(95), later(1))
        late_updates.close_removed(heavy.pk, now=later(3))
        assert match_of(heavy).status == Status.LIVE
        heavy.refresh_from_db()
        assert heavy.gone_at == later(3)
        write(light, chasing(99), later(60))
        assert runs(heavy) == 99

    def test_removed_at_both_it_is_over(self, heavy: MatchRef, light: MatchRef) -> None:
        write(heavy, chasing(95))
        write(light, chasing(95), later(1))
        for ref in (heavy, light):
            late_updates.close_removed(ref.pk, now=later(3))
        match = match_of(heavy)
        assert (match.status, match.phase, match.lifecycle) == (
            Status.COMPLETED,
            Phase.FINISHED,
            MatchLifecycle.COMPLETED,
        )

    def test_a_source_that_lists_it_again_counts_again(self, heavy: MatchRef, light: MatchRef) -> None:
        write(heavy, chasing(95))
        write(light, chasing(95), later(1))
        late_updates.close_removed(heavy.pk, now=later(3))
        write(heavy, chasing(97), later(6))
        heavy.refresh_from_db()
        assert (heavy.gone_at, runs(heavy)) == (None, 97)
