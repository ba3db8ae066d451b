from __future__ import annotations

import pytest

from stadium.cricket.script import CricketScript
from stadium.cricket.state import fold as fold_cricket
from stadium.football.script import FootballScript
from stadium.football.state import fold as fold_football
from stadium.matches import ids
from stadium.matches.programme import Match, Programme
from stadium.matches.programme_parser import parse_slots


def status_and_phase(match: Match, moment: float) -> tuple[str, str]:
    index = match.event_count_at(moment)
    if isinstance(match.script, CricketScript):
        cricket = fold_cricket(match.script, match.script.events[:index])
        return cricket.status, cricket.phase
    assert isinstance(match.script, FootballScript)
    football = fold_football(match.script, match.script.events[:index])
    return football.status, football.phase


class TestKeys:
    def test_are_unique_and_convertible_to_numbers(self) -> None:
        numbers = range(20_000)
        texts = [ids.key_at("crex", number) for number in numbers]
        assert len(set(texts)) == len(texts)
        assert all(ids.number_of_key("crex", text) == number for number, text in zip(numbers, texts, strict=True))
        assert all(len(text) == 4 for text in texts)

    def test_custom_ids_lead_back_to_the_event(self) -> None:
        assert all(ids.number_of_custom_id(ids.custom_id(number)) == number for number in range(500))

    @pytest.mark.parametrize("text", ["", "abc1", "12", "ÄÖÜX", "0001", "12345"])
    def test_an_invalid_key_has_no_match(self, text: str) -> None:
        assert ids.number_of_key("crex", text) is None


class TestDemo:
    def test_starts_with_matches_in_every_state(self) -> None:
        programme = Programme("demo", 7)
        shown = programme.listed_matches(0)
        statuses_at_start = [status_and_phase(match, 0) for match in shown]
        assert sum(match.site == "crex" for match in shown) >= 6
        assert [status for status, _ in statuses_at_start].count("upcoming") == 1
        assert ("live", "first_half") in statuses_at_start
        assert ("live", "halftime") in statuses_at_start
        assert any(1000 < match.starts_at < 2000 for match in shown)
        assert any(600 <= match.ends_at <= 1200 for match in shown)
        assert status_and_phase(shown[2], 300) == ("live", "innings_break")

    @pytest.mark.parametrize("seed", range(3))
    def test_always_lists_a_match(self, seed: int) -> None:
        programme = Programme("demo", seed)
        for moment in range(0, 400_000, 7_001):
            shown = programme.listed_matches(moment)
            statuses = [status_and_phase(match, moment)[0] for match in shown]
            assert statuses.count("live") >= 2
            assert len({match.key for match in shown}) == len(shown)

    def test_no_team_plays_twice_at_once(self) -> None:
        for match_list in (Programme("demo", 7).listed_matches(50_000), Programme("load:60", 7).listed_matches(100)):
            running = [match for match in match_list if status_and_phase(match, match.starts_at + 100)[0] == "live"]
            by_slot = {match.slot.number: {team.name for team in match.teams} for match in running}
            names = [name for teams in by_slot.values() for name in teams]
            assert len(set(names)) == len(names)


class TestProgramme:
    def test_a_match_is_the_same_by_slot_and_by_number(self) -> None:
        one, other = Programme("demo", 7), Programme("demo", 7)
        match = one.match(one.slots[3], 40)
        found = other.find(ids.number_of_key("crex", match.key), match.starts_at)
        assert found is not None
        assert (found.script, found.starts_at) == (match.script, match.starts_at)

    def test_hides_matches_that_are_not_announced(self) -> None:
        programme = Programme("single", 7)
        assert programme.find(5, 0.0) is None
        assert programme.find(0, 0.0) is not None

    def test_all_matches_of_load_are_live(self) -> None:
        programme = Programme("load:40", 7)
        for moment in (0.0, 5_000.0, 10_000.0):
            assert [status_and_phase(m, moment)[0] for m in programme.listed_matches(moment)] == ["live"] * 40

    def test_after_the_end_the_next_is_listed(self) -> None:
        programme = Programme("single", 7)
        (match,) = programme.listed_matches(0)
        done, coming = programme.listed_matches(match.ends_at + 1)
        assert status_and_phase(done, match.ends_at + 1)[0] == "completed"
        assert status_and_phase(coming, match.ends_at + 1)[0] == "upcoming"

    @pytest.mark.parametrize(
        "text",
        [
            "", "demos", "load", "load:0", "load:x", "load:401", "mixed:1", "demo:3", "pair:0", "many:31", "replay",
            "only:nowhere:1", "only:crex:0", "only:crex,sofascore:1",
        ],
    )  # fmt: skip
    def test_an_invalid_programme_lists_the_formats(self, text: str) -> None:
        with pytest.raises(ValueError, match="programme must be demo"):
            parse_slots(text)

    @pytest.mark.parametrize(
        ("text", "chosen_sites"),
        [
            ("pair:2", [("crex", "espncricinfo")] * 2),
            ("many:1", [("crex", "espncricinfo", "espn", "sofascorecricket"), ("sofascore", "espnsoccer")]),
            ("only:espn:1", [("espn",)]),
            ("only:espnsoccer,sofascore:1", [("espnsoccer", "sofascore")]),
        ],
    )
    def test_shows_a_match_at_several_sites(self, text: str, chosen_sites: list[tuple[str, ...]]) -> None:
        programme = Programme(text, 7)
        assert [slot.sites for slot in programme.slots] == chosen_sites
        for match in programme.listed_matches(0):
            for site in match.slot.sites:
                elsewhere = programme.match(match.slot, match.turn, site)
                assert ids.number_of_key(site, elsewhere.key) == match.number
                assert elsewhere.times == match.times

    def test_the_demo_shows_some_matches_at_two_sites(self) -> None:
        programme = Programme("demo", 7)
        twice = [slot.sites for slot in programme.slots if len(slot.sites) > 1]
        assert twice == [("crex", "espncricinfo"), ("crex", "espncricinfo"), ("sofascore", "espnsoccer")]
        assert programme.distortions["espncricinfo"].delay_seconds > 0

    def test_mixed_has_both_sports(self) -> None:
        assert [slot.sport for slot in parse_slots("mixed:2:1")] == ["cricket", "cricket", "football"]
