"""One match that two sources tell: one state, one score that does not flicker, and who said what."""

from __future__ import annotations

from datetime import datetime

import pytest

from scraping import ingest
from scraping.models import Conflict, Match, MatchLifecycle, MatchRef, Snapshot
from scraping.payloads import Innings, MatchState, Phase, Score, SideScore, Status, Team, Teams
from tests.factories import NOW, make_ref, make_source
from tests.scraping.builders import chasing, cricket_state, later, payload_of, read

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


def tell(ref: MatchRef, state: MatchState, at: datetime = NOW) -> ingest.Ingested:
    return read(ref, payload_of(ref, state, at=at))


@pytest.mark.requirement("SO-13", "BX-5")
class TestOneState:
    def test_the_heavier_is_believed_and_the_others_word_is_kept(self, heavy: MatchRef, light: MatchRef) -> None:
        tell(heavy, chasing(95))
        tell(light, chasing(80), later(2))
        match = match_of(heavy)
        assert runs(heavy) == 95
        said = match.provenance["innings"]
        assert (said["source"], [one["source"] for one in said["others"]]) == ("crex", ["espncricinfo"])

    def test_what_it_does_not_know_comes_from_the_other(self, heavy: MatchRef, light: MatchRef) -> None:
        tell(heavy, chasing(95, venue=""))
        tell(light, chasing(95, venue="MCG, Melbourne"), later(2))
        match = match_of(heavy)
        assert (match.payload["venue"], match.provenance["venue"]["source"]) == ("MCG, Melbourne", "espncricinfo")

    def test_a_heavier_one_that_falls_silent_is_overtaken(self, heavy: MatchRef, light: MatchRef) -> None:
        tell(heavy, chasing(95))
        tell(light, chasing(99), later(5))
        assert runs(heavy) == 95
        tell(light, chasing(120), later(60))
        assert runs(heavy) == 120
        tell(heavy, chasing(121), later(62))
        assert runs(heavy) == 121

    def test_a_disagreement_is_listed_until_it_is_over(self, heavy: MatchRef, light: MatchRef) -> None:
        tell(heavy, chasing(95))
        tell(light, chasing(60), later(2))
        conflict = Conflict.objects.get(match=heavy.match_id, field="innings.2.runs")
        assert (conflict.chosen_value, conflict.other_value, conflict.resolved_at) == (95, 60, None)
        tell(light, chasing(95), later(4))
        conflict.refresh_from_db()
        assert conflict.resolved_at == later(4)

    def test_the_second_sources_reading_alone_is_no_news(self, heavy: MatchRef, light: MatchRef) -> None:
        tell(heavy, chasing(95))
        tell(light, chasing(95), later(2))
        before = match_of(heavy).sequence
        assert not tell(light, chasing(95, overs="12.3"), later(4)).is_changed
        assert match_of(heavy).sequence == before
        assert match_of(heavy).last_scraper_update == later(4)

    def test_the_sides_stay_where_the_match_has_them(self, heavy: MatchRef, light: MatchRef) -> None:
        tell(heavy, chasing(95))
        ours = match_of(heavy).payload["teams"]
        other_way = Teams(team_a=Team(**ours["team_b"]), team_b=Team(**ours["team_a"]))
        innings = (
            Innings(number=1, team="team_b", runs=187, wickets=5, overs="20.0"),
            Innings(number=2, team="team_a", runs=130, wickets=3, overs="14.0"),
        )
        score = Score(team_a=SideScore(runs=130, wickets=3, overs="14.0"), team_b=SideScore(runs=187, wickets=5))
        tell(light, cricket_state(teams=other_way, innings=innings, score=score), later(60))
        match = match_of(heavy)
        assert MatchRef.objects.get(pk=light.pk).is_crossed
        assert match.payload["teams"] == ours
        assert [one["team"] for one in match.payload["innings"]] == ["team_a", "team_b"]
        assert match.payload["score"]["team_b"]["runs"] == 130


@pytest.mark.requirement("BX-3")
class TestAScoreThatGoesDown:
    def test_is_believed_at_once_when_the_other_source_says_the_same(self, heavy: MatchRef, light: MatchRef) -> None:
        tell(heavy, chasing(95))
        tell(light, chasing(94), later(1))
        assert tell(heavy, chasing(94), later(2)).is_taken
        assert runs(heavy) == 94
        assert match_of(heavy).provisional == {}

    def test_waits_when_the_other_still_says_otherwise(self, heavy: MatchRef, light: MatchRef) -> None:
        tell(heavy, chasing(95))
        tell(light, chasing(95), later(1))
        assert not tell(heavy, chasing(94), later(2)).is_taken
        assert (runs(heavy), match_of(heavy).provisional["source"]) == (95, "crex")

    def test_never_flickers_between_two_that_disagree(self, heavy: MatchRef, light: MatchRef) -> None:
        for number in range(6):
            tell(heavy, chasing(95 + number), later(4 * number))
            tell(light, chasing(90 + number), later(4 * number + 2))
        told = Snapshot.objects.filter(match=heavy.match_id).order_by("sequence")
        shown = [snapshot.payload["innings"][1]["runs"] for snapshot in told]
        assert shown == sorted(shown)


@pytest.mark.requirement("EC-3")
class TestGoneAtOne:
    def test_the_match_goes_on_with_the_other(self, heavy: MatchRef, light: MatchRef) -> None:
        tell(heavy, chasing(95))
        tell(light, chasing(95), later(1))
        ingest.close_gone(heavy.pk, now=later(3))
        assert match_of(heavy).status == Status.LIVE
        heavy.refresh_from_db()
        assert heavy.gone_at == later(3)
        tell(light, chasing(99), later(60))
        assert runs(heavy) == 99

    def test_gone_at_both_it_is_over(self, heavy: MatchRef, light: MatchRef) -> None:
        tell(heavy, chasing(95))
        tell(light, chasing(95), later(1))
        for ref in (heavy, light):
            ingest.close_gone(ref.pk, now=later(3))
        match = match_of(heavy)
        assert (match.status, match.phase, match.lifecycle) == (
            Status.COMPLETED,
            Phase.FINISHED,
            MatchLifecycle.COMPLETED,
        )

    def test_one_that_has_it_again_is_heard_again(self, heavy: MatchRef, light: MatchRef) -> None:
        tell(heavy, chasing(95))
        tell(light, chasing(95), later(1))
        ingest.close_gone(heavy.pk, now=later(3))
        tell(heavy, chasing(97), later(6))
        heavy.refresh_from_db()
        assert (heavy.gone_at, runs(heavy)) == (None, 97)
