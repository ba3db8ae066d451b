"""The comparison of matches of two sources by names, starts and series."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scraping import names
from scraping.matches.pairing import scoring
from scraping.matches.pairing.candidates import Candidate, Candidates
from scraping.matches.pairing.scoring import Facts, PairOutcome
from scraping.names import squeezed
from tests.factories import NOW

ALIASES = names.alias_table(
    tuple(
        (squeezed(alias), name)
        for alias, name in {
            "IND": "India",
            "AUS": "Australia",
            "ENG": "England",
            "Man Utd": "Manchester United",
            "Atlético-MG": "Atlético Mineiro",
            "RCB": "Royal Challengers Bengaluru",
            "Royal Challengers Bangalore": "Royal Challengers Bengaluru",
            "EQG": "Equatorial Guinea",
            "GUI": "Guinea",
            "England Lions": "England A",
            "Црвена звезда": "Red Star Belgrade",
            "SA": "South Africa",
        }.items()
    )
)


def team(text: str) -> names.TeamName:
    """Parses "India/IND", a name and its short form."""
    name, _, short = text.partition("/")
    return names.team(name, short, ALIASES)


class TestNames:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("India", "india"),
            ("India/IND", "IND"),
            ("INDW", "India Women"),
            ("IND-W", "India Women/INDW"),
            ("India Women", "India W"),
            ("AUSU19", "Australia Under-19s"),
            ("Australia U19", "Australia Under 19"),
            ("England Lions", "England Lions"),
            ("Man Utd", "Manchester United FC"),
            ("São Paulo", "Sao Paulo FC"),
            ("Atletico-MG", "Atlético Mineiro"),
            ("CR Flamengo", "Flamengo/FLA"),
            ("Royal Challengers Bangalore/RCB", "RCB"),
            ("Guyana Amazon Warriors/GAW", "GAW"),
            ("Brazil U20", "Sub-20 Brazil"),
            ("Corinthians Feminino", "Corinthians Women"),
            ("Bayern München", "Bayern Munchen"),
            ("Sri Lanka", "Sri-Lanka"),
            ("Dynamo Kyiv", "Динамо Киев"),
            ("Shakhtar Donetsk", "Shakhtyor Donezk"),
            ("Ludogorets Razgrad", "Лудогорец Разград"),
            ("Crvena Zvezda", "Red Star Belgrade"),
            ("Olympiakos", "Ολυμπιακός"),
            ("Rapid Wien", "SK Rapid Vienna"),
            ("RB Leipzig", "RasenBallsport Leipzig"),
            ("Red Bull Bragantino", "Bragantino"),
            ("Bayer 04 Leverkusen", "Leverkusen"),
            ("1. FC Köln", "FC Cologne"),
            ("Alshabab", "Al-Shabab"),
            ("Sheff Wed", "Sheffield Wednesday"),
            ("Argentinos Jrs", "Argentinos Juniors"),
            ("Gimnasia LP", "Gimnasia La Plata"),
            ("L.A. Galaxy", "Los Angeles Galaxy"),
            ("QPR", "Queens Park Rangers"),
            ("Sunrisers Hyderabad", "Hyderabad Sunrisers"),
            ("England Lions", "England A"),
            ("England Lions Women", "England A Women"),
            ("Jong Ajax", "Ajax II"),
            ("Sevilla B", "Sevilla Reserves"),
            ("U.A.E. Women", "UAE (W)"),
        ],
    )
    def test_the_same_team(self, one: str, other: str) -> None:
        assert names.similarity(team(one), team(other)) >= names.BY_ABBREVIATION

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Ireland", "Northern Ireland"),
            ("Congo", "DR Congo"),
            ("Inter Milan", "AC Milan"),
            ("Botafogo", "Botafogo-PB"),
            ("Nacional", "Nacional Potosí"),
            ("Nacional Potosí/Nacional", "Nacional"),
            ("Barcelona", "Barcelona Atlètic"),
            ("Mumbai", "Mumbai Indians"),
            ("EC Vitória", "Vitória SC"),
            ("FSV Frankfurt", "Eintracht Frankfurt"),
            ("Austria", "Australia"),
            ("Niger", "Nigeria"),
            ("Crystal Palace", "C. Palace"),
            ("MI", "Mumbai Indians"),
        ],
    )
    def test_a_part_or_an_initial_is_not_sure(self, one: str, other: str) -> None:
        assert 0 < names.similarity(team(one), team(other)) < names.BY_ABBREVIATION

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("India", "Australia"),
            ("India Women/IND", "India/IND"),
            ("India A", "India"),
            ("India U19", "India"),
            ("India U19 Women", "India Women"),
            ("INDW", "IND"),
            ("Barcelona B", "Barcelona"),
            ("Bayern II", "Bayern"),
            ("Manchester United", "Manchester City"),
            ("West Indies", "Indies Rovers"),
            ("Atlético Mineiro", "Athletico Paranaense"),
            ("TBC", "TBC"),
            ("Winner Semi-Final 1", "Winner Semi-Final 1"),
            ("", ""),
            ("Guinea", "Equatorial Guinea"),
            ("South Australia/SA", "South Africa"),
            ("Bolton W.", "Bolton W"),
        ],
    )
    def test_another_team(self, one: str, other: str) -> None:
        assert names.similarity(team(one), team(other)) == 0


def facts(first: str = "India", second: str = "Australia", *, minutes: float | None = 0, **more: Any) -> Facts:
    start = None if minutes is None else NOW + timedelta(minutes=minutes)
    return Facts((team(first), team(second)), start, **more)


@pytest.mark.parametrize(
    ("what", "other", "outcome"),
    [
        ("the very same", facts(), PairOutcome.SAME),
        ("the other way round", facts("Australia", "India"), PairOutcome.SAME),
        ("by short names", facts("IND", "AUS"), PairOutcome.SAME),
        ("a few minutes off", facts(minutes=20), PairOutcome.SAME),
        ("delayed at one source", facts(minutes=75), PairOutcome.UNSURE),
        ("the second match of the day", facts(minutes=240), PairOutcome.APART),
        ("the next match of the series", facts(minutes=24 * 60), PairOutcome.APART),
        ("the day before", facts(minutes=-24 * 60), PairOutcome.APART),
        ("no start there", facts(minutes=None), PairOutcome.UNSURE),
        ("one team differs", facts("India", "England"), PairOutcome.APART),
        ("the women's match before it", facts("India Women", "Australia Women"), PairOutcome.APART),
        ("the under-19s", facts("India U19", "Australia U19"), PairOutcome.APART),
        ("the second teams", facts("India A", "Australia A"), PairOutcome.APART),
        ("a name that is spelt wrong", facts("India", "Austrailia"), PairOutcome.UNSURE),
        ("not decided yet", facts("India", "TBC"), PairOutcome.APART),
        ("another format", facts(series="Only Test"), PairOutcome.UNSURE),
        ("another number in the series", facts(series="3rd T20I, Australia tour of India, 2026"), PairOutcome.UNSURE),
        ("the same number", facts(series="Australia tour of India 2026, 2nd T20I"), PairOutcome.SAME),
        ("a series by another name", facts(series="Gavaskar Cup"), PairOutcome.SAME),
        ("women's by the series", facts(series="Women's World Cup"), PairOutcome.APART),
        ("postponed", facts(minutes=48 * 60, series="Australia tour of India, 2nd T20I"), PairOutcome.UNSURE),
        ("the next one", facts(minutes=48 * 60, series="Australia tour of India, 3rd T20I"), PairOutcome.APART),
    ],
)
def test_outcome_of_a_comparison(what: str, other: Facts, outcome: PairOutcome) -> None:
    own = facts(series="2nd T20I, Australia in India", format="T20")
    verdict = scoring.score(own, other, ALIASES)
    assert verdict.reasons
    assert verdict.outcome is outcome
    assert scoring.score(other, own, ALIASES).outcome is outcome


@pytest.mark.parametrize(
    ("what", "one", "other", "outcome"),
    [
        ("live, start unknown at one", facts(is_live=True), facts(minutes=None, is_live=True), PairOutcome.SAME),
        ("live, starts far apart", facts(is_live=True), facts(minutes=600, is_live=True), PairOutcome.UNSURE),
        ("one is live, the other's start is unknown", facts(is_live=True), facts(minutes=None), PairOutcome.UNSURE),
    ],
)
def test_the_same_teams_do_not_play_twice_at_once(what: str, one: Facts, other: Facts, outcome: PairOutcome) -> None:
    assert scoring.score(one, other, ALIASES).outcome is outcome


@pytest.mark.parametrize(
    ("what", "one", "other", "outcome"),
    [
        ("both", facts("India Women", "Australia Women"), facts(series="Women's World Cup"), PairOutcome.SAME),
        ("by the title", facts(title="India v Australia (W)"), facts("INDW", "AUS Women"), PairOutcome.SAME),
        ("youth", facts(series="Under-19 World Cup"), facts("India U19", "Australia U19"), PairOutcome.SAME),
        ("of one only", facts(series="Women's World Cup"), facts(), PairOutcome.UNSURE),
    ],
)
def test_the_series_says_which_teams(what: str, one: Facts, other: Facts, outcome: PairOutcome) -> None:
    assert scoring.score(one, other, ALIASES).outcome is outcome


@pytest.mark.parametrize(
    ("what", "one", "other", "outcome"),
    [
        ("a part", facts("Congo", "Mali"), facts("DR Congo", "Mali"), PairOutcome.UNSURE),
        ("two listed teams", facts("Guinea", "Mali"), facts("Equatorial Guinea", "Mali"), PairOutcome.APART),
        ("initials of one", facts("C. Palace", "Man Utd"), facts("Crystal Palace", "Man Utd"), PairOutcome.SAME),
        ("initials of both", facts("MI", "RR"), facts("Mumbai Indians", "Rajasthan Royals"), PairOutcome.UNSURE),
        ("a word of one", facts("Shandong Taishan"), facts("Shandong Luneng"), PairOutcome.UNSURE),
    ],
)
def test_how_sure_the_names_are(what: str, one: Facts, other: Facts, outcome: PairOutcome) -> None:
    assert scoring.score(one, other, ALIASES).outcome is outcome
    assert scoring.score(other, one, ALIASES).outcome is outcome


def candidate(number: int, found: Facts) -> Candidate:
    return Candidate(number, found, {}, frozenset({1}), is_read=False)


class TestCandidates:
    def test_are_found_where_every_word_is_abbreviated(self) -> None:
        known = Candidates([candidate(1, facts("Manchester United", "Sheffield Wednesday"))])
        assert [one.match_id for one in known.like(facts("Manch. Utd", "Sheff Wed", minutes=170))] == [1]

    def test_are_found_by_initials(self) -> None:
        known = Candidates([candidate(1, facts("Queens Park Rangers", "Leeds"))])
        assert [one.match_id for one in known.like(facts("QPR", "Hull"))] == [1]


def test_a_better_match_has_a_higher_score() -> None:
    scores = [scoring.score(facts(), facts(minutes=minutes)).score for minutes in (0, 60, 120)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
