"""Conversion of recorded matches to scripts: every feature of the format in a small file, and complete real files."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stadium.cricket.script import Ball, CricketScript, NoticeKind, OverCard, WicketCard
from stadium.cricket.state import CricketState, fold
from stadium.cricsheet.conversion import build_script, load, load_all
from stadium.cricsheet.document import CricsheetError, Document
from stadium.cricsheet.teams import KeyRegistry, RecordedTeams, short_names

from .cricsheet_files import ELEVENS, EXTRAS, TEAMS, document, innings, write

RECORDINGS = Path(os.environ.get("VICTORYLINE_RECORDINGS", "/nowhere")) / "cricsheet"
RECORDED = sorted(RECORDINGS.glob("*.json"))
NOT_OUT = ("retired hurt", "retired not out")
SIX = "0 1 0 1 0 0"
A, B = TEAMS


def scripted(content: dict[str, Any], name: str = "900001") -> CricketScript:
    parsed = Document.model_validate(content)
    return build_script(name, parsed, RecordedTeams(parsed, KeyRegistry()))


def ended(content: dict[str, Any]) -> CricketState:
    script = scripted(content)
    return fold(script, script.events)


def balls_of(script: CricketScript) -> list[Ball]:
    return [event for event in script.events if isinstance(event, Ball)]


def notices_of(script: CricketScript) -> list[NoticeKind]:
    return [event.kind for event in script.events if hasattr(event, "kind")]


def with_wicket(part: dict[str, Any], place: tuple[int, int], *wickets: dict[str, Any]) -> dict[str, Any]:
    part["overs"][place[0]]["deliveries"][place[1]]["wickets"] = list(wickets)
    return part


class TestBalls:
    @pytest.mark.parametrize(
        ("text", "total", "extra", "label", "is_legal"),
        [
            ("0", 0, "", "0.1", True),
            ("6", 6, "", "0.1", True),
            ("1wd", 1, "wd", "0.1", False),
            ("5wd", 5, "wd", "0.1", False),
            ("4+1nb", 5, "nb", "0.1", False),
            ("1nb+4b", 5, "nb", "0.1", False),
            ("1nb+2lb", 3, "nb", "0.1", False),
            ("4b", 4, "b", "0.1", True),
            ("1lb", 1, "lb", "0.1", True),
            ("5pen", 5, "pen", "0.1", True),
            ("1+5pen", 6, "pen", "0.1", True),
            ("1wd+5pen", 6, "wd", "0.1", False),
        ],
    )
    def test_every_kind_of_extra(self, text: str, total: int, extra: str, label: str, is_legal: bool) -> None:
        script = scripted(document(innings(A, text)))
        (ball,) = balls_of(script)
        assert (ball.total, ball.extra, ball.label, ball.is_legal) == (total, extra, label, is_legal)
        assert fold(script, script.events).innings[0].runs == total

    def test_places_within_an_over_count_extras_and_numbers_do_not(self) -> None:
        balls = balls_of(scripted(document(innings(A, "1 1wd 0 1nb 0 0 0 0", SIX))))
        assert [(ball.index, ball.label) for ball in balls[:8]] == [
            (1, "0.1"), (2, "0.2"), (3, "0.2"), (4, "0.3"), (5, "0.3"), (6, "0.4"), (7, "0.5"), (8, "0.6"),
        ]  # fmt: skip
        assert balls[8].label == "1.1"

    @pytest.mark.parametrize(("over", "length"), [("0 0 0 0 0", 5), ("0 0 0 0 0 0 1", 7)])
    def test_a_miscounted_over_counts_as_complete(self, over: str, length: int) -> None:
        miscounted = {"0": {"balls": length, "umpire": "S Umpire"}}
        for overs in ((over,), (over, "0 0")):
            state = ended(document(innings(A, *overs, miscounted_overs=miscounted)))
            assert state.innings[0].overs_text == ("1.0" if len(overs) == 1 else "1.2")

    def test_overs_of_five_balls(self) -> None:
        state = ended(document(innings(A, "0 0 0 0 0", "1 1"), balls_per_over=5))
        assert state.innings[0].overs_text == "1.2"
        assert state.innings[0].bowlers[state.innings[0].overs[0].bowler.key].overs == "1.0"

    def test_four_that_was_run_is_no_boundary(self) -> None:
        part = innings(A, "4 4 6")
        part["overs"][0]["deliveries"][0]["runs"]["non_boundary"] = True
        (line, *_) = ended(document(part)).innings[0].batters.values()
        assert (line.runs, line.fours, line.sixes) == (14, 1, 1)

    def test_striker_is_taken_from_the_ball(self) -> None:
        part = innings(A, "1 1 1")  # the strike never changes in this file, for any runs
        batters = ended(document(part)).innings[0].batters.values()
        assert [(line.runs, line.balls) for line in batters] == [(3, 3), (0, 0)]


class TestWickets:
    @pytest.mark.parametrize(
        ("kind", "counts", "is_bowlers"),
        [
            ("bowled", 1, 1), ("caught", 1, 1), ("caught and bowled", 1, 1), ("lbw", 1, 1), ("stumped", 1, 1),
            ("hit wicket", 1, 1), ("run out", 1, 0), ("retired out", 1, 0), ("obstructing the field", 1, 0),
            ("handled the ball", 1, 0), ("hit the ball twice", 1, 0), ("timed out", 1, 0), ("retired hurt", 0, 0),
            ("retired not out", 0, 0),
        ],
    )  # fmt: skip
    def test_every_kind_of_dismissal(self, kind: str, counts: int, is_bowlers: int) -> None:
        out = {"player_out": ELEVENS[A][0], "kind": kind, "fielders": [{"name": ELEVENS[B][3]}]}
        script = scripted(document(with_wicket(innings(A, "0 0 0"), (0, 1), out)))
        state = fold(script, script.events)
        (bowler,) = state.innings[0].bowlers.values()
        assert (state.innings[0].wickets, bowler.wickets, len(state.innings[0].falls)) == (counts, is_bowlers, counts)
        assert sum(isinstance(event, WicketCard) for event in script.events) == counts
        assert [ball.text for ball in balls_of(script)] == ["0", "W" if counts else "0", "0"]

    def test_two_wickets_on_one_ball(self) -> None:
        first, second = (
            {"player_out": name, "kind": kind}
            for name, kind in zip(ELEVENS[A], ("run out", "retired out"), strict=False)
        )
        script = scripted(document(with_wicket(innings(A, "0 0"), (0, 1), first, second)))
        cards = [event for event in script.events if isinstance(event, WicketCard)]
        assert [card.wicket.out.name for card in cards] == ELEVENS[A][:2]
        assert [fall.number for fall in fold(script, script.events).innings[0].falls] == [1, 2]

    def test_a_batter_retired_hurt_may_return(self) -> None:
        part = with_wicket(innings(A, "0 0 0 0"), (0, 0), {"player_out": ELEVENS[A][0], "kind": "retired hurt"})
        for ball in part["overs"][0]["deliveries"][1:3]:
            ball["batter"] = ELEVENS[A][2]
        state = ended(document(part))
        assert [player.name for player in state.innings[0].crease] == ELEVENS[A][:2]
        assert (state.innings[0].wickets, state.innings[0].retired) == (0, set())

    def test_a_fielder_without_a_name_and_a_substitute(self) -> None:
        for fielder in ({"substitute": True}, {"name": "S Guest", "substitute": True}):
            out = {"player_out": ELEVENS[A][0], "kind": "run out", "fielders": [fielder]}
            assert ended(document(with_wicket(innings(A, "0"), (0, 0), out))).innings[0].score == "0/1"

    def test_all_out_with_absent_batters(self) -> None:
        overs = ["W W W W W W", "W W W W"]
        assert ended(document(innings(A, *overs))).innings[0].is_all_out
        short = innings(A, "W W W W W W", "W W W", absent_hurt=[ELEVENS[A][10]])
        assert ended(document(short)).innings[0].is_all_out
        assert not ended(document(innings(A, "W W W W W W", "W W W"))).innings[0].is_all_out

    def test_a_replacement_may_play(self) -> None:
        part = innings(A, "0 0")
        part["overs"][0]["deliveries"][1]["bowler"] = "N Comer"
        swap = {"in": "N Comer", "out": ELEVENS[B][5], "team": B, "reason": "concussion_substitute"}
        part["overs"][0]["deliveries"][1]["replacements"] = {"match": [swap]}
        script = scripted(document(part))
        assert "N Comer" in [player.name for player in script.teams[1].players]


class TestInnings:
    def test_declared_forfeited_and_followed_on(self) -> None:
        parts = [innings(A, SIX, declared=True), innings(B, "0 W"), innings(B, "1 1"), innings(A, forfeited=True)]
        state = ended(document(*parts, overs=None, match_type="Test"))
        assert [i.batting.name for i in state.innings] == [A, B, B, A]
        assert [i.is_declared for i in state.innings] == [True, False, False, True]
        assert state.script.format == "TEST"
        assert state.script.overs == 0

    def test_the_last_of_four_has_a_target(self) -> None:
        parts = [innings(A, "4 4"), innings(B, "4"), innings(A, "1"), innings(B, "0")]
        state = ended(document(*parts, overs=None, match_type="MDM"))
        assert [i.target for i in state.innings] == [None, None, None, 6]

    def test_penalty_runs_before_and_after_count(self) -> None:
        parts = [innings(A, "1"), innings(B, "2", penalty_runs={"pre": 5, "post": 10})]
        script = scripted(document(*parts))
        state = fold(script, script.events)
        assert (state.innings[1].score, state.innings[1].extras) == ("17/0", {"pen": 15})
        first = next(
            place for place, event in enumerate(script.events) if isinstance(event, Ball) and event.innings == 1
        )
        assert fold(script, script.events[:first]).innings[1].score == "5/0"

    def test_super_overs_go_on_counting(self) -> None:
        extra = {"super_over": True}
        parts = [innings(A, "1"), innings(B, "1"), innings(B, "6", **extra), innings(A, "6", **extra),
                 innings(A, "1 W W", **extra), innings(B, "2", **extra)]  # fmt: skip
        outcome = {"result": "tie", "eliminator": B}
        state = ended(document(*parts, outcome=outcome))
        assert [(i.number, i.is_super_over, i.target) for i in state.innings] == [
            (0, False, None), (1, False, 2), (2, True, None), (3, True, 7), (4, True, None), (5, True, 2),
        ]  # fmt: skip
        assert state.innings[4].is_all_out
        assert (state.result, state.result_long) == (
            "Match tied (SL won the Super Over)", "Match tied (Sri Lanka won the Super Over)",
        )  # fmt: skip
        assert state.winner is not None
        assert state.winner.name == B

    def test_the_side_that_bats_first_comes_first(self) -> None:
        state = ended(document(innings(B, "1"), innings(A, "2")))
        assert [team.name for team in state.script.teams] == [B, A]
        assert [i.batting.name for i in state.innings] == [B, A]


class TestOutcome:
    @pytest.mark.parametrize(
        ("outcome", "text", "status"),
        [
            ({"winner": A, "by": {"runs": 17}}, "India won by 17 runs", "completed"),
            ({"winner": A, "by": {"runs": 1}}, "India won by 1 run", "completed"),
            (
                {"winner": B, "by": {"wickets": 3}, "method": "D/L"},
                "Sri Lanka won by 3 wickets (D/L method)",
                "completed",
            ),
            (
                {"winner": B, "by": {"wickets": 1}, "method": "VJD"},
                "Sri Lanka won by 1 wicket (VJD method)",
                "completed",
            ),
            ({"winner": A, "by": {"innings": 1, "runs": 5}}, "India won by an innings and 5 runs", "completed"),
            ({"winner": A, "method": "Awarded"}, "India won (match awarded)", "completed"),
            ({"winner": A, "method": "Lost fewer wickets"}, "India won (lost fewer wickets)", "completed"),
            ({"result": "draw"}, "Match drawn", "completed"),
            ({"result": "tie"}, "Match tied", "completed"),
            ({"result": "tie", "method": "D/L"}, "Match tied (D/L method)", "completed"),
            ({"result": "tie", "bowl_out": A}, "Match tied (India won the bowl-out)", "completed"),
            ({"result": "no result"}, "No result", "abandoned"),
        ],
    )
    def test_result_text(self, outcome: dict[str, Any], text: str, status: str) -> None:
        state = ended(document(innings(A, SIX), innings(B, "1"), outcome=outcome))
        assert (state.result_long, state.status) == (text, status)

    def test_no_ball_was_bowled(self) -> None:
        script = scripted(document(outcome={"result": "no result"}, toss={}))
        state = fold(script, script.events)
        assert (state.status, state.result) == ("abandoned", "Match abandoned without a ball bowled")
        assert (state.innings, state.toss) == ([], "")

    def test_missing_players_are_invented_and_listed_as_invented(self) -> None:
        script = scripted(document(outcome={"result": "no result"}, players={A: ELEVENS[A]}))
        assert [len(team.players) for team in script.teams] == [11, 11]
        assert script.fixture is not None
        assert f"the players of {B}" in script.fixture.invented
        assert f"the players of {A}" not in script.fixture.invented

    def test_the_toss(self) -> None:
        state = ended(document(innings(A, SIX)))
        assert (state.toss, state.toss_bats) == ("SL opt to bowl", False)
        assert state.toss_winner is not None
        assert state.toss_winner.name == B


class TestInventedParts:
    def test_is_listed_and_depends_on_the_file_name_only(self) -> None:
        content = document(innings(A, SIX, SIX), innings(B, SIX))
        one, again, other = scripted(content), scripted(content), scripted(content, "another")
        assert one == again
        assert one.events != other.events
        assert one.fixture is not None
        assert {"the time of every ball", "the start time", "short names"} <= set(one.fixture.invented)
        assert (one.fixture.venue, one.fixture.title) == ("Lantern Park, Ashgrove", "2nd Match")

    def test_nights_and_meals_of_a_match_of_several_days(self) -> None:
        dates = [f"2024-01-0{day}" for day in range(1, 4)]
        parts = [innings(A, *[SIX] * 40), innings(B, *[SIX] * 40)]
        script = scripted(document(*parts, overs=None, match_type="Test", dates=dates))
        kinds = notices_of(script)
        assert kinds.count(NoticeKind.STUMPS) == 2
        assert kinds.count(NoticeKind.LUNCH) >= 2
        assert fold(script, script.events).day == 3
        stopped = {NoticeKind.STUMPS, NoticeKind.LUNCH, NoticeKind.TEA, NoticeKind.DRINKS}
        for kind, following in itertools.pairwise(kinds):
            assert kind not in stopped or following is NoticeKind.RESUME

    def test_a_night_between_two_innings(self) -> None:
        parts = [innings(A, *[SIX] * 3), innings(B, *[SIX] * 3)]
        script = scripted(document(*parts, overs=None, match_type="Test", dates=["2024-01-01", "2024-01-02"]))
        wanted = [NoticeKind.INNINGS_BREAK, NoticeKind.STUMPS, NoticeKind.RESUME, NoticeKind.INNINGS_START]
        assert notices_of(script)[2:6] == wanted

    @pytest.mark.parametrize(
        ("parts", "outcome", "kinds"),
        [
            (
                [innings(A, *[SIX] * 20), innings(B, SIX, target={"overs": 5, "runs": 4})],
                {"winner": A, "by": {"runs": 2}, "method": "D/L"},
                ["innings_break", "rain", "innings_start", "rain", "result"],
            ),
            (
                [innings(A, SIX, SIX), innings(B, "1 6", target={"overs": 2, "runs": 7})],
                {"winner": B, "by": {"wickets": 10}, "method": "D/L"},
                ["rain", "innings_break", "innings_start", "result"],
            ),
            ([innings(A, SIX)], {"result": "no result"}, ["rain", "abandoned"]),
            ([innings(A, SIX)], {"winner": A, "method": "Awarded"}, ["result"]),
        ],
    )
    def test_rain_where_overs_were_lost(self, parts: Any, outcome: Any, kinds: list[str]) -> None:
        assert [kind.value for kind in notices_of(scripted(document(*parts, outcome=outcome)))][2:] == kinds

    @pytest.mark.parametrize(
        ("names", "shorts"),
        [
            (("India", "Sri Lanka"), ("IND", "SL")),
            (("Chennai Super Kings", "Kings XI Punjab"), ("CSK", "KXIP")),
            (("Mumbai Indians", "Melbourne Invaders"), ("MUM", "MEL")),
            (("Northants", "Northumberland"), ("NORTHA", "NORTHU")),
        ],
    )
    def test_short_names_differ(self, names: tuple[str, str], shorts: tuple[str, str]) -> None:
        assert short_names(*names) == shorts

    def test_keys_are_unique_across_all_files(self) -> None:
        registry = KeyRegistry()
        people = [registry.player(f"P{number}", f"id{number}") for number in range(3_000)]
        assert len({player.key for player in people}) == 3_000
        assert registry.player("P7", "id7") == people[7]


class TestFolder:
    @pytest.mark.parametrize(
        ("content", "complaint"),
        [
            ("{", "Invalid JSON"),
            ("[]", "Input should be an object"),
            ({"info": {}}, "info.teams: Field required"),
            (document(innings(A, SIX), dates=[]), "info.dates"),
            (document(innings(A, SIX), outcome={"winner": "Unknown"}), "'Unknown' is none of the teams"),
            (document({**innings(A, SIX), "team": "Unknown"}), "innings.0.team: 'Unknown'"),
            (document(with_wicket(innings(A, "0"), (0, 0), {"player_out": "x", "kind": "vanished"})), "'vanished'"),
        ],
    )
    def test_error_names_the_file_and_the_field(self, tmp_path: Path, content: Any, complaint: str) -> None:
        path = write(tmp_path, content)
        with pytest.raises(CricsheetError) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert complaint in str(caught.value)

    def test_names_the_ball_that_does_not_add_up(self, tmp_path: Path) -> None:
        part = innings(A, SIX, SIX)
        part["overs"][1]["deliveries"][2]["runs"]["total"] = 9
        with pytest.raises(CricsheetError, match=r"innings\.0\.overs\.1\.deliveries\.2: .*are not 9 runs"):
            load(write(tmp_path, document(part)))

    def test_rejects_an_invalid_file_and_plays_the_valid_ones(self, tmp_path: Path) -> None:
        write(tmp_path, document(innings(A, SIX)), "good")
        bad = write(tmp_path, "{", "bad")
        folder = load_all(tmp_path)
        assert [recording.name for recording in folder.recordings] == ["good"]
        assert [complaint.startswith(f"{bad}: ") for complaint in folder.rejected] == [True]

    def test_refuses_a_folder_with_nothing_to_play(self, tmp_path: Path) -> None:
        with pytest.raises(CricsheetError, match="no such file or folder"):
            load_all(tmp_path / "nowhere")
        with pytest.raises(CricsheetError, match=r"contains no \*.json"):
            load_all(tmp_path)
        write(tmp_path, "{")
        with pytest.raises(CricsheetError, match="Invalid JSON"):
            load_all(tmp_path)


def summed(content: dict[str, Any]) -> list[tuple[str, int, int, list[int]]]:
    """Batting side, runs, wickets and runs an over of each innings: added up from the file alone."""
    rows = []
    for part in content["innings"]:
        overs = [sum(ball["runs"]["total"] for ball in over["deliveries"]) for over in part.get("overs", [])]
        penalties = sum(part.get("penalty_runs", {}).values())
        wickets = [
            wicket
            for over in part.get("overs", [])
            for ball in over["deliveries"]
            for wicket in ball.get("wickets", [])
            if wicket["kind"] not in NOT_OUT
        ]
        rows.append((part["team"], sum(overs) + penalties, len(wickets), overs))
    return rows


def folded(state: CricketState) -> list[tuple[str, int, int, list[int]]]:
    return [(i.batting.name, i.runs, i.wickets, [over.runs for over in i.overs]) for i in state.innings]


def check(script: CricketScript, content: dict[str, Any]) -> None:
    """Checks the script of any file."""
    state = fold(script, script.events)
    assert folded(state) == summed(content)
    assert state.is_over
    times = [event.at for event in script.events]
    assert times == sorted(times)
    times = [event.at for event in script.events if isinstance(event, Ball | WicketCard | OverCard)]
    assert len(set(times)) == len(times)
    assert [ball.delivery for ball in balls_of(script)] == list(range(1, len(balls_of(script)) + 1))
    for innings_ in state.innings:
        extras = sum(innings_.extras.values())
        assert innings_.runs == extras + sum(line.runs for line in innings_.batters.values())
        for over in innings_.overs:
            assert [ball.index for ball in over.balls] == list(range(1, len(over.balls) + 1))


CODES = st.sampled_from(
    ["0", "1", "2", "4", "6", "W", "1W", *(f"{n}{code}" for code in EXTRAS for n in (1, 5)), "1nb+2b", "1+5pen"]
)
OVERS = st.lists(st.lists(CODES, min_size=1, max_size=9).map(" ".join), max_size=6)
PARTS = st.builds(
    lambda team, overs, pre, post, declared, super_over: innings(
        team, *overs, penalty_runs={"pre": pre, "post": post}, declared=declared, super_over=super_over
    ),
    st.sampled_from(TEAMS), OVERS, st.sampled_from([0, 5]), st.sampled_from([0, 5]), st.booleans(), st.booleans(),
)  # fmt: skip
DAYS = st.integers(1, 5).map(lambda count: [f"2024-01-0{day + 1}" for day in range(count)])
OUTCOMES = st.sampled_from([
    {"winner": A, "by": {"runs": 3}}, {"result": "no result"}, {"result": "tie", "eliminator": B}, {"result": "draw"},
    {"winner": B, "by": {"wickets": 3}, "method": "D/L"},
])  # fmt: skip


class TestAnyFile:
    @given(st.lists(PARTS, max_size=6), DAYS, OUTCOMES, st.sampled_from([None, 1, 5, 20, 50]))
    @settings(max_examples=60, deadline=None)
    def test_final_state_equals_the_file(self, parts: Any, dates: list[str], outcome: Any, overs: int | None) -> None:
        content = document(*parts, dates=dates, outcome=outcome, overs=overs)
        check(scripted(content), content)


@pytest.mark.skipif(not RECORDED, reason="VICTORYLINE_RECORDINGS names no folder with Cricsheet files")
class TestRecordings:
    @pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
    def test_final_state_equals_the_sums_of_the_file(self, path: Path) -> None:
        content = json.loads(path.read_text())
        script = load(path)
        check(script, content)
        state = fold(script, script.events)
        outcome = content["info"]["outcome"]
        named = outcome.get("winner") or outcome.get("eliminator") or outcome.get("bowl_out")
        assert (state.winner.name if state.winner else None) == named
        assert (state.status == "abandoned") == (outcome.get("result") == "no result")
        assert state.day == len(content["info"]["dates"])
        if by := outcome.get("by"):
            assert all(str(number) in state.result_long for name, number in by.items() if name != "innings")
