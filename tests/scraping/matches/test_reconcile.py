"""One match out of several sources: the chosen source of each field, provenance, conflicts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scraping.matches.reconcile.choosing import reconcile
from scraping.matches.reconcile.states import SourceView, is_crossed, swap_sides, swap_slot_sides
from tests.factories import NOW, cricket_state, football_state

CREX, ESPN, SOFA = ("crex", 100), ("espn", 80), ("sofascore", 60)


def cricket(runs: int = 95, wickets: int = 3, **fields: Any) -> dict[str, Any]:
    """Returns a state: India 187/5, Australia batting."""
    state = cricket_state(**fields).model_dump(mode="json")
    state["innings"][1] |= {"runs": runs, "wickets": wickets}
    state["score"]["team_b"] |= {"runs": runs, "wickets": wickets}
    return state


def football(home: int, away: int, **fields: Any) -> dict[str, Any]:
    state = football_state(**fields).model_dump(mode="json")
    state["score"] = {"team_a": {"goals": home}, "team_b": {"goals": away}}
    return state


def view(who: tuple[str, int], state: dict[str, Any], *, age: float = 0, **more: Any) -> SourceView:
    return SourceView(who[0], who[1], NOW - timedelta(seconds=age), state, **more)


@pytest.mark.requirement("SO-13")
class TestChosenSource:
    def test_the_heavier_source_though_the_lighter_one_is_newer(self) -> None:
        merged = reconcile([view(CREX, cricket(187), age=5), view(ESPN, cricket(186))])
        assert merged.state["score"]["team_b"]["runs"] == 187

    def test_what_the_heavier_one_lacks_comes_from_the_lighter_one(self) -> None:
        toss = {"winner": "India", "decision": "bat"}
        merged = reconcile([view(CREX, cricket()), view(ESPN, cricket() | {"toss": toss, "venue": "Perth"})])
        assert (merged.state["toss"], merged.provenance["toss"]["source"]) == (toss, "espn")
        assert merged.provenance["venue"]["source"] == "espn"

    def test_of_equals_the_newest(self) -> None:
        merged = reconcile([view(("a", 50), cricket(100), age=3), view(("b", 50), cricket(101))])
        assert merged.state["innings"][1]["runs"] == 101

    @pytest.mark.parametrize(
        ("behind", "expected_source", "confidence"),
        [
            (0, "crex", 1.0),
            (10, "crex", 1.0),
            (25, "crex", 0.7),
            (34, "crex", 0.52),
            (36, "espn", 1.0),
            (400, "espn", 1.0),
        ],
    )
    def test_a_live_source_that_has_fallen_behind_loses_the_play(
        self, behind: float, expected_source: str, confidence: float
    ) -> None:
        merged = reconcile([view(CREX, cricket(90), age=behind), view(ESPN, cricket(96))])
        sources = {merged.provenance[field]["source"] for field in ("status", "score", "innings", "phase")}
        assert sources == {expected_source}
        assert merged.provenance["score"]["confidence"] == pytest.approx(confidence)
        assert merged.provenance["teams"]["source"] == "crex"  # names do not grow old

    @pytest.mark.parametrize(
        ("what", "silent_for", "late_runs", "runs"),
        [
            ("the reporting one is late", 60, 85, 90),
            ("it has caught up", 60, 90, 90),
            ("it is ahead", 60, 91, 91),
            ("the other one is gone for good", 121, 85, 85),
        ],
    )
    def test_a_late_source_does_not_take_back_the_state_of_a_silent_one(
        self, what: str, silent_for: float, late_runs: int, runs: int
    ) -> None:
        views = [view(CREX, cricket(90), age=silent_for), view(ESPN, cricket(late_runs))]
        assert reconcile(views, known=cricket(90)).state["innings"][1]["runs"] == runs

    @pytest.mark.parametrize(("written_late_by", "runs"), [(5, 90), (0, 89)], ids=["read before it", "read last"])
    def test_a_heavier_source_that_was_read_before_the_known_state_does_not_take_it_back(
        self, written_late_by: float, runs: int
    ) -> None:
        views = [view(CREX, cricket(89), age=written_late_by), view(ESPN, cricket(90))]
        assert reconcile(views, known=cricket(90)).state["innings"][1]["runs"] == runs

    def test_a_source_may_take_back_its_own_state(self) -> None:
        views = [view(CREX, cricket(89)), view(ESPN, cricket(90))]
        assert reconcile(views, known=cricket(90)).state["innings"][1]["runs"] == 89

    def test_outdated_data_is_better_than_none(self) -> None:
        merged = reconcile([view(CREX, cricket(90), age=300), view(ESPN, {"venue": "Perth"})])
        assert merged.state["score"]["team_b"]["runs"] == 90

    @pytest.mark.parametrize(
        ("what", "views", "status"),
        [
            ("a lighter one ends it too early", [(CREX, "live", 0), (ESPN, "completed", 0)], "live"),
            ("the heavier one has ended it", [(CREX, "completed", 0), (ESPN, "live", 0)], "completed"),
            ("an end does not grow old", [(CREX, "completed", 600), (ESPN, "live", 0)], "completed"),
            ("nor does being called off", [(CREX, "abandoned", 600), (ESPN, "live", 0)], "abandoned"),
            ("the live one has no later reading", [(CREX, "live", 60), (ESPN, "completed", 0)], "completed"),
        ],
    )
    def test_the_end_of_a_match(self, what: str, views: list[tuple[Any, str, float]], status: str) -> None:
        merged = reconcile([view(who, cricket() | {"status": word}, age=age) for who, word, age in views])
        assert merged.state["status"] == status

    def test_score_and_innings_are_never_of_two_sources(self) -> None:
        without = cricket(100) | {"innings": [], "current_innings": None}
        merged = reconcile([view(CREX, without), view(ESPN, cricket(96))])
        assert (merged.state["score"]["team_b"]["runs"], merged.state["innings"]) == (100, [])

    def test_a_missing_field_comes_from_a_source_that_agrees(self) -> None:
        without = cricket(96) | {"innings": []}
        merged = reconcile([view(CREX, without), view(ESPN, cricket(96))])
        assert (merged.provenance["innings"]["source"], merged.state["innings"][1]["runs"]) == ("espn", 96)

    def test_names_are_those_of_the_heavier_source(self) -> None:
        named = {"title": "India v Australia", "teams": {"team_a": {"name": "India"}, "team_b": {"name": "Australia"}}}
        first = {"title": "IND v AUS", "teams": {"team_a": {"name": "IND"}, "team_b": {"name": "AUS"}}}
        merged = reconcile([view(CREX, cricket() | named), view(ESPN, cricket() | first)], known=cricket() | first)
        assert {name: merged.state[name] for name in named} == named

    def test_the_sides_keep_the_order_of_the_match(self) -> None:
        known = cricket() | {"title": "IND v AUS", "teams": {"team_a": {"name": "IND"}, "team_b": {"name": "AUS"}}}
        turned = {"title": "Australia v India", "teams": {"team_a": {"name": "Australia"}, "team_b": {"name": "India"}}}
        heavy = replace(view(CREX, cricket() | turned), is_crossed=True)
        merged = reconcile([heavy, view(ESPN, known)], known=known)
        assert [team["name"] for team in merged.state["teams"].values()] == ["India", "Australia"]
        assert merged.state["title"] == "IND v AUS"

    def test_metadata_is_merged_key_by_key(self) -> None:
        merged = reconcile(
            [
                view(CREX, cricket() | {"metadata": {"series": "Ashes", "round": None}}),
                view(ESPN, cricket() | {"metadata": {"series": "The Ashes", "round": 2}}),
            ]
        )
        assert merged.state["metadata"] == {"series": "Ashes", "round": 2}
        assert merged.provenance["metadata"]["keys"] == {"series": "crex", "round": "espn"}


class TestStartMissedByTheHeavierSource:
    """Guards against a match that stays upcoming for ever."""

    @pytest.mark.parametrize(
        ("heavy", "late", "light", "status"),
        [
            pytest.param({}, -60, {}, "upcoming", id="before its start the heavier one is expected_source"),
            pytest.param({}, 599, {}, "upcoming", id="and some minutes after it"),
            pytest.param({}, 600, {}, "live", id="ten minutes after it, it is late"),
            pytest.param({}, 600, {"status": "completed"}, "completed", id="even more so at the end"),
            pytest.param({}, 600, {"status": "upcoming"}, "upcoming", id="no source has play"),
            pytest.param({"phase": "postponed"}, 600, {}, "upcoming", id="it was put off"),
            pytest.param({"start_time": None}, 600, {}, "upcoming", id="without a start time"),
        ],
    )
    def test_is_accepted_when_its_own_start_time_has_passed(
        self, heavy: dict[str, Any], late: float, light: dict[str, Any], status: str
    ) -> None:
        start = (NOW - timedelta(seconds=late)).isoformat()
        waiting = cricket(0, 0) | {"status": "upcoming", "phase": "scheduled", "innings": [], "start_time": start}
        views = [view(CREX, waiting | heavy), view(ESPN, cricket(96) | {"status": "live"} | light)]
        assert reconcile(views, known=cricket(0) | {"status": "upcoming"}).state["status"] == status

    def test_is_not_accepted_from_an_outdated_source(self) -> None:
        waiting = cricket(0, 0) | {"status": "upcoming", "start_time": (NOW - timedelta(hours=1)).isoformat()}
        views = [view(CREX, waiting), view(ESPN, cricket(96) | {"status": "live"}, age=60)]
        assert reconcile(views, known=waiting).state["status"] == "upcoming"
        assert reconcile(views, known=cricket(96)).state["status"] == "live", "a match that has begun stays begun"


class TestEndMissedByTheHeavierSource:
    """Guards against a match that stays live for ever because one site never got the result."""

    LIVE, ENDED = {"status": "live"}, {"status": "completed", "phase": "finished", "result": "Australia won"}

    @pytest.mark.parametrize(
        ("heavy", "unmoved", "light", "status"),
        [
            pytest.param({}, 0, {}, "live", id="the heavier one has just moved"),
            pytest.param({}, 599, {}, "live", id="ten minutes ago, almost"),
            pytest.param({}, 600, {}, "completed", id="ten minutes ago"),
            pytest.param({}, None, {}, "live", id="it moves, though the match has not for long"),
            pytest.param({}, 600, {"status": "abandoned"}, "abandoned", id="called off"),
            pytest.param({}, 600, {"status": "live"}, "live", id="no source has an end"),
            pytest.param({"phase": "rain"}, 600, {"status": "abandoned"}, "abandoned", id="washed out"),
            pytest.param({"phase": "drinks"}, 899, {}, "live", id="drinks explain a quarter of an hour"),
            pytest.param({"phase": "innings_break"}, 3599, {}, "live", id="a break between innings an hour"),
            pytest.param({"phase": "innings_break"}, 3600, {}, "completed", id="and no more than that"),
            pytest.param({"phase": "stumps"}, 17 * 3600, {}, "live", id="stumps a whole night"),
            pytest.param({"phase": "stumps"}, 24 * 3600, {}, "completed", id="but not another one"),
        ],
    )
    def test_is_accepted_when_it_does_not_change(
        self, heavy: dict[str, Any], unmoved: float | None, light: dict[str, Any], status: str
    ) -> None:
        stuck = view(CREX, cricket(96) | self.LIVE | heavy, unmoved_seconds=unmoved)
        ended = view(ESPN, cricket(96) | self.ENDED | light, unmoved_seconds=unmoved)
        merged = reconcile([stuck, ended], known=cricket(96) | self.LIVE)
        assert merged.state["status"] == status

    @pytest.mark.parametrize(("unmoved", "status"), [(3599, "live"), (3600, "completed")])
    def test_takes_an_hour_where_it_would_take_back_runs(self, unmoved: float, status: str) -> None:
        stuck = view(CREX, cricket(96) | self.LIVE, unmoved_seconds=unmoved)
        ended = view(ESPN, cricket(95) | self.ENDED, unmoved_seconds=unmoved)
        assert reconcile([stuck, ended], known=cricket(96)).state["status"] == status

    @pytest.mark.parametrize(
        ("unmoved", "status"),
        [
            pytest.param(0, "completed", id="the end itself was the last thing that changed"),
            pytest.param(None, "live", id="the heavier one goes on"),
        ],
    )
    def test_is_kept_until_the_heavier_one_changes(self, unmoved: float | None, status: str) -> None:
        stuck = view(CREX, cricket(96) | self.LIVE, unmoved_seconds=unmoved)
        ended = view(ESPN, cricket(96) | self.ENDED, unmoved_seconds=0)
        assert reconcile([stuck, ended], known=cricket(96) | self.ENDED).state["status"] == status

    @pytest.mark.parametrize(("third_runs", "status"), [(96, "completed"), (99, "live")])
    def test_is_dropped_if_a_third_source_still_changes(self, third_runs: int, status: str) -> None:
        stuck = view(CREX, cricket(96) | self.LIVE, unmoved_seconds=0)
        third = view(ESPN, cricket(third_runs) | self.LIVE, unmoved_seconds=None)
        ended = view(SOFA, cricket(96) | self.ENDED, unmoved_seconds=0)
        merged = reconcile([stuck, third, ended], known=cricket(96) | self.ENDED)
        assert merged.state["status"] == status

    def test_is_accepted_as_a_whole_and_stays_a_conflict(self) -> None:
        stuck = view(CREX, cricket(96) | self.LIVE, unmoved_seconds=600)
        ended = view(ESPN, cricket(96) | self.ENDED, unmoved_seconds=600)
        merged = reconcile([stuck, ended], known=cricket(96))
        assert {merged.provenance[field]["source"] for field in ("status", "score", "result")} == {"espn"}
        assert [(one.field, one.other_source) for one in merged.conflicts] == [("status", "crex")]


@pytest.mark.requirement("BX-5")
class TestProvenance:
    def test_every_field_has_a_source_a_confidence_and_a_time(self) -> None:
        merged = reconcile([view(CREX, cricket(), age=20), view(ESPN, cricket(96))])
        assert merged.provenance.keys() == merged.state.keys()
        assert all({"source", "confidence", "timestamp"} <= entry.keys() for entry in merged.provenance.values())

    def test_other_values_are_kept_where_they_differ(self) -> None:
        merged = reconcile([view(CREX, cricket(187)), view(ESPN, cricket(186) | {"venue": "Perth"}, age=2)])
        (other,) = merged.provenance["innings"]["others"]
        assert other == {
            "source": "espn",
            "value": "187/5 (20.0); 186/3 (12.3)",
            "confidence": 1.0,
            "timestamp": "2026-01-10T11:59:58.000Z",
        }
        assert "others" not in merged.provenance["teams"]
        assert "others" not in merged.provenance["venue"]

    def test_of_a_single_source(self) -> None:
        merged = reconcile([view(CREX, cricket())])
        assert merged.state == cricket()
        assert merged.conflicts == ()
        assert merged.provenance["score"] == {
            "source": "crex",
            "confidence": 1.0,
            "timestamp": "2026-01-10T12:00:00.000Z",
        }


@pytest.mark.requirement("SO-13")
class TestConflicts:
    @pytest.mark.parametrize(
        ("what", "one", "other", "expected"),
        [
            ("5 % is tolerated", cricket(100), cricket(95), []),
            ("more is not", cricket(100), cricket(94), [("innings.2.runs", 100, 94, 6.0)]),
            ("a wicket", cricket(95, 3), cricket(95, 4), [("innings.2.wickets", 3, 4, 25.0)]),
            ("a goal", football(2, 1), football(2, 0), [("score.team_b.goals", 1, 0, 100.0)]),
            ("an end", cricket() | {"status": "completed"}, cricket(), [("status", "completed", "live", None)]),
            ("not begun is a delay", cricket(), cricket() | {"status": "upcoming"}, []),
            ("an innings that the other has not", cricket(), cricket() | {"innings": cricket()["innings"][:1]}, []),
            (
                "a start",
                cricket() | {"start_time": "2026-01-10T09:30:00Z"},
                cricket() | {"start_time": "2026-01-10T10:00:00Z"},
                [("start_time", "2026-01-10T09:30:00Z", "2026-01-10T10:00:00Z", None)],
            ),
            (
                "a start a quarter of an hour off",
                cricket() | {"start_time": "2026-01-10T09:30:00Z"},
                cricket() | {"start_time": "2026-01-10T09:45:00Z"},
                [],
            ),
            (
                "the toss",
                cricket() | {"toss": {"winner": "India"}},
                cricket() | {"toss": {"winner": "AUS"}},
                [("toss.winner", "India", "AUS", None)],
            ),
            ("a short name", cricket() | {"toss": {"winner": "India"}}, cricket() | {"toss": {"winner": "IND"}}, []),
        ],
    )
    def test_differences_that_no_delay_explains(
        self, what: str, one: dict[str, Any], other: dict[str, Any], expected: list[tuple[Any, ...]]
    ) -> None:
        found = reconcile([view(CREX, one), view(ESPN, other)]).conflicts
        conflicts = [(c.field, c.chosen_value, c.other_value, c.difference_percent) for c in found]
        assert conflicts == expected
        assert all((c.chosen_source, c.other_source) == ("crex", "espn") for c in found)

    @pytest.mark.parametrize(
        ("what", "runs", "wickets", "overs", "found"),
        [
            ("a few balls ago", 85, 3, "11.1", []),
            ("a wicket ago", 85, 2, "11.1", []),
            ("stuck", 60, 3, "9.0", ["innings.2.runs"]),
            ("fewer balls and more runs", 120, 3, "11.1", ["innings.2.runs"]),
            ("fewer balls and more wickets", 95, 4, "11.1", ["innings.2.wickets"]),
            ("the chosen one is late", 104, 4, "13.4", []),
        ],
    )
    def test_a_late_source_is_no_conflict(
        self, what: str, runs: int, wickets: int, overs: str, found: list[str]
    ) -> None:
        other = cricket(runs, wickets)
        other["innings"][1]["overs"] = other["score"]["team_b"]["overs"] = overs
        assert [c.field for c in reconcile([view(CREX, cricket(95)), view(ESPN, other)]).conflicts] == found

    def test_names_that_are_no_aliases(self) -> None:
        other = cricket()
        other["teams"]["team_b"] = {"name": "Baggy Greens", "short_name": ""}
        views = [view(CREX, cricket()), view(ESPN, other)]
        assert [c.field for c in reconcile(views).conflicts] == ["teams.team_b"]
        assert reconcile(views, aliases={"baggygreens": "Australia"}).conflicts == ()

    def test_an_outdated_source_is_late_and_not_in_conflict(self) -> None:
        assert reconcile([view(CREX, cricket(50), age=60), view(ESPN, cricket(96))]).conflicts == ()

    def test_three_sources(self) -> None:
        found = reconcile([view(CREX, cricket(100)), view(ESPN, cricket(50)), view(SOFA, cricket(100))]).conflicts
        assert [(c.field, c.other_source) for c in found] == [("innings.2.runs", "espn")]


class TestSides:
    @pytest.mark.parametrize(
        ("what", "first", "second", "crossed"),
        [
            ("as they are", ("India", "IND"), ("Australia", "AUS"), False),
            ("crossed", ("Australia", "AUS"), ("India", "IND"), True),
            ("by short names", ("AUS", ""), ("IND", ""), True),
            ("one of them is enough", ("Australia", ""), ("Men in Blue", ""), True),
            ("by alias", ("Baggy Greens", ""), ("Somebody", ""), True),
            ("other teams", ("Kenya", "KEN"), ("Nepal", "NEP"), None),
            ("another grade", ("Australia Women", "AUS-W"), ("India Women", "IND-W"), None),
        ],
    )
    def test_order_of_the_sides(
        self, what: str, first: tuple[str, str], second: tuple[str, str], crossed: bool | None
    ) -> None:
        teams = [{"name": name, "short_name": short} for name, short in (first, second)]
        state = {"teams": {"team_a": teams[0], "team_b": teams[1]}}
        assert is_crossed(state, cricket(), {"baggygreens": "Australia"}) is crossed

    def test_a_crossed_source_is_swapped_first(self) -> None:
        crossed = swap_sides(cricket(96))
        merged = reconcile([view(CREX, cricket(96)), view(ESPN, crossed, is_crossed=True)])
        assert merged.conflicts == ()
        assert merged.state == cricket(96)
        assert reconcile([view(ESPN, crossed, is_crossed=True)]).state == cricket(96)

    @pytest.mark.parametrize(
        ("slot", "turned"),
        [("g:team_a:2", "g:team_b:2"), ("c:team_b:red:pele", "c:team_a:red:pele"), ("b:1:4:2", "b:1:4:2")],
    )
    def test_slots_are_swapped_with_it(self, slot: str, turned: str) -> None:
        assert swap_slot_sides(slot) == turned


VIEWS = st.lists(
    st.builds(
        lambda source, weight, age, runs, status, crossed: SourceView(
            source,
            weight,
            NOW - timedelta(seconds=age),
            swap_sides(cricket(runs) | {"status": status}) if crossed else cricket(runs) | {"status": status},
            is_crossed=crossed,
        ),
        source=st.sampled_from("abcd"),
        weight=st.sampled_from((50, 80)),
        age=st.integers(0, 60),
        runs=st.integers(0, 200),
        status=st.sampled_from(("upcoming", "live", "completed", "abandoned")),
        crossed=st.booleans(),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda one: one.source,
)


@given(VIEWS)
@settings(max_examples=60, deadline=None)
def test_the_order_of_the_sources_changes_nothing(views: list[SourceView]) -> None:
    results = [reconcile(order) for order in permutations(views)]
    assert all(result == results[0] for result in results)
    play = ("status", "score", "innings")
    chosen = next(one for one in views if one.source == results[0].provenance["status"]["source"])
    state = swap_sides(chosen.state) if chosen.is_crossed else chosen.state
    assert all(results[0].state[field] == state[field] for field in play)
