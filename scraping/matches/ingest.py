"""Writes a validated payload: match, snapshot, events, next poll time, in the caller's transaction.

That transaction is the one that finishes the task (`journal.finishing`): all of it is written, or none of it.
`late_updates` and `pairing.merging` write the same tables for updates that are no readings, with the functions of this
module.

Guards against older data over newer: readings of one ref may be written in another order than they were made (a poll
beside a read of the whole match, the spool after an outage). Their capture times decide, under the lock of the match.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from scraping.journal import error_log
from scraping.matches import conflicts, events, importance, lifecycle, poll_times, scrapers, validate
from scraping.matches.events import EventChanges
from scraping.matches.reconcile.choosing import reconcile
from scraping.matches.reconcile.states import Reconciled, SourceView, delta, has_play_changed, is_crossed
from scraping.models import Match, MatchRef, Snapshot, TeamAlias
from scraping.names import Aliases
from scraping.payloads import Payload, checksum_of
from scraping.policies.interval import Pace
from scraping.policies.milestones import is_milestone, is_unannounced_milestone
from scraping.signals import match_updated
from scraping.sources import ADAPTERS
from victoryline.lib.crash import crash_point

logger = logging.getLogger(__name__)

MAX_LATENCY_MS = 2**31 - 1  # the limit of the column


@dataclass(frozen=True)
class Attempt:
    worker_id: str
    captured_at: datetime
    had_failures: bool
    now: datetime
    is_replayed: bool = False  # read while the database was unreachable
    mode: str = ""  # the read mode, where it is known
    mode_reason: str = ""
    data_source: str = "scraper"  # "manual": it was not read but sent to us
    clock: Callable[[], datetime] | None = None  # for the time of the write, where that matters; else it is `now`

    def written_at(self) -> datetime:
        """Returns the time of the write: reads as of a time must not find a state that was not served yet.

        `now` was read before the transaction, which may have waited for locks; called as late as possible.
        """
        return self.now if self.clock is None else max(self.now, self.clock())

    def latency_ms(self) -> int:
        """Returns the time from the reading to this moment; called as late as possible before the commit."""
        latency = round((timezone.now() - self.captured_at).total_seconds() * 1000)
        return min(max(0, latency), MAX_LATENCY_MS)


@dataclass(frozen=True)
class IngestResult:
    sequence: int
    is_changed: bool
    events: EventChanges
    is_taken: bool = True  # False: the state was not stored: overtaken, or a lower score that waits for confirmation
    is_overtaken: bool = False  # a newer reading of this source was stored before
    scraper_id: uuid.UUID | None = None
    is_milestone: bool = False  # the next innings has begun, or a break, or the end is overdue


def apply(
    payload: Payload, *, ref_id: int, pace: Pace, attempt: Attempt, known: MatchRef | None = None
) -> IngestResult:
    """Writes one payload of one source into its match. `known`: the ref as it was when the reading began."""
    ref = lock_ref(ref_id, match_id=known.match_id if known else None)
    crash_point("ingest.locked")
    if ref.has_overtaken(payload.captured_at):
        return _add_overtaken(ref, payload, pace, attempt)
    match = ref.match
    match_before, ref_before = dict(vars(match)), dict(vars(ref))
    others = other_refs(ref)
    if not validate.accept(ref, payload, others, now=attempt.now):
        return _poll_again_soon(ref, pace, attempt.now)
    aliases = TeamAlias.objects.names(match.sport) if others else {}
    if others and match.payload and (crossed := is_crossed(ref.payload, match.payload, aliases)) is not None:
        ref.is_crossed = crossed  # it names the sides in the other order than the match
    scrapers.note_read_mode(ref, attempt.mode, attempt.mode_reason, now=attempt.now)
    was_failing = attempt.had_failures or match.failing_since is not None
    changes = _store_events(ref, payload, others, attempt.now)
    crash_point("ingest.events")
    reconciled = _reconciled(match, ref, others, aliases, was=ref_before["payload"], now=attempt.now)
    match.total_scrapes += 1
    is_changed = update_state(match, reconciled, has_new_events=changes.served > 0, now=attempt.now)
    lifecycle.after_reading(match, now=attempt.now, is_read=not ref.source.is_pushed)
    # A change at a lighter source may change nothing that is served, but it is activity.
    is_active = is_changed or ref_before["payload"] != ref.payload
    planned = poll_times.after_reading(ref, is_changed=is_active, pace=pace, now=attempt.now, state=ref.payload)
    planned.write_to(ref)
    latency_ms = 0 if attempt.is_replayed else attempt.latency_ms()  # an outage is not the latency of an update
    scraper_id, was_healthy = scrapers.count_update(
        ref, worker_id=attempt.worker_id, latency_ms=latency_ms, now=attempt.now
    )
    crash_point("ingest.scraper")
    if is_changed:
        write_snapshot(ref, scraper_id, attempt, before=match_before["payload"])
    crash_point("ingest.snapshot")
    if was_failing or not was_healthy:
        error_log.resolve(ref, now=attempt.now)
    if not ref.lacks_events:  # the age of the match covers its events
        # Two sources' readings may be written in another order than they were made.
        match.last_scraper_update = max(payload.captured_at, match.last_scraper_update or payload.captured_at)
    _save_changed(match, match_before)
    crash_point("ingest.match")
    _save_changed(ref, ref_before)
    crash_point("ingest.ref")
    announce_after_commit(ref, is_changed=is_changed)
    if is_changed:
        has_milestone = is_milestone(match_before["payload"], match.payload)
    else:
        has_milestone = is_unannounced_milestone(ref.payload, unchanged_polls=ref.unchanged_polls)
    has_milestone = has_milestone and pace.detects_phases
    return IngestResult(match.sequence, is_changed, changes, scraper_id=scraper_id, is_milestone=has_milestone)


def lock_ref(ref_id: int, *, match_id: int | None = None) -> MatchRef:
    """Returns the ref with its match, locked: two sources of one match are written one after the other."""
    # On SQLite the transaction itself (IMMEDIATE) is the lock.
    if match_id is None:
        match_id = MatchRef.objects.values_list("match_id", flat=True).get(pk=ref_id)
    match = Match.objects.select_for_update().get(pk=match_id)
    others = MatchRef.objects.filter(match_id=OuterRef("match_id")).exclude(pk=ref_id).exclude(captured_at=None)
    ref = MatchRef.objects.select_related("source").annotate(has_other_sources=Exists(others)).get(pk=ref_id)
    if ref.match_id != match_id:  # merged with another match since it was read
        return lock_ref(ref_id)
    ref.match = match
    return ref


def other_refs(ref: MatchRef) -> list[MatchRef]:
    """Returns the refs of the match at its other sources that have been read, locked with their match."""
    if not getattr(ref, "has_other_sources", True):
        return []
    refs = MatchRef.objects.filter(match_id=ref.match_id).exclude(pk=ref.pk).exclude(captured_at=None)
    return list(refs.select_related("source"))


def _add_overtaken(ref: MatchRef, payload: Payload, pace: Pace, attempt: Attempt) -> IngestResult:
    """Stores those events of an overtaken reading that are unknown, and no other part of it."""
    # Where the source lists all events and the newer list had no gap, an event that is not in it was retracted.
    is_retracted = payload.events_are_complete and not ref.has_gap
    unseen = [] if is_retracted else events.unseen(ref, payload.events)
    changes = events.store(ref, unseen, are_complete=False, now=attempt.now, others=other_refs(ref))
    if changes:
        events.advance(ref, payload.events)
    if ref.next_poll_at is not None and ref.next_poll_at <= attempt.now:  # else it would be polled without a pause
        _set_next_poll_soon(ref, pace, attempt.now)
    ref.save(update_fields=(*events.MARKS, "next_poll_at"))
    if changes.served:
        publish_events(ref, attempt)
    return IngestResult(ref.match.sequence, changes.served > 0, changes, is_taken=False, is_overtaken=True)


def publish_events(ref: MatchRef, attempt: Attempt) -> None:
    """Writes a snapshot with a new sequence and the same state, for events that came without a state."""
    match, scraper = ref.match, scrapers.active(ref)
    match.sequence, match.last_changed_at = match.sequence + 1, attempt.now
    match.save(update_fields=("sequence", "last_changed_at"))
    crash_point("fill.match")
    write_snapshot(ref, scraper.pk if scraper else None, attempt, before=match.payload)
    announce_after_commit(ref, is_changed=True)


def _set_next_poll_soon(ref: MatchRef, pace: Pace, now: datetime) -> None:
    seconds = max(pace.baseline_seconds / 2, ref.source.min_interval_seconds)
    poll_times.set_next_poll(ref, now + timedelta(seconds=seconds))


def _poll_again_soon(ref: MatchRef, pace: Pace, now: datetime) -> IngestResult:
    _set_next_poll_soon(ref, pace, now)
    ref.save(update_fields=("suspect_checksum", "next_poll_at"))
    ref.match.save(update_fields=("provisional",))
    return IngestResult(ref.match.sequence, False, EventChanges(), is_taken=False)


def _store_events(ref: MatchRef, payload: Payload, others: Sequence[MatchRef], now: datetime) -> EventChanges:
    _note_event_list(ref, payload)
    if payload.lacks_events and not payload.events:
        return EventChanges()
    checksum = events.checksum(payload.events)
    if checksum == ref.events_checksum:
        return EventChanges()
    ref.events_checksum = checksum
    changes = events.store(ref, payload.events, are_complete=payload.events_are_complete, now=now, others=others)
    events.advance(ref, payload.events)
    return changes


def _note_event_list(ref: MatchRef, payload: Payload) -> None:
    """Sets `lacks_events`: a list that was there before could not be read, as a document of its own."""
    adapter = ADAPTERS.get(ref.source.adapter_key)
    has_list = bool(adapter and adapter.events_endpoint and ref.events_checksum)
    is_lacking = has_list and payload.lacks_events and not payload.is_partial_state
    if is_lacking != ref.lacks_events:
        ref.lacks_events = is_lacking
        logger.log(
            logging.WARNING if is_lacking else logging.INFO,
            "The events of %s could not be read: its state is updated, its age counts from the last complete reading"
            if is_lacking
            else "The events of %s can be read again",
            ref.key,
            extra={"action": "events_missing" if is_lacking else "events_returned", "match_id": ref.key},
        )


def _reconciled(
    match: Match, ref: MatchRef, others: Sequence[MatchRef], aliases: Aliases, *, was: dict[str, Any], now: datetime
) -> Reconciled:
    """Reconciles the enabled sources, and notes conflicts. An end of the match at a disabled one would count for ever.

    `was`: the state of this source before. Of the others it is known that none has moved since the match changed last.
    """
    refs = (ref, *(other for other in others if other.source.is_enabled))
    still = (now - match.last_changed_at).total_seconds() if match.last_changed_at else None
    views = source_views(refs, unmoved_seconds=still, moving=ref if has_play_changed(was, ref.payload) else None)
    if not others:
        return reconcile(views)
    reconciled = reconcile(views, known=match.payload, aliases=aliases)
    match.provenance = reconciled.provenance  # may change without a change of the state
    conflicts.note(match.pk, reconciled.conflicts, now=now)
    return reconciled


def source_views(
    refs: Sequence[MatchRef], *, unmoved_seconds: float | None = None, moving: MatchRef | None = None
) -> list[SourceView]:
    """Returns the states of these sources, of those that have been read, for `reconcile`.

    `unmoved_seconds`: for how long the play has not changed at any of them except `moving`.
    """
    return [
        SourceView(
            ref.source.key,
            ref.source.precedence_weight,
            ref.captured_at,
            ref.payload,
            is_crossed=ref.is_crossed,
            unmoved_seconds=None if ref is moving else unmoved_seconds,
        )
        for ref in refs
        if ref.captured_at is not None
    ]


def update_state(match: Match, reconciled: Reconciled, *, has_new_events: bool, now: datetime) -> bool:
    """Sets the reconciled state on the match (the caller saves); returns False if consumers see no difference."""
    state, checksum = reconciled.state, checksum_of(reconciled.state)
    if checksum == match.checksum and not has_new_events:
        return False
    names_before = _names_of(match)
    match.sequence += 1
    match.last_changed_at = now
    match.checksum, match.provenance, match.payload = checksum, reconciled.provenance, state
    match.sport, match.title = state["sport"], state["title"]
    match.status, match.phase = state["status"], state["phase"]
    match.team_a, match.team_b = state["teams"]["team_a"]["name"], state["teams"]["team_b"]["name"]
    match.series = str(state["metadata"].get("series") or "")[:200]
    if state["start_time"]:
        match.start_time = datetime.fromisoformat(state["start_time"])
    if _names_of(match) != names_before:
        importance.apply_rules(match)
    return True


def _names_of(match: Match) -> tuple[Any, ...]:
    """Returns the fields that the rules of importance depend on."""
    return match.sport, match.title, match.series, match.team_a, match.team_b, match.payload.get("metadata")


def write_snapshot(ref: MatchRef, scraper_id: uuid.UUID | None, attempt: Attempt, *, before: dict[str, Any]) -> None:
    """Writes the present state of the ref's match as a snapshot. `before`: the payload of the snapshot before it."""
    match = ref.match
    Snapshot.objects.create(
        match=match,
        sequence=match.sequence,
        checksum=match.checksum,
        payload=match.payload,
        delta=delta(before, match.payload),
        provenance=match.provenance,
        captured_at=ref.captured_at or attempt.now,
        created_at=attempt.written_at(),
        task_finished_at=attempt.now,
        scraper_id=scraper_id,
        update_latency_ms=attempt.latency_ms(),
        data_source=attempt.data_source,
    )
    match.data_source = attempt.data_source  # type: ignore[attr-defined]  # as `queries` annotate it


def _save_changed(row: Match | MatchRef, before: Mapping[str, Any]) -> None:
    """Saves only the columns that differ: most of a match does not change."""
    columns = row._meta.concrete_fields  # noqa: SLF001 - documented under this name
    row.save(update_fields=[one.name for one in columns if getattr(row, one.attname) != before[one.attname]])


def announce_after_commit(ref: MatchRef, *, is_changed: bool) -> None:
    news = {"match_id": ref.match_id, "sequence": ref.match.sequence, "is_changed": is_changed, "ref": ref}
    transaction.on_commit(partial(match_updated.send_robust, sender=Match, **news))
