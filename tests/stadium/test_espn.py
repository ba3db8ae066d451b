"""The ESPN API: its formats, and the adapters' payloads compared with the ground truth."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from scraping import event_keys
from scraping.errors import PayloadRejected, ScrapingError
from scraping.payloads import Event, Payload, Status
from scraping.sources import adapter_for
from scraping.sources.base import Document, Reading, ReadMode, RefInfo, Request
from scraping.sources.cricket import read_code
from scraping.sources.espn.cricket import EspnAdapter
from scraping.sources.espn.soccer import EspnSoccerAdapter
from stadium.config import StadiumConfig
from stadium.cricket.script import Ball, CricketScript
from stadium.cricket.state import CricketState, fold
from stadium.football.generator import MatchGenerator
from stadium.football.state import FootballState
from stadium.football.state import fold as fold_football
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.sites.espn import soccer

from .conftest import START, Visit, Visitor, visiting

CRICKET, SOCCER = EspnAdapter(), EspnSoccerAdapter()
PHASES = {"toss": "scheduled", "in_play": "play", "abandoned": "finished", "first_half": "play", "second_half": "play"}
RECORDINGS = Path(os.environ.get("VICTORYLINE_RECORDINGS", "")) / "cricsheet"


class Reader:
    """Makes the requests of an adapter as the engine does."""

    def __init__(self, visitor: Visitor, site: str) -> None:
        self.visitor, self.base = visitor, f"http://stadium.test/{site}"
        self.site, self.adapter = site, CRICKET if site == "espn" else SOCCER

    async def ask(self, *requests: Request) -> dict[str, Document]:
        found = {}
        for request in requests:
            answer = await self.visitor.ask(request.url.removeprefix("http://stadium.test"))
            found[request.name] = Document(
                request.name, request.url, answer.status, answer.content_type, await answer.read()
            )
        return found

    def reading(self, ref: RefInfo, documents: Mapping[str, Document]) -> Reading:
        return Reading(ref, ReadMode.DIRECT, datetime.fromtimestamp(self.visitor.wall.now, UTC), documents)

    async def outright(self, ref: RefInfo, *requests: Request) -> Reading:
        reading = self.reading(ref, await self.ask(*requests))
        more = await self.ask(*self.adapter.follow_up(reading, self.base))
        return self.reading(ref, {**reading.documents, **more})

    async def poll(self, ref: RefInfo) -> Payload:
        return self.adapter.parse(await self.outright(ref, *self.adapter.requests(ref, self.base)))

    async def all_events(self, ref: RefInfo) -> tuple[dict[str, Event], int]:
        """Reads pages back to the first; returns the events and the number of steps."""
        asked = {one.name: one for one in CRICKET.requests(ref, self.base)}
        found: dict[str, Event] = {}
        request: Request | None = asked["plays"]
        steps = 0
        while request is not None:
            asked["plays"], steps = request, steps + 1
            reading = await self.outright(ref, *asked.values())
            found |= {event.id: event for event in CRICKET.parse(reading).events}
            request = CRICKET.older_events(reading, request)
        return found, steps

    async def listed(self) -> list[RefInfo]:
        documents = await self.ask(*self.adapter.list_plan(self.base).requests)
        found = self.adapter.parse_list(self.reading(RefInfo("", self.base), documents), self.base)
        return [RefInfo(one.source_event_id, one.url) for one in found]

    def known(self, ref: RefInfo) -> tuple[Match, int]:
        match = self.visitor.simulation.find(self.site, ref.source_event_id)
        assert match is not None
        return match, self.visitor.simulation.event_count(match)


def cricket_truth(match: Match, index: int) -> CricketState:
    assert isinstance(match.script, CricketScript)
    return fold(match.script, match.script.events[:index])


def assert_cricket_is_true(payload: Payload, match: Match, truth: CricketState) -> None:
    state = payload.state
    assert (state.status.value, state.phase.value) == (truth.status, PHASES.get(truth.phase, truth.phase))
    assert [(one.number, one.runs, one.wickets, one.overs, one.target, one.is_declared) for one in state.innings] == [
        (one.number + 1, one.runs, one.wickets, one.overs_text, one.target, one.is_declared) for one in truth.innings
    ]
    assert [one.is_super_over for one in state.innings] == [one.is_super_over for one in truth.innings]
    assert [state.teams.team_a.name, state.teams.team_b.name] == [team.name for team in match.teams]
    assert (state.venue, state.metadata["series"], state.result) == (match.venue, match.series[0], truth.result_long)
    assert (state.toss and state.toss.winner) == (truth.toss_winner and truth.toss_winner.name)
    assert payload.integrity.missing_fields == ()
    assert payload.unknown == ()


def assert_every_ball_is_there(found: Mapping[str, Event], match: Match, index: int) -> None:
    balls = [event for event in match.script.events[:index] if isinstance(event, Ball)]
    expected = {
        event_keys.ball(one.innings + 1, one.over, one.index): (one.label, one.total, read_code(one.text).kind)
        for one in balls
    }
    read = [event for event in found.values() if event.kind != "dismissal"]
    assert {one.slot: (one.over, one.runs, one.kind) for one in read} == expected
    assert len(read) == len(balls)
    ordinals = {one.ordinal for one in read if one.ordinal}
    if balls:
        assert event_keys.through(ordinals, min(ordinals)) == max(ordinals), (
            "nothing is missing between the first and the last"
        )
    wickets = [one.slot for one in found.values() if one.kind == "dismissal"]
    truth = cricket_truth(match, index)
    assert sorted(wickets) == sorted(
        event_keys.wicket(one.number + 1, number) for one in truth.innings for number in range(1, one.wickets + 1)
    )


class TestCricket:
    @visiting(programme="only:espn:1")
    async def test_a_summary_has_the_shape_of_the_site(self, visitor: Visitor) -> None:
        reader = Reader(visitor, "espn")
        visitor.wall.now += 500
        ref = next(iter(await reader.listed()))
        body = (await reader.ask(*CRICKET.requests(ref, reader.base)))["summary"].json()
        competition = body["header"]["competitions"][0]
        assert (body["header"]["id"], competition["status"]["type"]["state"]) == (ref.source_event_id, "in")
        assert [one["winner"] for one in competition["competitors"]] == ["false", "false"]
        assert body["notes"][0]["text"].count(" , elected to ") == 1
        lines = [one["linescores"] for one in competition["competitors"]]
        assert [[line["period"] for line in side] for side in lines] == [[1, 2], [1, 2]], "one for each innings"
        assert sorted(side[0]["isBatting"] for side in lines) == [False, True]
        assert lines[0][0]["overs"] == lines[1][0]["overs"]

    @visiting(programme="only:espn:1")
    async def test_plays_come_oldest_first_25_to_a_page(self, visitor: Visitor) -> None:
        reader = Reader(visitor, "espn")
        visitor.wall.now += 300
        ref = next(iter(await reader.listed()))
        url = CRICKET.requests(ref, reader.base)[1].url
        first = (await reader.ask(Request("plays", url)))["plays"].json()["commentary"]
        assert (first["pageIndex"], len(first["items"]), first["items"][0]["id"]) == (1, 25, "110")
        last = (await reader.ask(Request("plays", f"{url}&page={first['pageCount']}")))["plays"].json()["commentary"]
        assert len(last["items"]) == first["count"] - 25 * (first["pageCount"] - 1)
        sequences = [item["sequence"] for item in first["items"] + last["items"]]
        assert sequences == sorted(sequences)
        beyond = (await reader.ask(Request("plays", f"{url}&page=99")))["plays"].json()["commentary"]
        assert beyond["items"] == []

    @visiting(programme="only:espn:1")
    async def test_a_match_is_only_found_under_its_own_series(self, visitor: Visitor) -> None:
        reader = Reader(visitor, "espn")
        ref = next(iter(await reader.listed()))
        path = ref.url.removeprefix("http://stadium.test")
        assert (await visitor.ask(path)).status == 200
        league = path.split("/")[-2]
        assert (await visitor.ask(path.replace(f"/{league}/", "/1/"))).status == 404
        assert (await visitor.ask(path.replace(ref.source_event_id, "7"))).status == 404

    @pytest.mark.requirement("SO-12", "NFR-008")
    def test_every_match_is_read_correctly_at_every_moment(self, visit: Visit) -> None:
        phases: set[str] = set()

        async def scenario(visitor: Visitor) -> None:
            reader = Reader(visitor, "espn")
            for moment in (-40.0, 0.0, 100.0, 455.0, 520.0, 1_230.0):
                visitor.wall.now = START + moment
                for ref in await reader.listed():
                    payload = await reader.poll(ref)
                    match, index = reader.known(ref)
                    truth = cricket_truth(match, index)
                    assert_cricket_is_true(payload, match, truth)
                    phases.add(truth.phase)

        visit(scenario, programme="only:espn:2")
        assert phases >= {"toss", "in_play", "innings_break", "finished"}

    @pytest.mark.requirement("SO-12", "NFR-008")
    @visiting(programme="only:espn:2")
    async def test_the_pages_together_hold_every_ball_of_both_innings_once(self, visitor: Visitor) -> None:
        reader = Reader(visitor, "espn")
        for moment in (60.0, 700.0, 1_000.0):
            visitor.wall.now = START + moment
            for ref in await reader.listed():
                found, steps = await reader.all_events(ref)
                assert_every_ball_is_there(found, *reader.known(ref))
                assert steps <= len(found) // 100 + 2

    @pytest.mark.skipif(not RECORDINGS.is_dir(), reason="VICTORYLINE_RECORDINGS names no folder of recordings")
    @pytest.mark.requirement("SO-12", "NFR-008")
    def test_recorded_matches_are_read_completely(self, visit: Visit, tmp_path: Path) -> None:
        kinds: set[str] = set()
        for name in ("1216517", "804543"):  # two super overs, no result
            if not (RECORDINGS / f"{name}.json").exists():
                pytest.skip(f"the recordings have no {name}")
            (tmp_path / f"{name}.json").symlink_to(RECORDINGS / f"{name}.json")

        async def scenario(visitor: Visitor) -> None:
            reader = Reader(visitor, "espn")
            visitor.wall.now = START + 100_000
            for ref in await reader.listed():
                payload = await reader.poll(ref)
                match, index = reader.known(ref)
                assert_cricket_is_true(payload, match, cricket_truth(match, index))
                found, _ = await reader.all_events(ref)
                assert_every_ball_is_there(found, match, index)
                kinds.add(payload.state.status.value)
                kinds.update("super over" for one in payload.state.innings if one.is_super_over)

        visit(scenario, programme=f"replay:{tmp_path}", sites=("espn",), at_once=True)
        assert kinds >= {"completed", "abandoned", "super over"}

    @visiting(programme="only:espn:1")
    async def test_line_ups_are_known_from_the_toss_on(self, visitor: Visitor) -> None:
        reader = Reader(visitor, "espn")
        ref = next(iter(await reader.listed()))
        found = CRICKET.parse_lineups(reader.reading(ref, await reader.ask(*CRICKET.lineup_requests(ref, reader.base))))
        match, _ = reader.known(ref)
        for lineup, team in zip(found.lineups, match.teams, strict=True):
            assert lineup.is_confirmed
            assert [player.name for player in lineup.players] == [player.name for player in team.players]


def assert_football_is_true(payload: Payload, match: Match, truth: FootballState) -> None:
    state = payload.state
    assert (state.status.value, state.phase.value) == (truth.status, PHASES.get(truth.phase, truth.phase))
    if state.status in (Status.LIVE, Status.COMPLETED):
        assert (state.score.team_a.goals, state.score.team_b.goals) == truth.goals
    assert [state.teams.team_a.name, state.teams.team_b.name] == [team.name for team in match.teams]
    assert state.venue.startswith(match.venue)
    assert payload.events_are_complete
    assert payload.integrity.missing_fields == ()
    assert payload.unknown == ()


class TestFootball:
    @pytest.mark.requirement("SO-12", "NFR-008")
    def test_every_match_is_read_correctly_at_every_moment(self, visit: Visit) -> None:
        phases: set[str] = set()

        async def scenario(visitor: Visitor) -> None:
            reader = Reader(visitor, "espnsoccer")
            for moment in (-60.0, 0.0, 90.0, 255.0, 300.0, 480.0, 600.0, 880.0):
                visitor.wall.now = START + moment
                for ref in await reader.listed():
                    payload = await reader.poll(ref)
                    match, index = reader.known(ref)
                    truth = fold_football(match.script, match.script.events[:index])  # type: ignore[arg-type]
                    assert_football_is_true(payload, match, truth)
                    phases.add(truth.phase)
                    goals = sorted(one.slot for one in payload.events if one.slot.startswith("g:"))
                    assert goals == sorted(
                        event_keys.goal(side, number)
                        for side, scored in zip(("team_a", "team_b"), truth.goals, strict=True)
                        for number in range(1, scored + 1)
                    )

        visit(scenario, programme="only:espnsoccer:3")
        assert phases >= {"scheduled", "first_half", "halftime", "second_half", "finished"}

    @visiting(programme="only:espnsoccer:2")
    async def test_the_scoreboard_of_a_day_has_the_matches_of_new_yorks_day(self, visitor: Visitor) -> None:
        reader = Reader(visitor, "espnsoccer")
        today = datetime.fromtimestamp(START, UTC).date()
        everything = {ref.source_event_id for ref in await reader.listed()}
        plan = SOCCER.fixture_plan(reader.base, today)
        reading = reader.reading(RefInfo("", reader.base), await reader.ask(*plan.requests))
        found = SOCCER.parse_fixtures(reading, reader.base, today)
        assert {one.source_event_id for one in found} == everything
        assert all(one.start_time and one.start_time.date() == today for one in found)
        board = "/espnsoccer/apis/site/v2/sports/soccer/bra.1/scoreboard?dates="
        far = today + timedelta(days=40)
        assert (await visitor.get(f"{board}{far:%Y%m%d}"))["events"] == []
        assert (await visitor.ask(f"{board}yesterday")).status == 400

    @visiting(programme="only:espnsoccer:1")
    async def test_a_summary_equals_the_scoreboard(self, visitor: Visitor) -> None:
        visitor.wall.now += 600
        reader = Reader(visitor, "espnsoccer")
        ref = next(iter(await reader.listed()))
        url = f"{reader.base}/apis/site/v2/sports/soccer/bra.1/summary?event={ref.source_event_id}"
        read = await reader.poll(RefInfo(ref.source_event_id, url))
        assert read.state == (await reader.poll(ref)).state


class TestVariants:
    """Matches with extra time, a shoot-out, an interruption or a postponement are read correctly at every moment."""

    @pytest.mark.requirement("SO-12", "NFR-008")
    @pytest.mark.parametrize("variant", ["knockout", "interrupted", "postponed"])
    def test_every_event_is_read_correctly(self, variant: str) -> None:
        simulation = Simulation(StadiumConfig(programme="only:espnsoccer:1"), lambda: START)
        first = simulation.listed_matches("espnsoccer")[0]
        names: set[str] = set()
        for seed in range(40):
            generator = MatchGenerator(Random(seed), first.teams)
            generator.variant = variant
            script = generator.run()
            match = replace(first, script=script)
            ref = RefInfo(match.key, f"http://stadium.test/espnsoccer/x#{match.key}")
            state = FootballState(script)
            for event in script.events:
                state.apply(event)
                names.add(self.check(simulation, match, state, ref))
            if names >= VARIANTS[variant]:
                break
        assert names >= VARIANTS[variant]

    def check(self, simulation: Simulation, match: Match, state: FootballState, ref: RefInfo) -> str:
        body = soccer.scoreboard([soccer.event(simulation, match, state)])
        summary = soccer.summary(simulation, match, state)
        name = str(body["events"][0]["status"]["type"]["name"]).removeprefix("STATUS_")
        document = Document("board", "http://stadium.test/", 200, "application/json", json.dumps(body).encode())
        payload = SOCCER.parse(Reading(ref, ReadMode.DIRECT, datetime.fromtimestamp(START, UTC), {"board": document}))
        read = payload.state
        assert read.status.value == state.status
        if name not in ("END_OF_REGULATION", "END_OF_EXTRATIME"):  # the adapter reports the next phase
            assert read.phase.value == PHASES.get(state.phase, state.phase)
        if state.has_shootout:
            assert (read.score.team_a.penalties, read.score.team_b.penalties) == tuple(state.penalties)
        if read.status in (Status.LIVE, Status.COMPLETED):
            assert (read.score.team_a.goals, read.score.team_b.goals) == state.goals
        assert payload.events_are_complete
        assert payload.unknown == ()
        document = replace(document, body=json.dumps(summary).encode())
        other = SOCCER.parse(Reading(ref, ReadMode.DIRECT, datetime.fromtimestamp(START, UTC), {"board": document}))
        assert {(one.id, one.kind) for one in other.events} == {(one.id, one.kind) for one in payload.events}
        assert other.state.score == read.score
        assert (other.events_are_complete, other.unknown) == (True, ())
        return name


VARIANTS = {
    "knockout": {"END_OF_REGULATION", "OVERTIME", "END_OF_EXTRATIME", "SHOOTOUT", "FINAL_PEN"},
    "interrupted": {"FIRST_HALF", "SUSPENDED", "FULL_TIME"},
    "postponed": {"POSTPONED"},
}


@pytest.mark.requirement("SO-12", "NFR-008")
@visiting(programme="only:sofascore,espnsoccer:3")
async def test_both_football_sites_give_events_the_same_slots(visitor: Visitor) -> None:
    await visitor.enter("sofascore")
    reader = Reader(visitor, "espnsoccer")
    sofascore = adapter_for("sofascore")
    compared = 0
    for moment in (300.0, 640.0):
        visitor.wall.now = START + moment
        for ref in await reader.listed():
            match, _ = reader.known(ref)
            key = match.at("sofascore").key
            path = f"/sofascore/api/v1/event/{key}"
            documents = await reader.ask(Request("event", path), Request("incidents", f"{path}/incidents"))
            other = sofascore.parse(reader.reading(RefInfo(key, path), documents))
            own = {one.slot for one in (await reader.poll(ref)).events if one.slot}
            theirs = {one.slot for one in other.events if one.slot and not one.slot.startswith("p:")}
            assert own == theirs
            compared += len(own)
    assert compared > 10


@pytest.mark.requirement("FS-2")
@pytest.mark.parametrize(
    ("site", "target", "kind", "expected"),
    [
        pytest.param("espn", "live", "wrong_match", PayloadRejected, id="the summary of another match"),
        pytest.param("espn", "feed", "wrong_match", PayloadRejected, id="the plays of another match"),
        pytest.param("espn", "live", "malformed", ScrapingError, id="half a summary"),
        pytest.param("espn", "feed", "malformed", None, id="half of the plays: the score is kept"),
        pytest.param("espn", "live", "layout", ScrapingError, id="a summary with other names"),
        pytest.param("espnsoccer", "live", "malformed", ScrapingError, id="half a scoreboard"),
        pytest.param("espnsoccer", "live", "layout", ScrapingError, id="a scoreboard with other names"),
    ],
)
def test_a_faulty_response_is_refused(
    visit: Visit, site: str, target: str, kind: str, expected: type[Exception] | None
) -> None:
    async def scenario(visitor: Visitor) -> None:
        visitor.wall.now += 60
        reader = Reader(visitor, site)
        ref = next(iter(await reader.listed()))
        await visitor.post("/control/faults", {"site": site, "target": target, "kind": kind}, 201)
        if expected is None:
            payload = await reader.poll(ref)
            assert payload.state.innings
            assert "events" in payload.integrity.missing_fields
            return
        with pytest.raises(expected):
            await reader.poll(ref)

    visit(scenario, programme=f"only:{site}:2")
