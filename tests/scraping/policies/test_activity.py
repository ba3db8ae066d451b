"""The activity of a match: from the source's phase, from its score, and from polls without a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from scraping.payloads import BREAKS, Phase, Status
from scraping.policies.interval import ENDING_POLLS, Activity, Pace, PollHistory, activity_of
from scraping.policies.milestones import ScoreProgress, is_unannounced_milestone, score_progress
from scraping.sources import ADAPTERS
from scraping.sources import cricket as cricket_texts
from scraping.sources.crex import texts as crex
from scraping.sources.espn import soccer_schemas
from scraping.sources.espn import summary as espn
from scraping.sources.espn.schemas import MatchStatus
from scraping.sources.espn.soccer_schemas import SoccerStatus
from scraping.sources.espncricinfo import match_state as espncricinfo
from scraping.sources.espncricinfo.schemas import Brief
from scraping.sources.sofascore import cricket_adapter, event
from scraping.sources.sofascore.schemas import Status as SofascoreStatus
from tests.factories import NOW

IN_PROGRESS, INNINGS_FINISHED, MATCH_FINISHED = ScoreProgress
LIVE = Status.LIVE


def seen(unchanged_polls: int, score: ScoreProgress = IN_PROGRESS, *, is_break: bool = False) -> PollHistory:
    return PollHistory(LIVE, is_break=is_break, unchanged_polls=unchanged_polls, score=score)


@pytest.mark.requirement("FR-024")
@pytest.mark.parametrize(
    ("history", "activity"),
    [
        pytest.param(PollHistory(LIVE), Activity.PLAY, id="something has just changed"),
        pytest.param(seen(9, is_break=True), Activity.PLAY, id="a break announced just now"),
        pytest.param(seen(10, is_break=True), Activity.BREAK, id="announced, and nothing changes"),
        pytest.param(seen(39), Activity.PLAY, id="a long minute between two balls"),
        pytest.param(seen(40), Activity.QUIET, id="no break announced, but nothing changes"),
        pytest.param(seen(9, INNINGS_FINISHED), Activity.PLAY, id="the last wicket has just fallen"),
        pytest.param(seen(10, INNINGS_FINISHED), Activity.BETWEEN_INNINGS, id="all out, no break announced"),
        pytest.param(seen(10, INNINGS_FINISHED, is_break=True), Activity.BREAK, id="all out, a break announced"),
        pytest.param(seen(0, MATCH_FINISHED), Activity.PLAY, id="the winning run"),
        pytest.param(seen(10, MATCH_FINISHED), Activity.ENDING, id="unchanged for half a minute"),
        pytest.param(seen(99, MATCH_FINISHED, is_break=True), Activity.ENDING, id="during an announced break"),
        pytest.param(seen(ENDING_POLLS, MATCH_FINISHED), Activity.QUIET, id="the end is not announced soon"),
        pytest.param(PollHistory(Status.UPCOMING, unchanged_polls=99), Activity.NOT_BEGUN, id="upcoming"),
        pytest.param(PollHistory(Status.COMPLETED, unchanged_polls=99), Activity.OVER, id="completed"),
        pytest.param(PollHistory(Status.ABANDONED, is_break=True), Activity.OVER, id="abandoned in a break"),
    ],
)
def test_activity_of_a_match(history: PollHistory, activity: Activity) -> None:
    assert activity_of(history, Pace()) is activity


def cricket(kind: str, *innings: tuple[str, int, int, str], **fields: Any) -> dict[str, Any]:
    """Innings as (side, runs, wickets, overs)."""
    listed = [
        {"number": number, "team": f"team_{side}", "runs": runs, "wickets": wickets, "overs": overs}
        for number, (side, runs, wickets, overs) in enumerate(innings, start=1)
    ]
    listed[-1:] = [{**one, **fields.pop("last", {})} for one in listed[-1:]]
    return {"sport": "cricket", "status": "live", "phase": "play", "innings": listed, **fields} | {
        "metadata": {"match_type": kind}
    }


def football(clock: str, phase: str = "play", **fields: Any) -> dict[str, Any]:
    return {"sport": "football", "status": "live", "phase": phase, "clock": clock, **fields}


FIRST = ("a", 187, 5, "20.0")
TEST = (("a", 300, 10, "90.0"), ("b", 250, 10, "80.0"), ("a", 100, 10, "40.0"))


@pytest.mark.requirement("FR-024")
@pytest.mark.parametrize(
    ("state", "progress"),
    [
        pytest.param(cricket("T20"), IN_PROGRESS, id="not a ball"),
        pytest.param(cricket("T20", ("a", 95, 3, "12.3")), IN_PROGRESS, id="the first innings"),
        pytest.param(cricket("T20", ("a", 95, 10, "12.3")), INNINGS_FINISHED, id="all out"),
        pytest.param(cricket("T20", FIRST), INNINGS_FINISHED, id="twenty overs"),
        pytest.param(cricket("ODI", FIRST), IN_PROGRESS, id="twenty overs of fifty"),
        pytest.param(cricket("", FIRST), IN_PROGRESS, id="twenty overs, number of overs unknown"),
        pytest.param(cricket("", ("a", 95, 10, "12.3")), INNINGS_FINISHED, id="all out is all out"),
        pytest.param(cricket("T20", FIRST, ("b", 187, 5, "19.5")), IN_PROGRESS, id="level, a ball to come"),
        pytest.param(cricket("T20", FIRST, ("b", 188, 5, "19.5")), MATCH_FINISHED, id="past the target"),
        pytest.param(cricket("T20I", FIRST, ("b", 99, 10, "14.0")), MATCH_FINISHED, id="all out in the chase"),
        pytest.param(cricket("T20", FIRST, ("b", 150, 8, "20.0")), MATCH_FINISHED, id="the last over"),
        pytest.param(
            cricket("T20", FIRST, ("b", 99, 5, "9.0"), last={"target": 99}),
            MATCH_FINISHED,
            id="a target changed by rain",
        ),
        pytest.param(
            cricket("T20", FIRST, ("b", 190, 5, "19.0"), last={"target": 195}), IN_PROGRESS, id="one that it raised"
        ),
        pytest.param(
            cricket("", FIRST, ("b", 99, 5, "9.0"), last={"target": 99}), MATCH_FINISHED, id="a stated target suffices"
        ),
        pytest.param(cricket("", FIRST, ("b", 188, 5, "19.0")), IN_PROGRESS, id="more than the first: may be a Test"),
        pytest.param(
            cricket("T20", FIRST, ("b", 187, 9, "20.0"), ("b", 9, 1, "1.0"), last={"is_super_over": True}),
            IN_PROGRESS,
            id="a super over",
        ),
        pytest.param(cricket("Test", *TEST[:2]), INNINGS_FINISHED, id="Test: two innings down"),
        pytest.param(cricket("Test", TEST[0], ("b", 301, 4, "80.0")), IN_PROGRESS, id="Test: a lead wins nothing"),
        pytest.param(
            cricket("Test", ("a", 300, 6, "90.0"), last={"is_declared": True}), INNINGS_FINISHED, id="Test: declared"
        ),
        pytest.param(cricket("Test", *TEST), INNINGS_FINISHED, id="Test: three down, 151 to win"),
        pytest.param(cricket("Test", *TEST, ("b", 150, 9, "50.0")), IN_PROGRESS, id="Test: one run short"),
        pytest.param(cricket("Test", *TEST, ("b", 151, 9, "50.0")), MATCH_FINISHED, id="Test: won in the fourth"),
        pytest.param(cricket("Test", *TEST, ("b", 140, 10, "50.0")), MATCH_FINISHED, id="Test: lost in the fourth"),
        pytest.param(
            cricket("Test", ("a", 500, 10, "99.0"), ("b", 200, 10, "60.0"), ("b", 250, 10, "60.0")),
            MATCH_FINISHED,
            id="Test: lost by an innings",
        ),
        pytest.param(
            cricket("Test", ("a", 500, 10, "99.0"), ("b", 200, 10, "60.0"), ("b", 320, 10, "60.0")),
            INNINGS_FINISHED,
            id="Test: followed on, and made the other side bat again",
        ),
        pytest.param(cricket("T20", FIRST, result="India won by 5 runs"), MATCH_FINISHED, id="the result is printed"),
        pytest.param(cricket("T20", FIRST, status="completed"), IN_PROGRESS, id="announced by the source"),
        pytest.param(football("67"), IN_PROGRESS, id="football: in play"),
        pytest.param(football("45+3"), IN_PROGRESS, id="football: before half-time"),
        pytest.param(football("90+4"), MATCH_FINISHED, id="football: past ninety"),
        pytest.param(football("90"), MATCH_FINISHED, id="football: at ninety"),
        pytest.param(football("105+1", "extra_time"), IN_PROGRESS, id="football: extra time"),
        pytest.param(football("120+2", "extra_time"), MATCH_FINISHED, id="football: all of it"),
        pytest.param(football("PEN", "penalties"), IN_PROGRESS, id="football: penalties"),
        pytest.param(football("HT", "halftime"), IN_PROGRESS, id="football: half-time"),
        pytest.param(football(""), IN_PROGRESS, id="football: no clock"),
    ],
)
def test_progress_by_the_score(state: Mapping[str, Any], progress: ScoreProgress) -> None:
    assert score_progress(state) is progress


@pytest.mark.requirement("FR-024")
@pytest.mark.parametrize(
    ("state", "polls", "expected"),
    [
        pytest.param(cricket("T20", FIRST), 10, True, id="an unannounced end of the innings"),
        pytest.param(cricket("T20", FIRST), 11, False, id="once"),
        pytest.param(cricket("T20", FIRST), 9, False, id="not before it is sure"),
        pytest.param(cricket("T20", FIRST) | {"phase": "innings_break"}, 10, False, id="an announced break"),
        pytest.param(cricket("T20", FIRST, ("b", 188, 5, "19.5")), 40, True, id="an unannounced end"),
        pytest.param(cricket("T20", FIRST, ("b", 188, 5, "19.5")), 10, False, id="which takes some time"),
        pytest.param(cricket("T20", ("a", 95, 3, "12.3")), 40, False, id="a silence in the middle of an innings"),
        pytest.param(football("90+6"), 40, True, id="football"),
    ],
)
def test_an_unannounced_milestone(state: Mapping[str, Any], polls: int, expected: bool) -> None:
    assert is_unannounced_milestone(state, unchanged_polls=polls) is expected


def espn_cricket(words: str) -> Phase:
    stated = MatchStatus.model_validate({"type": {"state": "in", "description": words, "detail": "", "name": ""}})
    return espn.status_and_phase(stated, "", has_play=True)[1]


def espn_soccer(words: str) -> Phase:
    stated = SoccerStatus.model_validate({"type": {"name": words, "state": "in", "completed": False}})
    return soccer_schemas.status_and_phase(stated)[1]


def cricinfo(words: str) -> Phase:
    fields: dict[str, Any] = {"state": "LIVE", "status": words, "status_text": ""}
    match = Brief.model_construct(**fields)
    return espncricinfo.status_and_phase(match, has_play=True)[1]


def crex_phase(words: str) -> Phase:
    return crex.status_and_phase(result="", sentences=(words,), has_play=True, start_time=None, now=NOW)[1]


def sofascore(words: str) -> Phase:
    return event.status_and_phase(SofascoreStatus(type="inprogress", code=6, description=words))[1]


def sofascore_cricket(words: str) -> Phase:
    return cricket_adapter.status_and_phase(SofascoreStatus(type="inprogress", code=6, description=words))[1]


WORDS: dict[str, tuple[Callable[[str], Phase], str]] = {
    "board": (cricket_texts.phase_in, "Rain delay"),
    "crex": (crex_phase, "Innings Break"),
    "espn": (espn_cricket, "Drinks"),
    "espnsoccer": (espn_soccer, "STATUS_HALFTIME"),
    "espncricinfo": (cricinfo, "Lunch"),
    "sofascore": (sofascore, "Halftime"),
    "sofascorecricket": (sofascore_cricket, "Innings break"),
}


@pytest.mark.requirement("FR-024")
class TestEverySourceHasPhasesForBreaks:
    """Every source announces breaks, so a stated "play" counts for a hundred seconds without a change."""

    @pytest.mark.parametrize("adapter", sorted(WORDS))
    def test_its_breaks_are_recognised(self, adapter: str) -> None:
        phase_in, words = WORDS[adapter]
        assert phase_in(words) in BREAKS

    def test_every_adapter_is_covered(self) -> None:
        assert set(WORDS) == set(ADAPTERS)
