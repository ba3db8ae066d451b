"""The ESPNcricinfo site, read by the adapter of the real one and compared with the ground truth."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scraping import event_keys
from scraping.errors import Blocked, LayoutChanged, PayloadRejected
from scraping.matches import events
from scraping.payloads import Event, Payload, Status
from scraping.sources.base import Document, Reading, ReadMode, RefInfo, Request
from scraping.sources.espncricinfo.adapter import EspncricinfoAdapter
from stadium.cricket.script import Ball, CricketScript, Notice
from stadium.cricket.state import CricketState
from stadium.matches.distortion import Distortion
from stadium.matches.programme import Match
from stadium.sites.espncricinfo.objects import match_path

from .conftest import Visit, Visitor, visiting

SITE = "espncricinfo"
ONE = "only:espncricinfo:1"
ADAPTER = EspncricinfoAdapter()
RECORDINGS = Path(os.environ.get("VICTORYLINE_RECORDINGS", "/nowhere")) / "cricsheet"
LONG = 1500  # events of a match that goes on for days
PHASES = {"in_play": "play", "toss": "scheduled", "abandoned": "finished"}


class Reader:
    """Reads one match as the engine does, and has its ground truth."""

    def __init__(self, visitor: Visitor, match: Match) -> None:
        assert isinstance(match.script, CricketScript)
        self.visitor, self.match, self.script = visitor, match, match.script
        self._state = CricketState(match.script)
        self.base = str(visitor.client.make_url(f"/{SITE}"))
        self.ref = RefInfo(match.key, str(visitor.client.make_url(match_path(match))))

    @property
    def state(self) -> CricketState:
        """Returns the state by the script, without a site."""
        happened = self.script.events[self._state.applied : self.visitor.simulation.event_count(self.match)]
        for event in happened:
            self._state.apply(event)
        return self._state

    async def ask(self, request: Request) -> Document:
        response = await self.visitor.client.get(path_of(request.url))
        return Document(request.name, request.url, response.status, response.content_type, await response.read())

    async def reading(self, request: Request) -> Reading:
        at = datetime.fromtimestamp(self.visitor.wall.now, tz=UTC)
        return Reading(self.ref, ReadMode.DIRECT, at, {request.name: await self.ask(request)})

    async def poll(self) -> Payload:
        return ADAPTER.parse(await self.reading(ADAPTER.requests(self.ref, self.base)[0]))

    async def commentary(self, through: int = 0) -> list[Payload]:
        """Reads pages back in time until the known events are reached."""
        request: Request | None = ADAPTER.requests(self.ref, self.base)[0]
        pages: list[Payload] = []
        while request is not None:
            reading = await self.reading(request)
            pages.append(ADAPTER.parse(reading))
            ordinals = [event.ordinal for event in pages[-1].events if event.ordinal is not None]
            if not ordinals or events.reaches(ordinals, through):
                break
            request = ADAPTER.older_events(reading, request)
        return pages

    def moments(self, every: int, *, has_notices: bool = True) -> Iterator[float]:
        """Returns moments after some events, after each notice, and at the end."""
        last = len(self.match.times) - 1
        for place, (at, event) in enumerate(zip(self.match.times, self.script.events, strict=True)):
            if place % every == 0 or place == last or (has_notices and isinstance(event, Notice)):
                yield at + 0.001


def readers(visitor: Visitor) -> list[Reader]:
    programme = visitor.simulation.programme
    return [Reader(visitor, programme.match(slot, 0, SITE)) for slot in programme.slots]


def path_of(url: str) -> str:
    return url[url.index(f"/{SITE}") :]


def move_to(visitor: Visitor, simulated: float) -> None:
    visitor.wall.now = visitor.simulation.clock.wall_at(simulated)


def assert_true(payload: Payload, state: CricketState) -> None:
    seen = payload.state
    assert (seen.status.value, seen.phase.value) == (state.status, PHASES.get(state.phase, state.phase))
    assert seen.result == state.result
    assert payload.unknown == ()
    if seen.status is Status.UPCOMING:
        return
    assert [
        (one.number, one.runs, one.wickets, one.overs, one.is_declared, one.is_super_over, one.target)
        for one in seen.innings
    ] == [
        (one.number + 1, one.runs, one.wickets, one.overs_text, one.is_declared, one.is_super_over, one.target)
        for one in state.innings
    ]
    assert seen.current_innings == len(state.innings)
    if state.toss_winner is not None:
        assert seen.toss is not None
        assert (seen.toss.winner, seen.toss.decision == "bat") == (state.toss_winner.name, state.toss_bats)
    assert payload.integrity.missing_fields == ()


def balls_of(pages: list[Payload]) -> dict[str, Event]:
    """Returns deliveries by slot; a ball on two pages must be equal on both."""
    found: dict[str, Event] = {}
    for event in (event for page in pages for event in page.events if event.ordinal is not None):
        assert found.setdefault(event.slot, event).fingerprint() == event.fingerprint()
    return found


@pytest.mark.requirement("SO-12")
@visiting(programme=ONE)
async def test_every_ball_of_a_match_is_read_correctly(visitor: Visitor) -> None:
    (reader,) = readers(visitor)
    known: set[int] = set()
    for moment in reader.moments(every=2):
        move_to(visitor, moment)
        payload = await reader.poll()
        assert_true(payload, reader.state)
        known |= {event.ordinal for event in payload.events if event.ordinal is not None}
    places = sorted(known)
    assert event_keys.is_first(places[0])
    assert event_keys.through(known, places[0]) == places[-1]  # no poll left a hole


@pytest.mark.requirement("SO-12")
@visiting(programme=ONE)
async def test_missed_balls_are_on_the_commentary_pages(visitor: Visitor) -> None:
    (reader,) = readers(visitor)
    for part in (0.02, 0.3, 0.55, 1.0):
        move_to(visitor, reader.match.starts_at + part * reader.script.ends_at + 1)
        pages = await reader.commentary()
        assert_complete(reader, pages)
    known = (await reader.poll()).events[-1].ordinal
    assert known is not None
    assert len(await reader.commentary(through=known)) == 1  # no page is asked for that is not needed


def assert_complete(reader: Reader, pages: list[Payload]) -> None:
    index = reader.visitor.simulation.event_count(reader.match)
    balls = [event for event in reader.script.events[:index] if isinstance(event, Ball)]
    found = balls_of(pages)
    assert {slot: (one.over, one.runs, one.detail["ball"]) for slot, one in found.items()} == {
        event_keys.ball(ball.innings + 1, ball.over, ball.index): (ball.label, ball.total, ball.text) for ball in balls
    }
    fallen = {event.slot for page in pages for event in page.events if event.kind == "dismissal"}
    assert fallen == {
        event_keys.wicket(one.number + 1, fall.number) for one in reader.state.innings for fall in one.falls
    }


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason="VICTORYLINE_RECORDINGS names no folder with matches of Cricsheet")
@visiting(programme=f"replay:{RECORDINGS}", sites=(SITE,), at_once=True)
async def test_recorded_matches_of_every_kind_are_read_correctly(visitor: Visitor) -> None:
    for reader in sorted(readers(visitor), key=lambda one: one.match.starts_at):
        is_long = len(reader.script.events) > LONG
        for moment in reader.moments(every=LONG // 2 if is_long else 80, has_notices=not is_long):
            move_to(visitor, moment)
            assert_true(await reader.poll(), reader.state)
        assert_complete(reader, await reader.commentary())
        assert reader.state.is_over


def test_a_corrected_ball_keeps_its_id(visit: Visit) -> None:
    async def scenario(visitor: Visitor) -> None:
        (reader,) = readers(visitor)
        move_to(visitor, reader.match.starts_at + 1_200)
        before = balls_of(await reader.commentary())
        visitor.wall.now += 30
        after = balls_of(await reader.commentary())
        assert {slot: one.id for slot, one in before.items()} == {slot: after[slot].id for slot in before}
        corrected = [slot for slot, one in before.items() if after[slot].runs != one.runs]
        truth = {
            event_keys.ball(ball.innings + 1, ball.over, ball.index): ball.total
            for ball in visitor.simulation.undistorted(reader.match).script.events
            if isinstance(ball, Ball)
        }
        assert corrected
        assert all(after[slot].runs == truth[slot] for slot in before)

    distortion = Distortion(mistakes=0.3, corrects_after=25)
    visit(scenario, programme="only:crex,espncricinfo:1", distortions=((SITE, distortion),))


@visiting(programme=ONE)
async def test_players_and_their_figures_are_on_the_scorecard(visitor: Visitor) -> None:
    (reader,) = readers(visitor)
    request = ADAPTER.lineup_requests(reader.ref, reader.base)[0]
    move_to(visitor, reader.match.ends_at + 1)
    reading = await reader.reading(request)
    for lineup, team in zip(ADAPTER.parse_lineups(reading).lineups, reader.match.teams, strict=True):
        assert [player.name for player in lineup.starters] == [player.name for player in team.players]
    figures = ADAPTER.parse_figures(reading).figures
    expected = [
        row
        for one in reader.state.innings
        for row in (
            *(("batting", one.number + 1, line.player.name, line.runs) for line in one.batters.values()),
            *(("bowling", one.number + 1, line.player.name, line.runs) for line in one.bowlers.values()),
        )
    ]
    assert [(one.role, one.innings, one.name, one.values["runs"]) for one in figures] == expected


@visiting(programme="only:espncricinfo:3")
async def test_the_lists_have_every_match_with_its_address(visitor: Visitor) -> None:
    base = str(visitor.client.make_url(f"/{SITE}"))
    for moment in (0.0, 4_000.0, 9_000.0):
        move_to(visitor, moment)
        truth = {row["key"]: row for row in await visitor.get("/truth/matches") if row["site"] == SITE}
        today = datetime.fromtimestamp(visitor.wall.now, tz=UTC).date()
        plan, day = ADAPTER.list_plan(base), ADAPTER.fixture_plan(base, today)
        for url in (plan.url, day.requests[0].url):
            body = await (await visitor.ask(path_of(url))).read()
            reading = Reading(
                RefInfo("", url), ReadMode.VISIT, datetime.now(UTC), {"page": Document("page", url, 200, "", body)}
            )
            matches = ADAPTER.parse_list(reading, base)
            assert {one.source_event_id for one in matches} <= truth.keys()
            for one in matches:
                row = truth[one.source_event_id]
                assert (one.status.value, one.url) == (row["status"], row["url"])
                assert (await visitor.ask(path_of(one.url))).status == 200
        assert len(matches) > 0


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("challenge", Blocked),
        ("layout", LayoutChanged),
        ("malformed", LayoutChanged),
        ("empty", LayoutChanged),
        ("wrong_match", PayloadRejected),
    ],
)
@visiting(programme="only:espncricinfo:2")
async def test_faults_hit_its_pages_and_no_wrong_data_is_accepted(
    visitor: Visitor, kind: str, error: type[Exception]
) -> None:
    reader = readers(visitor)[0]
    await visitor.post("/control/faults", {"site": SITE, "kind": kind, "match": reader.match.key}, 201)
    with pytest.raises(error):
        await reader.poll()


@visiting(programme=ONE)
async def test_pages_have_the_paths_of_the_real_site(visitor: Visitor) -> None:
    (reader,) = readers(visitor)
    path = match_path(reader.match)
    assert re.fullmatch(rf"/espncricinfo/series/[a-z0-9-]+-\d+/[a-z0-9-]+-{reader.match.key}/live-cricket-score", path)
    statuses = {
        path: 200,
        path.replace("live-cricket-score", "full-scorecard"): 200,
        path.replace("live-cricket-score", "ball-by-ball-commentary"): 200,
        path.replace("live-cricket-score", "ball-by-ball-commentary?innings=2"): 404,
        path.replace("live-cricket-score", "ball-by-ball-commentary?innings=x"): 404,
        path.replace("live-cricket-score", "photos"): 404,
        path.replace(reader.match.key, "1"): 404,
        f"/{SITE}/live-cricket-match-schedule-fixtures?date=soon": 404,
        f"/{SITE}/robots.txt": 200,
    }
    assert {one: (await visitor.ask(one)).status for one in statuses} == statuses
    html = await (await visitor.ask(path)).text()
    found = re.search(r'<script id="__NEXT_DATA__"[^>]*>(.*?)</script>', html, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])["props"]["appPageProps"]["data"]
    data = data.get("data", data)  # the live page and the lists are one level deeper
    assert data["match"]["objectId"] == int(reader.match.key) != data["match"]["id"]
    recent = [one["id"] for one in data["content"]["recentBallCommentary"]["ballComments"]]
    assert recent == sorted(recent, reverse=True)
    assert len(recent) <= 24
