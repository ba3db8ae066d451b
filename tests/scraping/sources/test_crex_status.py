"""Status and phase from the texts of the site, and unknown texts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from scraping.payloads import Phase, Status
from scraping.sources.crex.live import is_limited, is_long
from tests.scraping.sources import builders as build
from tests.scraping.sources.test_crex_parse import direct


class TestUnknownTexts:
    @pytest.mark.requirement("FS-2", "FS-8")
    @pytest.mark.parametrize("said", ["Floodlight failure", "xyz"])
    def test_of_the_last_ball_are_counted(self, said: str) -> None:
        assert [(one.path, one.value) for one in direct(build.live(B=said)).unknown] == [("B", said)]

    def test_of_a_new_kind_of_match_are_counted(self) -> None:
        assert [(one.path, one.value) for one in direct(build.live(fo="Pairs")).unknown] == [("fo", "Pairs")]

    @pytest.mark.parametrize(
        ("match_type", "expected"),
        [
            ("T20", (False, True)), ("T20I", (False, True)), ("T10", (False, True)), ("ODI", (False, True)),
            ("WODI", (False, True)), ("List A", (False, True)), ("The Hundred", (False, True)),
            ("TEST", (True, False)), ("Test", (True, False)), ("FC", (True, False)), ("4-Day", (True, False)),
            ("First Class", (True, False)), ("MDM", (True, False)), ("One Day", (False, True)), ("", (False, False)),
        ],
    )  # fmt: skip
    def test_kinds_of_matches_are_long_or_limited(self, match_type: str, expected: tuple[bool, bool]) -> None:
        assert (is_long(match_type), is_limited(match_type)) == expected

    @pytest.mark.parametrize(
        "said", ["4", "1nb", "W", "^2", "B", "o", "ba", "bc", "fh", "", "Innings Break", "Tea", "PEL need 3 runs"]
    )
    def test_that_are_known_are_not(self, said: str) -> None:
        assert direct(build.live(B=said)).unknown == ()


class TestStatus:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            pytest.param({}, (Status.LIVE, Phase.PLAY), id="an ordinary ball"),
            pytest.param({"B": "Lunch Break"}, (Status.LIVE, Phase.LUNCH), id="lunch"),
            pytest.param({"B": "Tea"}, (Status.LIVE, Phase.TEA), id="tea"),
            pytest.param({"B": "Stumps - Day 2"}, (Status.LIVE, Phase.STUMPS), id="stumps"),
            pytest.param({"B": "Drinks"}, (Status.LIVE, Phase.DRINKS), id="drinks"),
            pytest.param({"B": "Strategic Time Out"}, (Status.LIVE, Phase.DRINKS), id="time out"),
            pytest.param({"B": "Innings Break"}, (Status.LIVE, Phase.INNINGS_BREAK), id="innings break"),
            pytest.param({"C": "Match interrupted by rain"}, (Status.LIVE, Phase.RAIN), id="announced rain"),
            pytest.param(
                {"B": "4", "comment1": "ACA won by 7 wickets"}, (Status.COMPLETED, Phase.FINISHED), id="ball lags"
            ),
            pytest.param({"res": "Match awarded to PEL"}, (Status.COMPLETED, Phase.FINISHED), id="awarded"),
            pytest.param({"res": "PEL won by 8 runs (D/L method)"}, (Status.COMPLETED, Phase.FINISHED), id="D/L"),
            pytest.param({"res": "PEL won by an innings and 3 runs"}, (Status.COMPLETED, Phase.FINISHED), id="innings"),
            pytest.param({"B": "Match delayed by rain"}, (Status.LIVE, Phase.RAIN), id="rain"),
            pytest.param({"B": "Bad light stopped play"}, (Status.LIVE, Phase.RAIN), id="light"),
            pytest.param({"comment1": "PEL won by 7 wickets"}, (Status.COMPLETED, Phase.FINISHED), id="won"),
            pytest.param({"res": "Match tied"}, (Status.COMPLETED, Phase.FINISHED), id="tied"),
            pytest.param({"res": "Match tied, super over to follow"}, (Status.LIVE, Phase.PLAY), id="super over comes"),
            pytest.param(
                {"res": "Match tied (PEL won super over)"}, (Status.COMPLETED, Phase.FINISHED), id="super over"
            ),
            pytest.param({"res": "Match drawn"}, (Status.COMPLETED, Phase.FINISHED), id="drawn"),
            pytest.param({"B": "Match abandoned due to rain"}, (Status.ABANDONED, Phase.FINISHED), id="abandoned"),
            pytest.param({"res": "No result"}, (Status.ABANDONED, Phase.FINISHED), id="no result"),
            pytest.param({"B": "Day 2 play abandoned"}, (Status.LIVE, Phase.RAIN), id="one day abandoned"),
            pytest.param({"comment1": "ORC won the toss and chose to bat"}, (Status.LIVE, Phase.PLAY), id="toss"),
            pytest.param({"ms": 9, "st": "0", "status": 3}, (Status.LIVE, Phase.PLAY), id="status numbers say nothing"),
        ],
    )
    def test_comes_from_the_texts(self, changes: dict[str, Any], expected: tuple[Status, Phase]) -> None:
        state = direct(build.live(**changes)).state
        assert (state.status, state.phase) == expected

    @pytest.mark.parametrize(
        ("said", "at", "expected"),
        [
            ("", build.BEFORE, (Status.UPCOMING, Phase.SCHEDULED)),
            ("", build.DURING, (Status.LIVE, Phase.PLAY)),
            ("Toss delayed due to rain", build.BEFORE, (Status.UPCOMING, Phase.SCHEDULED)),
            ("Toss delayed due to rain", build.DURING, (Status.LIVE, Phase.RAIN)),
            ("Match postponed", build.DURING, (Status.UPCOMING, Phase.POSTPONED)),
        ],
    )
    def test_without_a_ball_comes_from_the_start_time(
        self, said: str, at: datetime, expected: tuple[Status, Phase]
    ) -> None:
        state = direct(build.live(j="", k="", B=said), captured_at=at).state
        assert (state.status, state.phase) == expected
        assert state.innings == ()

    @pytest.mark.parametrize(
        ("said", "winner", "decision"),
        [
            ("ORC won the toss and chose to bat", "Orchard City", "bat"),
            ("Pelican Town won the toss and elected to field first", "Pelican Town", "field"),
            ("PEL opt to bowl", "Pelican Town", "field"),
        ],
    )
    def test_distinguishes_the_toss_from_the_result(self, said: str, winner: str, decision: str) -> None:
        toss = direct(build.live(comment1=said)).state.toss
        assert toss is not None
        assert (toss.winner, toss.decision) == (winner, decision)
