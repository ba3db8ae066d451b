"""Scores of a recording, and the comparison of a consumer's data with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stadium.replay.comparison import compare, current_events
from stadium.replay.player import recordings_in
from stadium.replay.recording import InvalidRecordingError, Recording, load
from tests.stadium.cricsheet_files import document, innings, write


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    first = innings("India", "4 1wd 1+1nb+2b 6", "W W 2", penalty_runs={"pre": 5, "post": 3})
    first["overs"][1]["deliveries"][1]["wickets"][0]["kind"] = "retired hurt"
    outcome = {"winner": "India", "by": {"runs": 9}}
    return load(write(tmp_path, document(first, innings("Sri Lanka", "1"), outcome=outcome)))


class TestRecording:
    def test_labels_count_legal_balls_and_slots_count_all(self, recording: Recording) -> None:
        assert [ball.label for ball in recording.balls[:4]] == ["0.1", "0.2", "0.2", "0.2"]
        assert [ball.slot for ball in recording.balls[:4]] == [f"b:1:0:{index}" for index in (1, 2, 3, 4)]

    def test_penalties_and_extras_count(self, recording: Recording) -> None:
        assert [ball.score for ball in recording.balls[:4]] == ["9/0", "10/0", "14/0", "20/0"]
        assert (recording.innings[0].runs, recording.innings[0].wickets) == (25, 1)

    def test_retired_hurt_is_no_wicket(self, recording: Recording) -> None:
        assert [ball.is_wicket for ball in recording.balls[4:7]] == [True, False, False]

    @pytest.mark.parametrize("text", ["{", "[]", '{"info": {}}', '{"info": {"teams": ["one"]}}'])
    def test_an_invalid_file_is_named(self, tmp_path: Path, text: str) -> None:
        file = tmp_path / "bad.json"
        file.write_text(text)
        with pytest.raises(InvalidRecordingError, match=r"bad\.json is no recorded match"):
            load(file)

    def test_a_folder_without_recordings_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidRecordingError, match=r"contains no \.json file"):
            recordings_in(tmp_path)


def rows_of(recording: Recording) -> list[dict[str, Any]]:
    """Returns a correct feed."""
    rows = [row(ball.slot, runs=ball.runs, over=ball.label, score=ball.score) for ball in recording.balls]
    for number, one in enumerate(recording.innings, start=1):
        rows += [row(f"w:{number}:{wicket}", kind="dismissal") for wicket in range(1, one.wickets + 1)]
    return rows


def row(slot: str, *, action: str = "add", kind: str = "runs", **fields: Any) -> dict[str, Any]:
    return {
        "event_id": slot,
        "slot": slot,
        "action": action,
        "kind": kind,
        "runs": fields.get("runs"),
        "over": fields.get("over", ""),
        "detail": {"score": fields.get("score")},
    }


def match_of(recording: Recording, **fields: Any) -> dict[str, Any]:
    innings_rows = [{"runs": one.runs, "wickets": one.wickets} for one in recording.innings]
    return {"status": "completed", "result": "India won by 9 runs", "innings": innings_rows, **fields}


class TestComparison:
    def test_a_correct_feed_has_no_differences(self, recording: Recording) -> None:
        result = compare(recording, match_of(recording), rows_of(recording))
        assert result.is_correct, result.differences
        assert (result.expected, result.present, result.overs) == (9, 9, 3)

    @pytest.mark.parametrize(
        ("change", "count"),
        [
            (lambda rows: rows.pop(3), "missing"),
            (lambda rows: rows.append({**rows[3], "event_id": "again"}), "doubled"),
            (lambda rows: rows.append({**rows[3], "event_id": "nowhere", "slot": ""}), "doubled"),
            (lambda rows: rows[3].update(runs=5), "wrong"),
            (lambda rows: rows[3].update(over="0.9"), "wrong"),
            (lambda rows: rows[3]["detail"].update(score="1/1"), "wrong"),
            (lambda rows: rows.append(row("b:1:7:1")), "wrong"),
            (lambda rows: rows.append(row("w:2:1", kind="dismissal")), "wrong"),
            (lambda rows: rows.append({**rows[3], "action": "retract"}), "missing"),
        ],
        ids=["lost", "doubled", "unnamed", "runs", "label", "score", "never bowled", "no wicket", "taken back"],
    )
    def test_differences_are_counted(self, recording: Recording, change: Any, count: str) -> None:
        rows = rows_of(recording)
        change(rows)
        result = compare(recording, match_of(recording), rows)
        assert getattr(result, count) == 1
        assert not result.is_correct

    @pytest.mark.parametrize(
        "fields",
        [{"status": "live"}, {"result": "India won by 8 runs"}, {"result": ""}, {"innings": []}],
        ids=["not over", "another margin", "no result", "no innings"],
    )
    def test_differences_of_the_outcome_are_found(self, recording: Recording, fields: dict[str, Any]) -> None:
        assert not compare(recording, match_of(recording, **fields), rows_of(recording)).is_correct

    def test_a_correction_leaves_no_difference(self, recording: Recording) -> None:
        rows = rows_of(recording)
        wrong = {**rows[3], "runs": 5}
        result = compare(recording, match_of(recording), [*rows[:3], wrong, *rows[4:], {**rows[3], "action": "update"}])
        assert (result.is_correct, result.corrections) == (True, 1)

    def test_a_retraction_of_an_unknown_event_is_ignored(self) -> None:
        assert current_events([row("b:1:0:1", action="retract")]) == []
