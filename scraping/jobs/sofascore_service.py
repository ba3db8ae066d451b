"""A Python interface to the line-ups of one match before its start, for code that computes features from them.

A call opens a task in the journal, waits until a worker in any process has finished it, and returns the stored result.
So it works in every process that reaches the database, never holds a browser, and two calls for one match are one
reading.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.utils import timezone

from scraping import journal, names
from scraping.matches.lineups import OTHER_SIDE, PLAYER_COLUMNS, PointInTimeError
from scraping.models import Lineup, MatchRef, Priority, ScrapeTask, SnapshotType, TaskState, TeamAlias
from scraping.payloads import STARTERS, Resource
from scraping.sources import ADAPTERS
from victoryline.lib.times import as_utc_iso

__all__ = ["NotScraped", "PointInTimeError", "ScrapeResult", "SofascoreScraperService", "WrongMatch"]

CHECK_EVERY_SECONDS = 0.2
WAIT_SECONDS = 90.0
OUR_SIDES = ("home", "away")
PRIORITIES: Mapping[str, Priority] = {"normal": Priority.IMMINENT, "high": Priority.LIVE}


class WrongMatch(LookupError):  # noqa: N818 - reads as what it says at every `except`
    """The source has no such match, or it is between other teams. Nothing was read."""


class NotScraped(RuntimeError):  # noqa: N818
    """The match could not be read, or not in time. The task in the journal has the reason."""


@dataclass(frozen=True)
class ScrapeResult:
    source: str
    schema_version: str
    captured_at: datetime  # UTC
    source_event_id: str
    normalized: dict[str, Any]
    raw_payload: dict[str, Any] | None = None  # never kept: see `normalized`
    integrity: dict[str, Any] = field(default_factory=dict)


class SofascoreScraperService:
    """Line-ups, formations and ratings of a football match before its start."""

    source_key = "sofascore"

    def __init__(self, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self._wait_seconds = wait_seconds

    async def scrape_match(
        self,
        *,
        match_id: int,
        kickoff_utc: datetime,
        home_team: str,
        away_team: str,
        league_id: int | None = None,
        season: int | None = None,
        priority: str = "normal",
    ) -> ScrapeResult:
        """Reads the line-ups now. The result's captured_at is always before `kickoff_utc`.

        PointInTimeError at or after the kick-off; WrongMatch where the match is another one; NotScraped where it could
        not be read. A source that has no line-ups yet is no error: `integrity` has xi_missing = 1.
        """
        if kickoff_utc.tzinfo is None:
            raise ValueError("kickoff_utc has no time zone: give one, such as datetime(..., tzinfo=UTC)")
        if priority not in PRIORITIES:
            raise ValueError(f"priority is {priority!r}, and may be: {', '.join(PRIORITIES)}")
        teams = {"home": home_team, "away": away_team}
        begin, result = sync_to_async(self._begin), sync_to_async(self._result)
        task_id, ref_id = await begin(match_id, kickoff_utc, teams, PRIORITIES[priority], timezone.now())
        task = await self._outcome(task_id)
        return await result(task, ref_id, kickoff_utc, {"league_id": league_id, "season": season})

    async def _outcome(self, task_id: int) -> ScrapeTask:
        deadline = time.monotonic() + self._wait_seconds
        while True:
            task = await sync_to_async(ScrapeTask.objects.get)(pk=task_id)
            if task.finished_at is not None and task.state not in (TaskState.PENDING, TaskState.EXECUTING):
                return task
            if time.monotonic() >= deadline:
                raise NotScraped(
                    f"task {task_id} is {task.state} after {self._wait_seconds:g} s and continues in the background: "
                    f"call again, or check whether a worker is running"
                )
            await asyncio.sleep(CHECK_EVERY_SECONDS)

    def _begin(
        self, match_id: int, kickoff: datetime, teams: Mapping[str, str], priority: Priority, now: datetime
    ) -> tuple[int, int]:
        """Checks everything that can be checked, then opens the task; returns its id and that of the ref."""
        _refuse_late(now, kickoff)
        refs = MatchRef.objects.select_related("match", "source").filter(source__key=self.source_key)
        ref = refs.filter(match_id=match_id).first()
        if ref is None:
            raise WrongMatch(f"match {match_id} is not known at {self.source_key}: watch it there first")
        adapter = ADAPTERS.get(ref.source.adapter_key)
        if not ref.source.is_enabled or adapter is None or not adapter.lineup_schema:
            raise NotScraped(f"{ref.source.name} is switched off, or its adapter has no line-ups")
        _refuse_other_teams(ref, teams)
        if ref.match.start_time is not None:
            _refuse_late(now, ref.match.start_time)
        new = journal.NewTask(ref.source_id, ref.pk, Resource.LINEUPS, priority, run_at=now)
        task_id = journal.open_or_share([new], now=now)[ref.pk]
        journal.make_tasks_due([ref.pk], now=now, resource=Resource.LINEUPS)
        return task_id, ref.pk

    def _result(
        self, task: ScrapeTask, ref_id: int, kickoff: datetime, labels: Mapping[str, int | None]
    ) -> ScrapeResult:
        """Returns the stored line-ups. `labels`: ids of the caller that are passed through."""
        if task.state == TaskState.SKIPPED:
            raise PointInTimeError(f"{task.reason}. Use the stored line-ups: GET /api/v1/matches/{{id}}/lineups")
        if task.state != TaskState.SUCCESS:
            raise NotScraped(f"task {task.pk} ended {task.state}: {task.reason}")
        ref = MatchRef.objects.select_related("match", "source").get(pk=ref_id)
        captured_at = ref.lineups_read_at or task.finished_at
        assert captured_at is not None
        _refuse_late(captured_at, kickoff)
        rows = Lineup.objects.filter(match=ref.match, source=ref.source, snapshot_type=SnapshotType.PRE_MATCH)
        kept = {row.side: row for row in rows.filter(captured_at__lt=kickoff).prefetch_related("players")}
        sides: dict[str, dict[str, Any]] = {ours: _side(kept.get(_side_of(ours, ref))) for ours in OUR_SIDES}
        adapter = ADAPTERS[ref.source.adapter_key]
        identity = {
            "match_id": ref.match_id,
            "title": ref.match.title,
            "kickoff_utc": as_utc_iso(kickoff),
            **labels,
        }
        return ScrapeResult(
            source=ref.source.key,
            schema_version=next((row.payload_schema for row in kept.values()), adapter.lineup_schema),
            captured_at=captured_at,
            source_event_id=ref.source_event_id,
            normalized=identity | sides,
            integrity=_integrity(sides),
        )


def _refuse_late(at: datetime, kickoff: datetime) -> None:
    if at >= kickoff:
        late = timedelta(seconds=round((at - kickoff).total_seconds()))
        raise PointInTimeError(
            f"the match started at {as_utc_iso(kickoff)}, {late} ago: a reading made now is not from before the start. "
            "Use the line-ups stored before it: GET /api/v1/matches/{id}/lineups, snapshot_type pre_match"
        )


def _refuse_other_teams(ref: MatchRef, teams: Mapping[str, str]) -> None:
    """Compares both teams and their order: a feature of the wrong side is worse than none."""
    match, aliases = ref.match, TeamAlias.objects.names(ref.match.sport)
    known = {side: getattr(match, side) for side in ("team_a", "team_b")}
    if not all(known.values()):
        raise WrongMatch(f"match {match.pk} has not been read yet, so its teams are unknown: try again later")
    for ours, wanted in teams.items():
        name = known[_side_of(ours, ref)]
        if names.similarity(names.team(name, aliases=aliases), names.team(wanted, aliases=aliases)) < names.BY_WORDS:
            raise WrongMatch(f"the {ours} team of match {match.pk} at {ref.source.key} is {name!r}, not {wanted!r}")


def _side_of(ours: str, ref: MatchRef) -> str:
    side = "team_a" if ours == "home" else "team_b"
    return OTHER_SIDE[side] if ref.is_crossed else side


def _side(row: Lineup | None) -> dict[str, Any]:
    players = [
        {"player_id_ext": player.player_id_ext, **{name: getattr(player, name) for name in PLAYER_COLUMNS}}
        for player in (row.players.all() if row else ())
    ]
    return {
        "formation": row.formation if row else "",
        "is_confirmed": row is not None and row.is_confirmed,
        "xi_missing": int(row is None or row.xi_missing),
        "captured_at": as_utc_iso(row.captured_at) if row else None,
        "starters": [player for player in players if player["is_starter"]],
        "bench": [player for player in players if not player["is_starter"]],
    }


def _integrity(sides: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Returns what is missing of a full line-up: eleven starters and a formation per side, a position per player."""
    missing = [f"{ours}.starters" for ours, side in sides.items() if side["xi_missing"]]
    missing += [f"{ours}.formation" for ours, side in sides.items() if not side["formation"]]
    wanted = len(sides) * STARTERS
    placed = sum(bool(player["position"]) for side in sides.values() for player in side["starters"][:STARTERS])
    return {
        "xi_missing": int(any(side["xi_missing"] for side in sides.values())),
        "is_confirmed": all(side["is_confirmed"] for side in sides.values()),
        "missing_required_fields": missing,
        "null_field_rate": round(1 - placed / wanted, 4),
    }
