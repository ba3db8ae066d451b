"""States of one match: the delta, partial states, scores that go backwards."""

from __future__ import annotations

from typing import Any

import pytest

from scraping.matches.reconcile.choosing import reconcile
from scraping.matches.reconcile.states import SourceView, delta, fill_gaps, goes_backwards, is_empty, progress_summary
from tests.scraping.builders import later


def cricket(*innings: tuple[int, int], status: str = "live") -> dict[str, Any]:
    return {"status": status, "innings": [{"runs": runs, "wickets": wickets} for runs, wickets in innings]}


def football(home: int, away: int, *, status: str = "live", clock: str = "") -> dict[str, Any]:
    return {"status": status, "clock": clock, "score": {"team_a": {"goals": home}, "team_b": {"goals": away}}}


class TestReconcile:
    @staticmethod
    def view(source: str, weight: int, *, age: float = 0, **state: Any) -> SourceView:
        return SourceView(source, weight, later(-age), state)

    @pytest.mark.parametrize(
        ("what", "views", "expected"),
        [
            ("one source", [("a", 50, 0, 1)], ("a", 1)),
            ("the heavier one", [("a", 50, 0, 1), ("b", 90, 0, 2)], ("b", 2)),
            ("the heavier one, though older", [("a", 50, 0, 1), ("b", 90, 60, 2)], ("b", 2)),
            ("of equals the newer one", [("a", 50, 60, 1), ("b", 50, 0, 2)], ("b", 2)),
            ("the only one that has it", [("a", 50, 0, 1), ("b", 90, 0, None)], ("a", 1)),
            ("zero is a value", [("a", 50, 0, 1), ("b", 90, 0, 0)], ("b", 0)),
            ("none has it", [("a", 50, 0, None), ("b", 90, 0, "")], ("b", "")),
            ("an object of nothing is nothing", [("a", 50, 0, {"g": 1}), ("b", 90, 0, {"g": None})], ("a", {"g": 1})),
        ],
    )
    def test_field_by_field(
        self, what: str, views: list[tuple[str, int, float, Any]], expected: tuple[str, Any]
    ) -> None:
        merged = reconcile([self.view(name, weight, age=age, f=value) for name, weight, age, value in views])
        assert (merged.provenance["f"]["source"], merged.state["f"]) == expected

    def test_provenance_has_source_and_time_of_each_field(self) -> None:
        merged = reconcile([self.view("a", 50, age=30, score=1, venue="Perth"), self.view("b", 90, score=2)])
        assert merged.state == {"score": 2, "venue": "Perth"}
        assert merged.provenance["venue"] == {
            "source": "a",
            "confidence": 1.0,
            "timestamp": "2026-01-10T11:59:30.000Z",
        }

    @pytest.mark.parametrize("empty", [None, "", [], {}, {"a": None}, {"a": {"b": ""}}])
    def test_nothing(self, empty: Any) -> None:
        assert is_empty(empty)

    @pytest.mark.parametrize("value", [0, False, "0", [None], {"a": 0}])
    def test_something(self, value: Any) -> None:
        assert not is_empty(value)

    def test_a_partial_state_erases_nothing(self) -> None:
        known = {
            "venue": "Perth",
            "score": {"a": {"goals": 1}, "b": {"goals": 0}},
            "last_event": {"t": "goal", "at": 5},
        }
        partial = {"venue": "", "score": {"a": {"goals": 2}, "b": {"goals": None}}, "last_event": {"t": "card"}}
        filled = fill_gaps(partial, known)
        assert filled["venue"] == "Perth"
        assert filled["score"] == {"a": {"goals": 2}, "b": {"goals": 0}}
        assert filled["last_event"] == {"t": "card"}  # not half of one event and half of another


class TestDelta:
    @pytest.mark.parametrize(
        ("what", "before", "after", "expected"),
        [
            ("the first state", {}, {"a": 1}, {"_diff_type": "initial", "a": 1}),
            ("one field", {"a": 1, "b": 2}, {"a": 1, "b": 3}, {"_diff_type": "update", "b": 3}),
            ("a new field", {"a": 1}, {"a": 1, "b": 2}, {"_diff_type": "update", "b": 2}),
            ("a field that has gone", {"a": 1, "b": 2}, {"a": 1}, {"_diff_type": "update", "b": None}),
            ("no difference", {"a": 1}, {"a": 1}, {"_diff_type": "update"}),
            ("deep inside", {"a": {"x": 1}}, {"a": {"x": 2}}, {"_diff_type": "update", "a": {"x": 2}}),
        ],
    )
    def test_has_the_fields_that_differ(self, what: str, before: Any, after: Any, expected: Any) -> None:
        assert delta(before, after) == {"_sequence_delta": 1, **expected}


class TestGoesBackwards:
    @pytest.mark.parametrize(
        ("what", "before", "after", "expected"),
        [
            ("a run", cricket((95, 3)), cricket((96, 3)), False),
            ("a wicket", cricket((95, 3)), cricket((95, 4)), False),
            ("the same", cricket((95, 3)), cricket((95, 3)), False),
            ("a run less", cricket((95, 3)), cricket((94, 3)), True),
            ("a wicket less", cricket((95, 3)), cricket((95, 2)), True),
            ("the second innings begins", cricket((187, 5)), cricket((187, 5), (0, 0)), False),
            ("the second innings is lost", cricket((187, 5), (3, 0)), cricket((190, 5)), True),
            ("the score is lost", cricket((95, 3)), cricket(), True),
            ("a goal", football(1, 1), football(1, 2), False),
            ("a goal taken back", football(1, 2), football(1, 1), True),
            ("a goal taken back while the other side scores", football(1, 2), football(2, 1), True),
            ("the end", cricket((95, 3)), cricket((95, 3), status="completed"), False),
            ("the end taken back", cricket((95, 3), status="completed"), cricket((95, 3)), True),
            ("an abandoned match goes on", cricket((95, 3), status="abandoned"), cricket((99, 3)), True),
            ("a beginning taken back", cricket((0, 0)), cricket(status="upcoming"), True),
            (
                "a correction after the end",
                football(2, 1, status="completed"),
                football(1, 1, status="completed"),
                True,
            ),
        ],
    )
    def test_table(self, what: str, before: Any, after: Any, expected: bool) -> None:
        assert goes_backwards(before, after) is expected

    def test_equal_summaries_mean_the_same_score_at_any_clock_time(self) -> None:
        assert progress_summary(football(1, 1, clock="67")) == progress_summary(football(1, 1, clock="68"))
        assert progress_summary(football(1, 1)) != progress_summary(football(1, 0))
        assert progress_summary(cricket((95, 3))) != progress_summary(cricket((94, 3)))
