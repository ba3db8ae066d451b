"""Reading what can be read: which parts of a response are left out, which are noted, and what raises."""

from __future__ import annotations

import copy
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, model_validator

from scraping.errors import SchemaBreak
from scraping.sources import broken_parts, parsing
from scraping.sources.broken_parts import MAX_PARTS, is_broken
from scraping.sources.parsing import Response, nested, validated


class Player(Response):
    id: int
    name: str
    number: int | str | None = None


class Squad(Response):
    team: str
    players: list[Player] | None = None


class Ball(Response):
    kind: Literal["ball"]
    runs: int
    note: str | None = None


class Wicket(Response):
    kind: Literal["wicket"]
    how: str


class Side(Response):
    name: str
    score: int | None = None
    captain: str | None = nested("lead", "person", "name")
    keeper: str = nested("keeper", "name", default="")


class Goal(Response):
    minute: int | None = None
    text: str | None = None

    @model_validator(mode="after")
    def says_something(self) -> Goal:
        if self.minute is None and self.text is None:
            raise ValueError("no minute and no text")
        return self


class Match(Response):
    key: str = Field(alias="id")
    sides: list[Side]
    toss: str | None = None
    state: str = nested("status", "type", default=...)
    squads: list[Squad] | None = None
    feed: list[Annotated[Ball | Wicket, Field(discriminator="kind")]] = Field(default_factory=list)
    goals: list[Goal] = Field(default_factory=list)


NEEDED = {"sides", "sides.score"}


def response(**changes: Any) -> dict[str, Any]:
    return {
        "id": "a",
        "sides": [{"name": "A", "score": 1}, {"name": "B", "score": 2}],
        "status": {"type": "live"},
    } | changes


def player(key: int = 1, **changes: Any) -> dict[str, Any]:
    return {"id": key, "name": f"P{key}"} | changes


def a_ball(runs: Any, **changes: Any) -> dict[str, Any]:
    return {"kind": "ball", "runs": runs} | changes


def read(data: Any, needed: set[str] | None = None, path: str = "") -> tuple[Match, list[tuple[str, int]]]:
    with broken_parts.noting() as parts:
        match = validated(Match, data, schema="x.v1", path=path, needed=NEEDED if needed is None else needed)
    return match, [(one.path, one.count) for one in parts]


CASES: dict[str, tuple[dict[str, Any], list[tuple[str, int]], Any]] = {
    "a value": ({"toss": 5}, [("toss", 1)], lambda m: m.toss is None),
    "a value by a path": (
        {"sides": [{"name": "A", "lead": {"person": {"name": []}}}, {"name": "B"}]},
        [("sides[].lead.person.name", 1)],
        lambda m: [one.captain for one in m.sides] == [None, None],
    ),
    "a value where an object was expected by a path": (
        {"sides": [{"name": "A", "lead": "Ada", "keeper": []}, {"name": "B"}]}, [], lambda m: m.sides[0].captain is None
    ),
    "a value of neither type of a union": (
        {"squads": [{"team": "A", "players": [player(number=[])]}]},
        [("squads[].players[].number", 1)],
        lambda m: m.squads[0].players[0].number is None,
    ),
    "a list that is none": ({"squads": {}}, [("squads", 1)], lambda m: m.squads is None),
    "a row that is null": ({"squads": [None, {"team": "B"}]}, [("squads[]", 1)], lambda m: len(m.squads) == 1),
    "a row without a required field": (
        {"squads": [{"team": "A", "players": [player(1), {"id": 2}, player(3)]}]},
        [("squads[].players[].name", 1)],
        lambda m: [one.id for one in m.squads[0].players] == [1, 3],
    ),
    "a row with an invalid required field, noted once": (
        {"squads": [{"team": "A", "players": [player(1), player(2, name=5), player(3)]}]},
        [("squads[].players[].name", 1)],
        lambda m: [one.id for one in m.squads[0].players] == [1, 3],
    ),
    "rows of rows": (
        {"squads": [{"team": "A", "players": [None, player(2)]}, {"players": [player(4, name=5)]}, {"team": "C"}]},
        [("squads[].players[]", 1), ("squads[].players[].name", 1), ("squads[].team", 1)],
        lambda m: [(one.team, one.players and len(one.players)) for one in m.squads] == [("A", 1), ("C", None)],
    ),
    "the same fault many times": (
        {"squads": [{"team": "A", "players": [player(0), *[player(place, name=None) for place in range(5000)]]}]},
        [("squads[].players[].name", 5000)],
        lambda m: [one.id for one in m.squads[0].players] == [0],
    ),
    "a list without a valid row, which is not an empty one": (
        {"squads": [{"team": "A", "players": [player(1, name=None), player(2, name=None)]}]},
        [("squads[].players[].name", 2)],
        lambda m: (m.squads[0].team, m.squads[0].players) == ("A", None),
    ),
    "a value in a row of several kinds": (
        {"feed": [a_ball(1, note=5), {"kind": "wicket"}, {"kind": "tea"}, a_ball(4)]},
        [("feed[]", 1), ("feed[].ball.note", 1), ("feed[].wicket.how", 1)],
        lambda m: [one.runs for one in m.feed] == [1, 4],
    ),
    "a row of several kinds with an invalid required field, noted once": (
        {"feed": [a_ball(1), a_ball("x"), {"kind": "wicket", "how": 5}]},
        [("feed[].ball.runs", 1), ("feed[].wicket.how", 1)],
        lambda m: [one.runs for one in m.feed] == [1],
    ),
    "a row that says nothing without its invalid value": (
        {"goals": [{"minute": "x"}, {"minute": 5}]},
        [("goals[].minute", 1)],
        lambda m: [one.minute for one in m.goals] == [5],
    ),
}  # fmt: skip


class TestLeftOut:
    @pytest.mark.parametrize("case", CASES)
    def test_costs_itself_and_is_noted(self, case: str) -> None:
        changes, noted, expected = CASES[case]
        data = response(**changes)
        before = copy.deepcopy(data)
        match, parts = read(data)
        assert expected(match)
        assert parts == noted
        assert data == before  # documents are cached

    def test_a_part_of_a_response_has_its_path(self) -> None:
        assert read(response(toss=5), path="match")[1] == [("match.toss", 1)]

    def test_is_known_by_each_field_around_it(self) -> None:
        with broken_parts.noting():
            validated(Match, response(squads=[{"team": "A", "players": [None]}]), schema="x.v1", path="events[]")
            assert [is_broken(one) for one in ("events", "squads", "players", "play", "toss")] == [
                True,
                True,
                True,
                False,
                False,
            ]
        assert not is_broken("squads")

    def test_kinds_of_faults_are_limited_in_number_and_length(self) -> None:
        with broken_parts.noting() as parts:
            for number in range(MAX_PARTS + 5):
                broken_parts.note(f"{number}\x00" + "x" * 500, "y" * 500)
        assert len(parts) == MAX_PARTS
        assert max(len(one.path) for one in parts) == 120
        assert not any("\x00" in one.path for one in parts)

    def test_is_noted_once_for_all_responses_of_a_reading(self) -> None:
        with broken_parts.noting() as parts:
            for _ in range(3):
                validated(Match, response(toss=5), schema="x.v1")
        assert [(one.path, one.expected, one.count) for one in parts] == [("toss", "Input should be a valid string", 3)]


HARD: dict[str, tuple[dict[str, Any], str]] = {
    "a required field of the whole": ({"status": {}}, "x.v1: status.type (field required)"),
    "a required field of the whole, of another type": ({"id": 5}, "x.v1: id (input should be a valid string)"),
    "a needed value of a row": (
        {"sides": [{"name": "A", "score": "1-0"}, {"name": "B"}]},
        "x.v1: sides[0].score (input should be a valid integer)",
    ),
    "a row of a needed list": ({"sides": [{"name": "A"}, None]}, "x.v1: sides[1] (input should be a valid dictionary"),
    "a needed row by a field of it": ({"sides": [{"name": 7}, {"name": "B"}]}, "x.v1: sides[0].name (input should be"),
    "and not the soft faults beside it": (
        {"toss": 5, "squads": [None] * 9, "sides": [{"name": "A"}, {}]}, "x.v1: sides[1].name (field required)"
    ),
}  # fmt: skip


class TestNeeded:
    @pytest.mark.parametrize("case", HARD)
    def test_raises_with_the_path(self, case: str) -> None:
        changes, message = HARD[case]
        with broken_parts.noting() as parts, pytest.raises(SchemaBreak) as caught:
            validated(Match, response(**changes), schema="x.v1", needed=NEEDED)
        assert str(caught.value).startswith(message)
        assert parts == []

    @pytest.mark.parametrize("data", [None, [], 5, "x", {}])
    def test_the_whole_is_always_needed(self, data: Any) -> None:
        with pytest.raises(SchemaBreak):
            read(data)

    def test_a_path_names_one_field_of_several_with_the_same_name(self) -> None:
        data = response(squads=[{"team": "A", "players": [player(name=5)]}])
        assert read(data, needed={"sides.name"})[1] == [("squads[].players[].name", 1)]
        with pytest.raises(SchemaBreak, match=r"squads\[0\]\.players\[0\]\.name"):
            read(data, needed={"name", "players"})


class TestReadable:
    def test_returns_none_for_a_part_that_cannot_be_read_and_notes_it(self) -> None:
        with broken_parts.noting() as parts:
            found = parsing.readable(Match, {"id": "a", "sides": []}, schema="x.v1", path="match")
        assert found is None
        assert [(one.path, one.expected) for one in parts] == [("match", "match.status.type (field required)")]
