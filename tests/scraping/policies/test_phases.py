"""What a match is doing: from the source's words, from its score, and from what does not move any more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from scraping.payloads import BREAKS, Phase, Status
from scraping.policies.phases import ENDING_POLLS, Doing, Signs, judge
from scraping.policies.scores import ScoreSays, read_score
from scraping.policies.turns import is_silent_turn
from scraping.sources import ADAPTERS
from scraping.sources.board import compose as board
from scraping.sources.crex import status as crex
from scraping.sources.espn import soccer_status
from scraping.sources.espn import status as espn
from scraping.sources.espn.answers import MatchStatus
from scraping.sources.espn.soccer_answers import SoccerStatus
from scraping.sources.espncricinfo import status as espncricinfo
from scraping.sources.espncricinfo.schemas import Brief
from scraping.sources.sofascore import cricket_state, status
from tests.factories import NOW

GOES_ON, INNINGS_DONE, MATCH_DONE = ScoreSays
LIVE = Status.LIVE


@pytest.mark.requirement("FR-024")
@pytest.mark.parametrize(
    ("signs", "doing"),
    [
        pytest.param(Signs(LIVE), Doing.PLAY, id="something has just moved"),
        pytest.param(Signs(LIVE, is_break=True, unchanged_polls=9), Doing.PLAY, id="a break has only been told"),
        pytest.param(Signs(LIVE, is_break=True, unchanged_polls=10), Doing.BREAK, id="told, and nothing moves"),
        pytest.param(Signs(LIVE, unchanged_polls=39), Doing.PLAY, id="a long minute between two balls"),
        pytest.param(Signs(LIVE, unchanged_polls=40), Doing.QUIET, id="no word of a break, but nothing moves"),
        pytest.param(Signs(LIVE, False, 9, INNINGS_DONE), Doing.PLAY, id="the last wicket has just fallen"),
        pytest.param(Signs(LIVE, False, 10, INNINGS_DONE), Doing.BETWEEN_INNINGS, id="all out, nobody says break"),
        pytest.param(Signs(LIVE, True, 10, INNINGS_DONE), Doing.BREAK, id="somebody does"),
        pytest.param(Signs(LIVE, False, 0, MATCH_DONE), Doing.PLAY, id="the winning run"),
        pytest.param(Signs(LIVE, False, 10, MATCH_DONE), Doing.ENDING, id="it stands there for half a minute"),
        pytest.param(Signs(LIVE, True, 99, MATCH_DONE), Doing.ENDING, id="with whatever word"),
        pytest.param(Signs(LIVE, False, ENDING_POLLS, MATCH_DONE), Doing.QUIET, id="nobody will tell the end soon"),
        pytest.param(Signs(Status.UPCOMING, unchanged_polls=99), Doing.NOT_BEGUN, id="upcoming"),
        pytest.param(Signs(Status.COMPLETED, unchanged_polls=99), Doing.OVER, id="completed"),
        pytest.param(Signs(Status.ABANDONED, is_break=True), Doing.OVER, id="abandoned in a break"),
    ],
)
def test_what_it_is_doing(signs: Signs, doing: Doing) -> None:
    assert judge(signs) is doing


def cricket(kind: str, *innings: tuple[str, int, int, str], **fields: Any) -> dict[str, Any]:
    """Innings as (side, runs, wickets, overs)."""
    told = [
        {"number": number, "team": f"team_{side}", "runs": runs, "wickets": wickets, "overs": overs}
        for number, (side, runs, wickets, overs) in enumerate(innings, start=1)
    ]
    told[-1:] = [{**one, **fields.pop("last", {})} for one in told[-1:]]
    return {"sport": "cricket", "status": "live", "phase": "play", "innings": told, **fields} | {
        "metadata": {"match_type": kind}
    }


def football(clock: str, phase: str = "play", **fields: Any) -> dict[str, Any]:
    return {"sport": "football", "status": "live", "phase": phase, "clock": clock, **fields}


FIRST = ("a", 187, 5, "20.0")
TEST = (("a", 300, 10, "90.0"), ("b", 250, 10, "80.0"), ("a", 100, 10, "40.0"))


@pytest.mark.requirement("FR-024")
@pytest.mark.parametrize(
    ("state", "says"),
    [
        pytest.param(cricket("T20"), GOES_ON, id="not a ball"),
        pytest.param(cricket("T20", ("a", 95, 3, "12.3")), GOES_ON, id="the first innings"),
        pytest.param(cricket("T20", ("a", 95, 10, "12.3")), INNINGS_DONE, id="all out"),
        pytest.param(cricket("T20", FIRST), INNINGS_DONE, id="twenty overs"),
        pytest.param(cricket("ODI", FIRST), GOES_ON, id="twenty overs of fifty"),
        pytest.param(cricket("", FIRST), GOES_ON, id="twenty overs of who knows how many"),
        pytest.param(cricket("", ("a", 95, 10, "12.3")), INNINGS_DONE, id="all out is all out"),
        pytest.param(cricket("T20", FIRST, ("b", 187, 5, "19.5")), GOES_ON, id="level, a ball to come"),
        pytest.param(cricket("T20", FIRST, ("b", 188, 5, "19.5")), MATCH_DONE, id="past the target"),
        pytest.param(cricket("T20I", FIRST, ("b", 99, 10, "14.0")), MATCH_DONE, id="all out in the chase"),
        pytest.param(cricket("T20", FIRST, ("b", 150, 8, "20.0")), MATCH_DONE, id="the last over"),
        pytest.param(
            cricket("T20", FIRST, ("b", 99, 5, "9.0"), last={"target": 99}), MATCH_DONE, id="a target that rain changed"
        ),
        pytest.param(
            cricket("T20", FIRST, ("b", 190, 5, "19.0"), last={"target": 195}), GOES_ON, id="one that it raised"
        ),
        pytest.param(
            cricket("", FIRST, ("b", 99, 5, "9.0"), last={"target": 99}), MATCH_DONE, id="a target says it all"
        ),
        pytest.param(cricket("", FIRST, ("b", 188, 5, "19.0")), GOES_ON, id="more than the first: may be a Test"),
        pytest.param(
            cricket("T20", FIRST, ("b", 187, 9, "20.0"), ("b", 9, 1, "1.0"), last={"is_super_over": True}),
            GOES_ON,
            id="a super over",
        ),
        pytest.param(cricket("Test", *TEST[:2]), INNINGS_DONE, id="Test: two innings down"),
        pytest.param(cricket("Test", TEST[0], ("b", 301, 4, "80.0")), GOES_ON, id="Test: a lead wins nothing"),
        pytest.param(
            cricket("Test", ("a", 300, 6, "90.0"), last={"is_declared": True}), INNINGS_DONE, id="Test: declared"
        ),
        pytest.param(cricket("Test", *TEST), INNINGS_DONE, id="Test: three down, 151 to win"),
        pytest.param(cricket("Test", *TEST, ("b", 150, 9, "50.0")), GOES_ON, id="Test: one run short"),
        pytest.param(cricket("Test", *TEST, ("b", 151, 9, "50.0")), MATCH_DONE, id="Test: won in the fourth"),
        pytest.param(cricket("Test", *TEST, ("b", 140, 10, "50.0")), MATCH_DONE, id="Test: lost in the fourth"),
        pytest.param(
            cricket("Test", ("a", 500, 10, "99.0"), ("b", 200, 10, "60.0"), ("b", 250, 10, "60.0")),
            MATCH_DONE,
            id="Test: lost by an innings",
        ),
        pytest.param(
            cricket("Test", ("a", 500, 10, "99.0"), ("b", 200, 10, "60.0"), ("b", 320, 10, "60.0")),
            INNINGS_DONE,
            id="Test: followed on, and made the other side bat again",
        ),
        pytest.param(cricket("T20", FIRST, result="India won by 5 runs"), MATCH_DONE, id="the result is printed"),
        pytest.param(cricket("T20", FIRST, status="completed"), GOES_ON, id="where the source has said it"),
        pytest.param(football("67"), GOES_ON, id="football: in play"),
        pytest.param(football("45+3"), GOES_ON, id="football: before half-time"),
        pytest.param(football("90+4"), MATCH_DONE, id="football: past ninety"),
        pytest.param(football("90"), MATCH_DONE, id="football: at ninety"),
        pytest.param(football("105+1", "extra_time"), GOES_ON, id="football: extra time"),
        pytest.param(football("120+2", "extra_time"), MATCH_DONE, id="football: all of it"),
        pytest.param(football("PEN", "penalties"), GOES_ON, id="football: penalties"),
        pytest.param(football("HT", "halftime"), GOES_ON, id="football: half-time"),
        pytest.param(football(""), GOES_ON, id="football: no clock"),
    ],
)
def test_what_the_score_says(state: Mapping[str, Any], says: ScoreSays) -> None:
    assert read_score(state) is says


@pytest.mark.requirement("FR-024")
@pytest.mark.parametrize(
    ("state", "polls", "expected"),
    [
        pytest.param(cricket("T20", FIRST), 10, True, id="an innings is done and nobody says so"),
        pytest.param(cricket("T20", FIRST), 11, False, id="once"),
        pytest.param(cricket("T20", FIRST), 9, False, id="not before it is sure"),
        pytest.param(cricket("T20", FIRST) | {"phase": "innings_break"}, 10, False, id="a break that was told"),
        pytest.param(cricket("T20", FIRST, ("b", 188, 5, "19.5")), 40, True, id="an end that nobody tells"),
        pytest.param(cricket("T20", FIRST, ("b", 188, 5, "19.5")), 10, False, id="which takes some time"),
        pytest.param(cricket("T20", ("a", 95, 3, "12.3")), 40, False, id="a silence in the middle of an innings"),
        pytest.param(football("90+6"), 40, True, id="football"),
    ],
)
def test_a_turn_that_only_silence_tells(state: Mapping[str, Any], polls: int, expected: bool) -> None:
    assert is_silent_turn(state, unchanged_polls=polls) is expected


def espn_cricket(words: str) -> Phase:
    told = MatchStatus.model_validate({"type": {"state": "in", "description": words, "detail": "", "name": ""}})
    return espn.judge(told, "", has_play=True)[1]


def espn_soccer(words: str) -> Phase:
    told = SoccerStatus.model_validate({"type": {"name": words, "state": "in", "completed": False}})
    return soccer_status.judge(told)[1]


def cricinfo(words: str) -> Phase:
    fields: dict[str, Any] = {"state": "LIVE", "status": words, "status_text": ""}
    match = Brief.model_construct(**fields)
    return espncricinfo.judge(match, has_play=True)[1]


def crex_says(words: str) -> Phase:
    return crex.judge(result="", sentences=(words,), has_play=True, start_time=None, now=NOW)[1]


def sofascore(words: str) -> Phase:
    return status.judge({"type": "inprogress", "code": 6, "description": words})[1]


def sofascore_cricket(words: str) -> Phase:
    return cricket_state.judge({"status": {"type": "inprogress", "code": 6, "description": words}})[1]


WORDS: dict[str, tuple[Callable[[str], Phase], str]] = {
    "board": (lambda words: board._phase(LIVE, words), "Rain delay"),
    "crex": (crex_says, "Innings Break"),
    "espn": (espn_cricket, "Drinks"),
    "espnsoccer": (espn_soccer, "STATUS_HALFTIME"),
    "espncricinfo": (cricinfo, "Lunch"),
    "sofascore": (sofascore, "Halftime"),
    "sofascorecricket": (sofascore_cricket, "Innings break"),
}


@pytest.mark.requirement("FR-024")
class TestEverySourceHasWordsForBreaks:
    """Why "play" is believed for a hundred seconds: a source that means a break says so."""

    @pytest.mark.parametrize("adapter", sorted(WORDS))
    def test_and_they_are_understood(self, adapter: str) -> None:
        phase_in, words = WORDS[adapter]
        assert phase_in(words) in BREAKS

    def test_all_of_them(self) -> None:
        assert set(WORDS) == set(ADAPTERS)
