"""Replays a match log: validates and ingests its states and events again, into an empty database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from scraping.matches import ingest
from scraping.matches.match_logs import FORMAT
from scraping.matches.validate import CONFIRMING_READINGS, check
from scraping.models import Match, MatchEvent, MatchRef, Source
from scraping.payloads import Event, Payload
from scraping.policies.interval import Pace
from victoryline.replay.comparison import ReplayResult
from victoryline.replay.match_log import RETRACT, EventRevision, LoggedSource, MatchLog, Step
from victoryline.replay.system import ReplayError

Wait = Callable[[float], None]
LONGEST_WAIT_SECONDS = 60.0  # a longer pause, like a night, is shortened
WORKER = "replay"
COMPARED = ("kind", "innings", "over", "minute", "ordinal", "slot", "runs", "is_critical", "description", "detail")


def replay_log(log: MatchLog, *, speed: float, wait: Wait) -> ReplayResult:
    """Ingests all steps in order, with the time between them divided by `speed`, and compares the outcome."""
    if Match.objects.exists():
        raise ReplayError("this database contains matches: a log is only replayed into an empty one")
    refs = _refs(log)
    lists: dict[int, dict[str, Event]] = {source_id: {} for source_id in refs}
    before = log.steps[0].at
    for step in log.steps:
        wait(min(max(0.0, (step.at - before).total_seconds()) / speed, LONGEST_WAIT_SECONDS))
        before = step.at
        for reading in _readings(step, refs, main=log.sources[0].source_id):
            _ingest(reading, step, refs[reading.source_id], lists[reading.source_id])
    return _compared(log, refs)


@dataclass
class _Reading:
    """The revisions of one source in a step: each event once, and no retractions together with new events."""

    source_id: int
    revisions: list[EventRevision] = field(default_factory=list)

    def takes(self, one: EventRevision) -> bool:
        if one.source_id != self.source_id or one.event.id in {known.event.id for known in self.revisions}:
            return False
        return not self.revisions or self.revisions[-1].is_retracted == one.is_retracted


def _readings(step: Step, refs: dict[int, MatchRef], *, main: int) -> Iterator[_Reading]:
    """Splits a step into readings, in order. The main source provides the state, so it has a reading in each step."""
    reading: _Reading | None = None
    has_main = False
    for one in step.revisions:
        if one.source_id not in refs:
            raise ReplayError(f"event {one.event.id} is of a source that is not in the log")
        if reading is not None and not reading.takes(one):
            yield reading
            reading = None
        reading = reading or _Reading(one.source_id)
        reading.revisions.append(one)
        has_main = has_main or reading.source_id == main
    if reading is not None:
        yield reading
    if not has_main:
        yield _Reading(main)


def _ingest(reading: _Reading, step: Step, ref: MatchRef, listed: dict[str, Event]) -> None:
    """Validates and ingests one reading. A lower score is repeated until the regression is accepted."""
    are_complete = any(one.is_retracted for one in reading.revisions)
    for one in reading.revisions:
        listed.pop(one.event.id, None)
        if not one.is_retracted:
            listed[one.event.id] = one.event
    payload = Payload(
        source=ref.source.key,
        payload_schema=FORMAT,
        captured_at=step.captured_at,
        source_event_id=ref.source_event_id,
        state=step.state,
        events=tuple(listed.values()) if are_complete else tuple(one.event for one in reading.revisions),
        events_are_complete=are_complete,
    )
    check(payload, expected_id=ref.source_event_id, sport=step.state.sport)
    attempt = ingest.Attempt(WORKER, step.captured_at, had_failures=False, now=step.at)
    for _ in range(CONFIRMING_READINGS):
        with transaction.atomic():
            if ingest.apply(payload, ref_id=ref.pk, pace=Pace(), attempt=attempt).is_taken:
                return
    raise ReplayError(f"state {step.sequence} was not accepted")


def _refs(log: MatchLog) -> dict[int, MatchRef]:
    """Creates the match and its refs, like discovery does: never read."""
    sport, first = str(log.match["sport"]), log.steps[0].at
    match = Match.objects.create(sport=sport, title=str(log.match["title"]), created_at=first)
    return {one.source_id: _ref(one, match, sport) for one in log.sources}


def _ref(logged: LoggedSource, match: Match, sport: str) -> MatchRef:
    source, _ = Source.objects.update_or_create(
        key=logged.key,
        defaults={"name": logged.key, "sport": sport, "base_url": logged.url, "precedence_weight": logged.weight},
    )
    return MatchRef.objects.create(
        match=match, source=source, source_event_id=logged.event_id, url=logged.url, created_at=match.created_at
    )


def _compared(log: MatchLog, refs: dict[int, MatchRef]) -> ReplayResult:
    """Compares the events of every source, the served events, and the last state with the log."""
    match = Match.objects.get()
    rows = list(MatchEvent.objects.filter(match=match, is_current=True))
    result = ReplayResult(log.name, corrections=MatchEvent.objects.filter(match=match).exclude(action="add").count())
    found = {(row.source_id, row.event_id): row for row in rows}
    for logged in log.events:
        _compare_event(result, logged, found.pop((refs[logged["source_id"]].source_id, logged["event_id"]), None))
    result.wrong += len(found)
    for row in found.values():
        result.add_difference(f"{row.event_id} is not in the log")
    _count_duplicates(result, match.pk)
    for name, value in log.match["payload"].items():
        if match.payload.get(name) != value:
            result.add_difference(f"{name} is {match.payload.get(name)}, not {value}")
    return result


def _compare_event(result: ReplayResult, logged: Mapping[str, Any], row: MatchEvent | None) -> None:
    result.expected += 1
    if row is None:
        result.missing += 1
        result.add_difference(f"{logged['event_id']} is missing")
        return
    result.present += 1
    differing = [name for name in COMPARED if getattr(row, name) != logged[name]]
    if (row.action == RETRACT) != (logged["action"] == RETRACT):
        differing.append("action")
    if differing:
        result.wrong += 1
        result.add_difference(f"{logged['event_id']}: {', '.join(differing)} differ")


def _count_duplicates(result: ReplayResult, match_id: int) -> None:
    """Counts events that a consumer of the feed has more than once."""
    served = MatchEvent.objects.filter(match=match_id, is_served=True).exclude(slot="")
    events: dict[str, set[str]] = {}
    for row in served.order_by("pk"):
        ids = events.setdefault(row.slot, set())
        if row.action == RETRACT:
            ids.discard(row.known_as)
        else:
            ids.add(row.known_as)
    result.doubled += sum(len(ids) - 1 for ids in events.values() if ids)
