"""scrape_match: one call reads one match by an ordinary task."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from scraping.configuration import policies
from scraping.errors import SchemaBreak
from scraping.jobs.sofascore_service import (
    NotScraped,
    PointInTimeError,
    ScrapeResult,
    SofascoreScraperService,
    WrongMatch,
)
from scraping.models import Lineup, MatchRef, Priority, ScrapeTask, TaskState, TeamAlias
from scraping.names import squeezed
from scraping.payloads import Lineups, Resource, Status
from scraping.sources import ADAPTERS
from scraping.worker.engine import Engine
from scraping.worker.scrape import scrape
from tests.factories import NOW, football_state, make_match, make_ref
from tests.scraping.attempts import Clock, stopped_clock
from tests.scraping.builders import POLICIES, later, open_task
from tests.scraping.scripted_lineups import ScriptedAdapter, engine_parsing, lineups_of, no_lineups, side_of

pytestmark = [pytest.mark.both, pytest.mark.django_db, pytest.mark.requirement("FS-18")]
KICKOFF = later(3600)


@pytest.fixture(autouse=True)
def scripted_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ADAPTERS, "sofascore", ScriptedAdapter())
    monkeypatch.setattr(policies, "current", lambda: POLICIES)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with stopped_clock(monkeypatch) as stopped:
        yield stopped


@pytest.fixture
def ref() -> MatchRef:
    match = make_match(state=football_state(status=Status.UPCOMING), start_time=KICKOFF)
    return make_ref(match, source="sofascore", source_event_id="77")


def call(ref: MatchRef, lineups: Lineups | Exception, *, wait_seconds: float = 20, **fields: Any) -> ScrapeResult:
    """Calls the service while a worker executes the open tasks."""
    asked = {"match_id": ref.match_id, "kickoff_utc": KICKOFF, "home_team": "Arsenal", "away_team": "Chelsea", **fields}

    async def both() -> ScrapeResult:
        service = SofascoreScraperService(wait_seconds=wait_seconds)
        working = asyncio.ensure_future(_work(engine_parsing(lineups)))
        try:
            return await service.scrape_match(**asked)
        finally:
            working.cancel()

    return async_to_sync(both)()


async def _work(engine: Engine) -> None:
    while True:
        for task_id in await sync_to_async(_due)():
            await sync_to_async(scrape)([task_id], engine)
        await asyncio.sleep(0.01)


def _due() -> list[int]:
    pending = ScrapeTask.objects.filter(state=TaskState.PENDING)
    pending.update(run_at=NOW)  # without waiting for the retry
    return list(pending.values_list("pk", flat=True))


class TestContract:
    def test_has_the_specified_signature(self) -> None:
        found = inspect.signature(SofascoreScraperService.scrape_match).parameters
        names = ("match_id", "kickoff_utc", "home_team", "away_team", "league_id", "season", "priority")
        assert tuple(found)[1:] == names
        assert all(found[name].kind is inspect.Parameter.KEYWORD_ONLY for name in names)
        assert (found["league_id"].default, found["season"].default, found["priority"].default) == (
            None,
            None,
            "normal",
        )
        assert inspect.iscoroutinefunction(SofascoreScraperService.scrape_match)

    def test_returns_the_line_ups(self, ref: MatchRef) -> None:
        result = call(ref, lineups_of(ref), league_id=325, season=2026)
        assert (result.source, result.source_event_id) == ("sofascore", "77")
        assert (result.schema_version, result.captured_at, result.raw_payload) == ("sofascore.lineups.v1", NOW, None)
        assert (result.normalized["match_id"], result.normalized["league_id"]) == (ref.match_id, 325)
        home = result.normalized["home"]
        assert (home["formation"], len(home["starters"]), len(home["bench"]), home["xi_missing"]) == ("4-3-3", 11, 2, 0)
        assert home["starters"][0] | {"name": "Player a1", "position": "M"} == home["starters"][0]
        assert result.integrity == {
            "xi_missing": 0,
            "is_confirmed": True,
            "missing_required_fields": [],
            "null_field_rate": 0.0,
        }

    def test_opens_a_task_and_stores_the_rows(self, ref: MatchRef) -> None:
        call(ref, lineups_of(ref), priority="high")
        task = ScrapeTask.objects.get()
        assert (task.resource, task.state, task.priority) == (Resource.LINEUPS, TaskState.SUCCESS, Priority.LIVE)
        assert Lineup.objects.count() == 2

    def test_shares_the_reading_that_is_under_way(self, ref: MatchRef) -> None:
        waiting = open_task(ref, resource=Resource.LINEUPS)
        ScrapeTask.objects.update(run_at=later(900))
        call(ref, lineups_of(ref))
        assert ScrapeTask.objects.get().pk == waiting

    def test_a_second_call_duplicates_nothing(self, ref: MatchRef) -> None:
        first, second = call(ref, lineups_of(ref)), call(ref, lineups_of(ref))
        assert first.normalized == second.normalized
        assert Lineup.objects.count() == 2


class TestMissingLineups:
    def test_returns_flags_without_line_ups(self, ref: MatchRef) -> None:
        result = call(ref, no_lineups(ref))
        assert result.integrity["xi_missing"] == 1
        assert result.integrity["missing_required_fields"][:2] == ["home.starters", "away.starters"]
        assert result.integrity["null_field_rate"] == 1.0
        assert (result.normalized["home"]["xi_missing"], result.normalized["home"]["starters"]) == (1, [])

    def test_half_an_eleven_is_flagged_on_its_side(self, ref: MatchRef) -> None:
        result = call(ref, lineups_of(ref, side_of(starters=7), side_of("team_b")))
        sides = result.normalized["home"]["xi_missing"], result.normalized["away"]["xi_missing"]
        assert (sides, result.integrity["xi_missing"]) == ((1, 0), 1)


@pytest.mark.requirement("FS-1")
class TestPointInTime:
    @pytest.mark.parametrize("seconds", [0, 1, 86_400])
    def test_at_or_after_the_start_nothing_is_read(self, ref: MatchRef, clock: Clock, seconds: int) -> None:
        clock.now = KICKOFF + timedelta(seconds=seconds)
        with pytest.raises(PointInTimeError, match="snapshot_type pre_match"):
            call(ref, lineups_of(ref))
        assert not ScrapeTask.objects.exists()

    def test_the_known_start_time_counts_too(self, ref: MatchRef, clock: Clock) -> None:
        clock.now = KICKOFF
        with pytest.raises(PointInTimeError):
            call(ref, lineups_of(ref), kickoff_utc=later(9000))

    def test_a_reading_that_came_too_late_is_refused(self, ref: MatchRef) -> None:
        with pytest.raises(PointInTimeError, match="read at"):
            call(ref, lineups_of(ref, at=KICKOFF))
        assert not Lineup.objects.exists()

    def test_refuses_a_time_without_a_zone(self, ref: MatchRef) -> None:
        with pytest.raises(ValueError, match="no time zone"):
            call(ref, lineups_of(ref), kickoff_utc=datetime(2026, 1, 10, 13))  # noqa: DTZ001


class TestRefusals:
    @pytest.mark.parametrize(
        ("home", "away", "word"),
        [
            pytest.param("Flamengo", "Chelsea", "home team", id="another home team"),
            pytest.param("Arsenal", "Santos", "away team", id="another away team"),
            pytest.param("Chelsea", "Arsenal", "home team", id="the other way round"),
            pytest.param("Arsenal Women", "Chelsea Women", "home team", id="their women"),
        ],
    )
    def test_other_teams_are_another_match(self, ref: MatchRef, home: str, away: str, word: str) -> None:
        with pytest.raises(WrongMatch, match=word):
            call(ref, lineups_of(ref), home_team=home, away_team=away)
        assert not ScrapeTask.objects.exists()

    def test_another_spelling_is_the_same_team(self, ref: MatchRef) -> None:
        TeamAlias.objects.create(
            sport="football", alias="The Gunners", name="Arsenal", squeezed=squeezed("The Gunners")
        )
        result = call(ref, lineups_of(ref), home_team="The Gunners", away_team="Chelsea FC")
        assert result.integrity["xi_missing"] == 0

    def test_refuses_an_unknown_match(self, ref: MatchRef) -> None:
        with pytest.raises(WrongMatch, match="not known at sofascore"):
            call(ref, lineups_of(ref), match_id=10**9)

    def test_refuses_an_unknown_priority(self, ref: MatchRef) -> None:
        with pytest.raises(ValueError, match="normal, high"):
            call(ref, lineups_of(ref), priority="urgent")


class TestFailures:
    def test_raises_the_reason_of_a_failed_reading(self, ref: MatchRef) -> None:
        with pytest.raises(NotScraped, match="is not a list"):
            call(ref, SchemaBreak("home.players: is not a list"))

    def test_waits_for_a_limited_time_and_the_task_continues(self, ref: MatchRef) -> None:
        asked = {"match_id": ref.match_id, "kickoff_utc": KICKOFF, "home_team": "Arsenal", "away_team": "Chelsea"}
        with pytest.raises(NotScraped, match="check whether a worker is running"):
            async_to_sync(SofascoreScraperService(wait_seconds=0).scrape_match)(**asked)
        assert ScrapeTask.objects.get().state == TaskState.PENDING
