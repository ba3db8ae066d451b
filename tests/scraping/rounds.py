"""Rounds for tests: a source's list in its own format, and a reader that returns it and whole matches."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone

from scraping import jobs
from scraping.models import MatchRef, ScrapeJob, ScrapeTask, TaskState
from scraping.payloads import Event, MatchState, Payload, Phase, Resource, Score, SideScore, Status
from scraping.reading.reader import Target
from scraping.readings import Document, Reading, ReadMode, RefInfo, Site
from scraping.sources.base import ListPlan
from scraping.worker.engine import Engine
from scraping.worker.scrape import scrape
from tests.factories import NOW, football_state, make_source
from tests.scraping.builders import POLICIES, Outcome, ScriptedReader

ASKED = {"tournament": 325, "season": 87678, "round": 12}
IDS = tuple(str(15_000_000 + number) for number in range(10))
ENDED = {"code": 100, "description": "Ended", "type": "finished"}


def row(event_id: str, **fields: Any) -> dict[str, Any]:
    """Returns a match as a row of the round's list."""
    values: dict[str, Any] = {
        "id": int(event_id),
        "slug": f"home-{event_id}-away",
        "customId": "GOsuO",
        "status": ENDED,
        "homeTeam": {"name": f"Home {event_id}"},
        "awayTeam": {"name": "Away"},
        "startTimestamp": int(NOW.timestamp()),
        "tournament": {"uniqueTournament": {"id": ASKED["tournament"]}, "category": {"sport": {"slug": "football"}}},
        "season": {"id": ASKED["season"]},
        "roundInfo": {"round": ASKED["round"]},
    }
    return values | fields


def round_of(*rows: Any) -> dict[str, Any]:
    return {"events": list(rows)}


def url_of(event_id: str) -> str:
    return f"https://sofascore.example/en/football/match/home-{event_id}-away/GOsuO#id:{event_id}"


def finished(**fields: Any) -> MatchState:
    """A football match that is over: one goal each."""
    score = Score(team_a=SideScore(goals=1), team_b=SideScore(goals=1))
    ended = {"status": Status.COMPLETED, "phase": Phase.FINISHED, "score": score, "result": "Draw 1-1", "clock": ""}
    return football_state(**ended | fields)


def goals(event_id: str) -> tuple[Event, ...]:
    return tuple(Event(id=f"{event_id}-{side}", kind="goal", minute="12") for side in ("home", "away"))


def whole(event_id: str, state: MatchState | None = None, **fields: Any) -> Payload:
    """Returns a match as one reading: state and all events."""
    values: dict[str, Any] = {"source": "sofascore", "events": goals(event_id), "events_are_complete": True, **fields}
    return Payload(captured_at=timezone.now(), source_event_id=event_id, state=state or finished(), **values)


class RoundReader(ScriptedReader):
    """Returns the given list of the round (or raises); for a match its entry in `outcomes`, else a whole match."""

    def __init__(
        self, listed: Any = None, outcomes: Mapping[str, Outcome | Callable[[], Outcome]] | None = None
    ) -> None:
        super().__init__(Exception("not scripted"))
        self._listed = round_of(*map(row, IDS)) if listed is None else listed
        self.outcomes = dict(outcomes or {})
        self.read_ids: list[str] = []
        self.lists = 0

    def planned_list(self, site: Site, plan: ListPlan, **_: Any) -> Reading:
        self.lists += 1
        if isinstance(self._listed, Exception):
            raise self._listed
        body = json.dumps(self._listed).encode()
        document = Document("round", f"{site.base_url}/round", 200, "application/json", body)
        return Reading(RefInfo("", document.url), ReadMode.DIRECT, timezone.now(), {"round": document})

    def scorecard(self, target: Target) -> tuple[Reading, Payload]:
        event_id = target.ref.source_event_id
        self.read_ids.append(event_id)
        outcome = self.outcomes.get(event_id) or whole(event_id)
        outcome = outcome() if callable(outcome) else outcome
        if isinstance(outcome, Exception):
            raise outcome
        return Reading(target.ref, ReadMode.DIRECT, outcome.captured_at, documents={}), outcome


def engine_of(reader: RoundReader) -> Engine:
    return Engine(worker_id="w-1", reader=reader, policies=POLICIES)


def start(**more: Any) -> ScrapeJob:
    make_source("sofascore")
    asked = {"source_key": "sofascore", "asked": ASKED, "requested_by": "Ann", "now": timezone.now(), **more}
    return jobs.start_round(**asked).job


def run_due(engine: Engine, *, resource: Resource | None = None, limit: int = 1000) -> int:
    """Executes the due tasks as workers do; returns their number."""
    due = ScrapeTask.objects.filter(state=TaskState.PENDING, run_at__lte=timezone.now()).order_by("pk")
    if resource is not None:
        due = due.filter(resource=resource)
    ids = list(due.values_list("pk", flat=True)[:limit])
    for task_id in ids:
        scrape([task_id], engine)
    return len(ids)


def run_round(reader: RoundReader | None = None, **more: Any) -> tuple[ScrapeJob, RoundReader]:
    """Runs a round from its start to its last task, with all retries."""
    reader = reader or RoundReader()
    job = start(**more)
    engine = engine_of(reader)
    while run_due(engine):
        pass
    return job, reader


def make_due() -> None:
    """Makes waiting retries due now."""
    ScrapeTask.objects.filter(state=TaskState.PENDING).update(run_at=timezone.now() - timedelta(seconds=1))


def tasks_of(job: ScrapeJob) -> dict[str, str]:
    """Returns the state of each match's task, by its id at the source."""
    rows = ScrapeTask.objects.filter(job_items__job=job)
    return dict(rows.values_list("ref__source_event_id", "state"))


def known(event_id: str) -> MatchRef:
    return MatchRef.objects.get(source__key="sofascore", source_event_id=event_id)
