"""Two wickets on one ball, of which the source lists one and the score counts both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from scraping import event_keys
from scraping.payloads import Event, Payload
from scraping.readings import Document, Reading, ReadMode, RefInfo
from scraping.sources import adapter_for
from scraping.sources.cricket import with_unnamed_wickets
from scraping.sources.espn.plays import events_of as espn_events
from scraping.sources.espn.plays import page_of
from stadium.config import StadiumConfig
from stadium.matches.event_log import EventLog, Render
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.sites.espn import cricket as espn_cricket
from stadium.sites.espn import plays
from stadium.sites.espn.plays import play_or_close
from stadium.sites.espncricinfo import content, objects
from stadium.sites.espncricinfo.balls import comment
from stadium.sites.espncricinfo.routes import document as cricinfo_page
from stadium.sites.sofascore import cricket_event, cricket_innings
from stadium.sites.sofascore.cricket_incidents import incident, incidents
from tests.scraping.sources.cricsheets import PLAYERS, TEAMS, delivery, innings, match, plain

T = TypeVar("T")

pytestmark = pytest.mark.requirement("NFR-009")


def ball(index: int, score: str, *, over: int = 0, kind: str = "dot", label: str = "") -> Event:
    return Event(
        id=f"{over}-{index}",
        kind=kind,
        innings=1,
        over=label or f"{over}.{index}",
        ordinal=event_keys.position(1, over, index),
        slot=event_keys.ball(1, over, index),
        detail={"score": score},
    )


def out(number: int, of: str, player: str = "", text: str = "") -> Event:
    detail: dict[str, Any] = {"wicket": number, "player": player, "text": text}
    return Event(id=f"{of}:w", kind="dismissal", innings=1, slot=event_keys.wicket(1, number), detail=detail)


def wickets(*events: Event) -> list[tuple[str, str]]:
    return [(event.id, event.slot) for event in with_unnamed_wickets(events) if event.kind == "dismissal"]


class TestUnnamed:
    def test_the_other_one_has_the_next_number(self) -> None:
        assert wickets(ball(1, "4/1"), ball(2, "4/3"), out(3, "0-2")) == [("0-2:w", "w:1:2"), ("0-2:w2", "w:1:3")]

    def test_on_the_first_ball_of_an_innings_too(self) -> None:
        assert [slot for _, slot in wickets(ball(1, "0/2"), out(2, "0-1"))] == ["w:1:1", "w:1:2"]

    @pytest.mark.parametrize("text", ["timed out", "retired out"])
    def test_a_batter_who_goes_after_the_ball_is_the_last(self, text: str) -> None:
        found = wickets(ball(1, "4/1"), ball(2, "4/3"), out(3, "0-2", "Cy Moss", text))
        assert found == [("0-2:w2", "w:1:2"), ("0-2:w", "w:1:3")]

    @pytest.mark.parametrize("named", ["Bo Finch", "Cy Moss"])
    @pytest.mark.parametrize("has_before", [True, False])
    def test_the_fall_of_wickets_names_both(self, named: str, has_before: bool) -> None:
        fallen = {(1, 1): ("Al Bay", "lbw"), (1, 2): ("Bo Finch", "c Vale b Reed"), (1, 3): ("Cy Moss", "timed out")}
        events = [ball(2, "4/3"), out(3, "0-2", named, "c Vale b Reed")]
        found = with_unnamed_wickets([ball(1, "4/1"), *events] if has_before else events, fallen)
        expected = {"w:1:2": "Bo Finch", "w:1:3": "Cy Moss"}
        if not has_before and named == "Cy Moss":
            del expected["w:1:2"]  # nothing shows that the one before fell with the same ball
        assert {one.slot: one.detail["player"] for one in found if one.kind == "dismissal"} == expected

    def test_the_fall_of_wickets_changes_nothing_else(self) -> None:
        fallen = {(1, 1): ("Al Bay", "lbw"), (1, 2): ("Bo Finch", "b Reed")}
        found = with_unnamed_wickets([ball(1, "4/1"), ball(2, "4/2"), out(2, "0-2", "Bo Finch", "b Reed")], fallen)
        assert [(one.id, one.slot) for one in found[2:]] == [("0-2:w", "w:1:2")]

    @pytest.mark.parametrize(("per_over", "count"), [(5, 2), (6, 1)])
    def test_the_last_ball_of_a_set_of_five_is_the_one_before(self, per_over: int, count: int) -> None:
        events = [ball(5, "4/1"), ball(1, "4/3", over=1), out(3, "1-1")]
        found = [one for one in with_unnamed_wickets(events, per_over=per_over) if one.kind == "dismissal"]
        assert len(found) == count

    def test_one_wicket_is_one(self) -> None:
        assert wickets(ball(1, "4/1"), ball(2, "4/2"), out(2, "0-2")) == [("0-2:w", "w:1:2")]

    @pytest.mark.parametrize(
        ("before", "count"),
        [
            pytest.param(ball(6, "9/1"), 2, id="the over was complete"),
            pytest.param(ball(4, "9/1"), 1, id="its end is missing"),
            pytest.param(ball(6, "9/1", kind="wide"), 1, id="a wide does not complete it"),
            pytest.param(ball(8, "9/1", label="0.6"), 2, id="a long one"),
        ],
    )
    def test_over_the_end_of_an_over_only_where_it_was_complete(self, before: Event, count: int) -> None:
        assert len(wickets(before, ball(1, "9/3", over=1), out(3, "1-1"))) == count

    @pytest.mark.parametrize(
        "events",
        [
            pytest.param((ball(2, "4/3"), out(3, "0-2")), id="the ball before is not on the list"),
            pytest.param((ball(1, "4/1"), ball(3, "4/3"), out(3, "0-3")), id="a hole"),
            pytest.param((ball(1, ""), ball(2, "4/3"), out(3, "0-2")), id="without a score"),
        ],
    )
    def test_nothing_is_guessed(self, events: tuple[Event, ...]) -> None:
        assert len(wickets(*events)) == 1


@pytest.fixture
def double(tmp_path: Path) -> Path:
    """Returns a script: a batter retires hurt; then a catch, and the next batter is timed out."""
    team = TEAMS[0]
    hurt = delivery(team, 0, (0, 1), "retired hurt")
    hurt["wickets"].append({"player_out": hurt["non_striker"], "kind": "run out"})
    both = delivery(team, 1, (2, 3), "caught")
    both["wickets"].append({"player_out": PLAYERS[team][4], "kind": "timed out"})
    first = innings(team, [delivery(team, 4), hurt, both, *plain(team, 0, 0, 1)])
    parts = [first, innings(TEAMS[1], plain(TEAMS[1], 1, 1))]
    (tmp_path / "900001.json").write_text(json.dumps(match("T20", parts, {"winner": team, "by": {"runs": 4}}, 20)))
    return tmp_path


OUT = {f"w:1:{number}": PLAYERS[TEAMS[0]][place] for number, place in ((1, 1), (2, 2), (3, 4))}


def played(folder: Path, site: str) -> tuple[Simulation, Match]:
    simulation = Simulation(
        StadiumConfig(programme=f"replay:{folder}", pace=1.0, sites=(site,)), wall_clock=lambda: 0.0
    )
    return simulation, simulation.programme.match(simulation.programme.slots[0], 0, site)


def rendered(match: Match, render: Render[T]) -> EventLog[T]:
    """The site's complete list of events."""
    log = EventLog(match, render)
    log.advance(list(range(len(match.script.events))))
    return log


def fallen(events: Sequence[Event]) -> dict[str, Any]:
    """The players of the dismissals by event key."""
    return {one.slot: one.detail["player"] for one in events if one.kind == "dismissal"}


def document(name: str, body: Any) -> Document:
    return Document(name, "", 200, "application/json", body if isinstance(body, bytes) else json.dumps(body).encode())


def parsed(key: str, match: Match, *documents: Document) -> Payload:
    at = datetime(2026, 5, 2, tzinfo=UTC)
    return adapter_for(key).parse(Reading(RefInfo(match.key, ""), ReadMode.DIRECT, at, {d.name: d for d in documents}))


class TestAtTheSites:
    """Both batters keep their names and numbers."""

    def test_espn(self, double: Path) -> None:
        simulation, match = played(double, "espn")
        log = rendered(match, play_or_close)
        listed = plays.page_of([one for one in log.items if isinstance(one, dict)], 1)
        body = document("summary", espn_cricket.summary(simulation, match, log.state, []))
        assert fallen(parsed("espn", match, body, document("plays", listed)).events) == OUT

    def test_espncricinfo(self, double: Path) -> None:
        simulation, match = played(double, "espncricinfo")
        log = rendered(match, comment)
        for render in (content.live, lambda log: content.commentary(log, 1)):
            data = {"match": objects.match_object(simulation, match, log.state), "content": render(log)}
            page = Document("page", "", 200, "text/html", cricinfo_page("", data).encode())
            assert fallen(parsed("espncricinfo", match, page).events) == OUT

    def test_sofascore(self, double: Path) -> None:
        simulation, match = played(double, "sofascorecricket")
        log = rendered(match, incident)
        documents = (
            document("event", {"event": cricket_event.event(simulation, match, log.state)}),
            document("incidents", incidents(log.items)),
            document("innings", cricket_innings.innings(log.state)),
        )
        assert fallen(parsed("sofascorecricket", match, *documents).events) == OUT

    def test_without_the_fall_of_wickets_the_first_is_the_named_one(self, double: Path) -> None:
        _, match = played(double, "espn")
        listed = plays.page_of([one for one in rendered(match, play_or_close).items if isinstance(one, dict)], 1)
        assert fallen(espn_events(page_of(listed, "").items)) == OUT | {"w:1:3": ""}
