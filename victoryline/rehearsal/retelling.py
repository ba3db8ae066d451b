"""An archived match told once more: check and ingest, as when it was live, into a database that holds nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from scraping.matches import ingest
from scraping.matches.match_logs import FORMAT
from scraping.matches.score_regressions import BELIEVED_AFTER
from scraping.matches.validate import check
from scraping.models import Match, MatchEvent, MatchRef, Source
from scraping.payloads import Event, Payload
from scraping.policies.interval import Pace
from victoryline.rehearsal.archived import RETRACT, Record, Step, Teller, Told
from victoryline.rehearsal.system import RehearsalError
from victoryline.rehearsal.verdict import Verdict

Wait = Callable[[float], None]
LONGEST_WAIT_SECONDS = 60.0  # nights between days of play are not waited for
WORKER = "retelling"
COMPARED = ("kind", "innings", "over", "minute", "ordinal", "slot", "runs", "is_critical", "description", "detail")


def retell(record: Record, *, speed: float, wait: Wait) -> Verdict:
    """All steps in their order, the time between them divided by `speed`; then is everything as it was?"""
    if Match.objects.exists():
        raise RehearsalError("this database holds matches: a record is only told into an empty one")
    refs = _refs(record)
    lists: dict[int, dict[str, Event]] = {source_id: {} for source_id in refs}
    before = record.steps[0].at
    for step in record.steps:
        wait(min(max(0.0, (step.at - before).total_seconds()) / speed, LONGEST_WAIT_SECONDS))
        before = step.at
        for part in _parts(step, refs, main=record.tellers[0].source_id):
            _tell(part, step, refs[part.source_id], lists[part.source_id])
    return _judged(record, refs)


@dataclass
class _Part:
    """What one source tells of a step: no event twice, and nothing taken back among what is new."""

    source_id: int
    told: list[Told] = field(default_factory=list)

    def takes(self, one: Told) -> bool:
        if one.source_id != self.source_id or one.event.id in {known.event.id for known in self.told}:
            return False
        return not self.told or self.told[-1].is_gone == one.is_gone


def _parts(step: Step, refs: dict[int, MatchRef], *, main: int) -> Iterator[_Part]:
    """In the order in which they were written. The state is the heaviest source's to tell, so it speaks in each."""
    part: _Part | None = None
    spoke = False
    for one in step.told:
        if one.source_id not in refs:
            raise RehearsalError(f"event {one.event.id} is of a source that the record does not name")
        if part is not None and not part.takes(one):
            yield part
            part = None
        part = part or _Part(one.source_id)
        part.told.append(one)
        spoke = spoke or part.source_id == main
    if part is not None:
        yield part
    if not spoke:
        yield _Part(main)


def _tell(part: _Part, step: Step, ref: MatchRef, listed: dict[str, Event]) -> None:
    """One reading: checked and ingested like any other. A score that goes down is read until it is believed."""
    are_complete = any(one.is_gone for one in part.told)
    for one in part.told:
        listed.pop(one.event.id, None)
        if not one.is_gone:
            listed[one.event.id] = one.event
    payload = Payload(
        source=ref.source.key,
        payload_schema=FORMAT,
        captured_at=step.captured_at,
        source_event_id=ref.source_event_id,
        state=step.state,
        events=tuple(listed.values()) if are_complete else tuple(one.event for one in part.told),
        events_are_complete=are_complete,
    )
    check(payload, expected_id=ref.source_event_id, sport=step.state.sport)
    attempt = ingest.Attempt(WORKER, step.captured_at, had_failures=False, now=step.at)
    for _ in range(BELIEVED_AFTER):
        with transaction.atomic():
            if ingest.apply(payload, ref_id=ref.pk, pace=Pace(), attempt=attempt).is_taken:
                return
    raise RehearsalError(f"state {step.sequence} was not believed")


def _refs(record: Record) -> dict[int, MatchRef]:
    """The match at its sources, as discovery leaves them: known, and never read."""
    sport, first = str(record.match["sport"]), record.steps[0].at
    match = Match.objects.create(sport=sport, title=str(record.match["title"]), created_at=first)
    return {one.source_id: _ref(one, match, sport) for one in record.tellers}


def _ref(teller: Teller, match: Match, sport: str) -> MatchRef:
    source, _ = Source.objects.update_or_create(
        key=teller.key,
        defaults={"name": teller.key, "sport": sport, "base_url": teller.url, "precedence_weight": teller.weight},
    )
    return MatchRef.objects.create(
        match=match, source=source, source_event_id=teller.event_id, url=teller.url, created_at=match.created_at
    )


def _judged(record: Record, refs: dict[int, MatchRef]) -> Verdict:
    """Every event of every source as it was in the end, each happening served once, and the same last state."""
    match = Match.objects.get()
    rows = list(MatchEvent.objects.filter(match=match, is_current=True))
    verdict = Verdict(record.name, corrections=MatchEvent.objects.filter(match=match).exclude(action="add").count())
    found = {(row.source_id, row.event_id): row for row in rows}
    for told in record.events:
        _judge_event(verdict, told, found.pop((refs[told["source_id"]].source_id, told["event_id"]), None))
    verdict.wrong += len(found)
    for row in found.values():
        verdict.tell(f"{row.event_id} was never told")
    _judge_served(verdict, match.pk)
    for name, value in record.match["payload"].items():
        if match.payload.get(name) != value:
            verdict.tell(f"{name} is {match.payload.get(name)}, not {value}")
    return verdict


def _judge_event(verdict: Verdict, told: Mapping[str, Any], row: MatchEvent | None) -> None:
    verdict.expected += 1
    if row is None:
        verdict.missing += 1
        verdict.tell(f"{told['event_id']} is missing")
        return
    verdict.present += 1
    differing = [name for name in COMPARED if getattr(row, name) != told[name]]
    if (row.action == RETRACT) != (told["action"] == RETRACT):
        differing.append("action")
    if differing:
        verdict.wrong += 1
        verdict.tell(f"{told['event_id']}: {', '.join(differing)} differ")


def _judge_served(verdict: Verdict, match_id: int) -> None:
    """A consumer who follows the feed has each happening once."""
    served = MatchEvent.objects.filter(match=match_id, is_served=True).exclude(slot="")
    standing: dict[str, set[str]] = {}
    for row in served.order_by("pk"):
        ids = standing.setdefault(row.slot, set())
        if row.action == RETRACT:
            ids.discard(row.known_as)
        else:
            ids.add(row.known_as)
    verdict.doubled += sum(len(ids) - 1 for ids in standing.values() if ids)
