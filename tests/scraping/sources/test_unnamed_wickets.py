"""Two wickets on one ball: sources name one of them, the score counts both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

import pytest

from scraping import event_keys
from scraping.payloads import Event
from scraping.sources.cricket import with_unnamed_wickets
from scraping.sources.espn.plays import events_of as espn_events
from scraping.sources.espn.plays import page_of
from scraping.sources.sofascore import deliveries
from scraping.sources.sofascore.schemas import Delivery
from stadium.config import StadiumConfig
from stadium.matches.event_log import EventLog, Render
from stadium.matches.simulation import Simulation
from stadium.sites.espn import plays
from stadium.sites.espn.plays import play_or_close
from stadium.sites.sofascore.cricket_incidents import incident, incidents
from tests.scraping.sources.cricsheets import TEAMS, delivery, innings, match, plain

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


def out(number: int, of: str) -> Event:
    return Event(
        id=f"{of}:w", kind="dismissal", innings=1, slot=event_keys.wicket(1, number), detail={"wicket": number}
    )


def wickets(*events: Event) -> list[tuple[str, str]]:
    return [(event.id, event.slot) for event in with_unnamed_wickets(events) if event.kind == "dismissal"]


class TestUnnamed:
    def test_the_other_one_has_the_number_before(self) -> None:
        assert wickets(ball(1, "4/1"), ball(2, "4/3"), out(3, "0-2")) == [("0-2:w2", "w:1:2"), ("0-2:w", "w:1:3")]

    def test_on_the_first_ball_of_an_innings_too(self) -> None:
        assert [slot for _, slot in wickets(ball(1, "0/2"), out(2, "0-1"))] == ["w:1:1", "w:1:2"]

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
    """A run out, and the other batter retires out on the same ball; before it, one who only goes off hurt."""
    team = TEAMS[0]
    hurt = delivery(team, 0, (0, 1), "retired hurt")
    hurt["wickets"].append({"player_out": hurt["non_striker"], "kind": "run out"})
    both = delivery(team, 1, (2, 3), "run out")
    both["wickets"].append({"player_out": both["non_striker"], "kind": "retired out"})
    first = innings(team, [delivery(team, 4), hurt, both, *plain(team, 0, 0, 1)])
    parts = [first, innings(TEAMS[1], plain(TEAMS[1], 1, 1))]
    (tmp_path / "900001.json").write_text(json.dumps(match("T20", parts, {"winner": team, "by": {"runs": 4}}, 20)))
    return tmp_path


def rendered(folder: Path, site: str, render: Render[T]) -> list[T]:
    """The site's complete list of events."""
    simulation = Simulation(
        StadiumConfig(programme=f"replay:{folder}", pace=1.0, sites=(site,)), wall_clock=lambda: 0.0
    )
    played = simulation.programme.match(simulation.programme.slots[0], 0, site)
    log = EventLog(played, render)
    log.advance(list(range(len(played.script.events))))
    return log.items


class TestAtTheSites:
    def test_espn(self, double: Path) -> None:
        listed = plays.page_of([one for one in rendered(double, "espn", play_or_close) if isinstance(one, dict)], 1)
        events = espn_events(page_of(listed, "").items)
        assert sorted(one.slot for one in events if one.kind == "dismissal") == ["w:1:1", "w:1:2", "w:1:3"]

    def test_sofascore(self, double: Path) -> None:
        rows = json.loads(incidents(rendered(double, "sofascorecricket", incident)))["incidents"]
        events = deliveries.events_of(deliveries.balls_of([Delivery.model_validate(row) for row in rows]))
        assert sorted(one.slot for one in events if one.kind == "dismissal") == ["w:1:1", "w:1:2", "w:1:3"]
