"""What was read becomes what is served. Sole writer of matches, references, snapshots and events.

Runs inside the transaction that finishes the task (`journal.finishing`): all of it is written, or none of it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from scraping.journal import error_log
from scraping.matches import (
    conflicts,
    events,
    importance,
    lifecycle,
    pairing,
    poll_times,
    restart_check,
    score_regressions,
    scrapers,
)
from scraping.matches.events import EventChanges
from scraping.matches.reconcile import Reconciled, delta, reconcile, tells_other_play
from scraping.models import Match, MatchLifecycle, MatchRef, ScrapeTask, Snapshot, TaskState
from scraping.names import NO_ALIASES, Aliases
from scraping.payloads import Event, Payload, Phase, Resource, Status, checksum_of
from scraping.policies.interval import COMPLETED_SECONDS, Pace
from scraping.policies.milestones import is_milestone, is_unannounced_milestone
from scraping.signals import match_updated, read_mode_changed
from victoryline.lib.crash import crash_point

logger = logging.getLogger(__name__)

MAX_LATENCY_MS = 2**31 - 1  # what the column holds
VAIN_LOOKS, VAIN_LOOKS_WITHIN = 5, timedelta(minutes=3)  # after which a source is believed to lack what it numbered
# fmt: off
SCRAPED_COLUMNS = (
    "sport", "title", "status", "phase", "start_time", "team_a", "team_b", "series", "sequence", "checksum", "payload",
    "provenance", "last_scraper_update", "last_changed_at", "completed_at", "lifecycle", "priority", "pause_until",
    "pause_reason", "scraper_status", "consecutive_failure_count", "failing_since", "total_scrapes",
    "provisional", "importance",
)
READ_COLUMNS = (
    "payload", "captured_at", "suspect_checksum", "events_checksum", "events_seen", "events_through", "read_mode",
    "read_mode_reason", "read_mode_since", "is_crossed", "gone_at", *poll_times.COLUMNS,
)
# fmt: on


@dataclass(frozen=True)
class Attempt:
    """The attempt that read the payload, as far as its match remembers it."""

    worker_id: str
    captured_at: datetime
    had_failures: bool
    now: datetime
    is_replayed: bool = False  # read while the database was away
    mode: str = ""  # how it was read, where that is known
    mode_reason: str = ""
    data_source: str = "scraper"  # "manual": nobody read it, it was sent to us

    def latency_ms(self) -> int:
        """From the reading to this moment; asked as late as possible, for it is written before the commit."""
        latency = round((timezone.now() - self.captured_at).total_seconds() * 1000)
        return min(max(0, latency), MAX_LATENCY_MS)


@dataclass(frozen=True)
class Ingested:
    """What a reading did to its match."""

    match_id: int
    sequence: int
    is_changed: bool
    events: EventChanges
    next_poll_at: datetime
    is_taken: bool = True  # False: a score that went down waits to be read again
    is_milestone: bool = False  # the next innings has begun, or a break, or the end is overdue


def apply(payload: Payload, *, ref_id: int, pace: Pace, attempt: Attempt, known: MatchRef | None = None) -> Ingested:
    """Write one payload of one source into its match. `known`: the ref as it was when the reading began."""
    ref = _locked(ref_id, match_id=known.match_id if known else None)
    crash_point("ingest.locked")
    match = ref.match
    before = _columns_of(match, SCRAPED_COLUMNS), _columns_of(ref, READ_COLUMNS)
    others = _other_refs(ref)
    aliases = pairing.aliases_of(match.sport) if others else NO_ALIASES
    if not score_regressions.take(ref, payload, others, now=attempt.now):
        return _ask_again_soon(ref, pace, attempt.now)
    if others:
        score_regressions.note_sides(ref, aliases)
    _note_mode(ref, attempt)
    was_failing = attempt.had_failures or match.failing_since is not None
    changes = _store_events(ref, payload, others, attempt.now)
    crash_point("ingest.events")
    reconciled = _reconciled(match, ref, others, aliases, was=before[1]["payload"], now=attempt.now)
    if others:
        match.provenance = reconciled.provenance  # also where nothing changes but what the others say
        conflicts.note(match.pk, reconciled.conflicts, now=attempt.now)
    is_changed = _renew(match, reconciled, has_new_events=changes.served > 0, now=attempt.now)
    lifecycle.after_reading(match, status=Status(match.status), now=attempt.now, is_read=not ref.source.is_pushed)
    # What a lighter source tells changes nothing that is served, but it moves.
    is_news = is_changed or before[1]["payload"] != ref.payload
    planned = poll_times.after_reading(ref, match, is_changed=is_news, pace=pace, now=attempt.now, state=ref.payload)
    planned.write_to(ref)
    scraper = _keep_watch(ref, match, attempt)
    crash_point("ingest.scraper")
    if is_changed:
        _write_snapshot(match, ref, scraper.scraper_id, attempt, before=before[0]["payload"])
    crash_point("ingest.snapshot")
    if was_failing or not scraper.was_well:
        error_log.resolve(ref, now=attempt.now)
    _save(match, ref, payload.captured_at, before)
    crash_point("ingest.ref")
    _announce_after_commit(match, is_changed, ref)
    turned = pace.detects_phases and _has_turned(ref, before[0]["payload"], is_changed=is_changed)
    return Ingested(match.pk, match.sequence, is_changed, changes, ref.next_poll_at or attempt.now, is_milestone=turned)


def replay(payload: Payload, *, ref_id: int, pace: Pace, attempt: Attempt) -> EventChanges:
    """Write a payload that had to wait. Where newer data has come meanwhile, only the events that nobody else saw."""
    ref = _locked(ref_id)
    if ref.captured_at is None or payload.captured_at > ref.captured_at:
        return apply(payload, ref_id=ref_id, pace=pace, attempt=attempt).events
    match = ref.match
    # Where the source lists everything, the newer list told all: what is not in it was taken back.
    unseen = [] if payload.events_are_complete else events.unseen(ref, payload.events)
    changes = events.store(
        ref, unseen, are_complete=False, sequence=match.sequence + 1, now=attempt.now, others=_other_refs(ref)
    )
    if changes:
        events.advance(ref, payload.events)
        ref.save(update_fields=("events_seen", "events_through"))
    if changes.served:
        match.sequence += 1
        match.last_changed_at = attempt.now
        match.save(update_fields=("sequence", "last_changed_at"))
        _write_snapshot(match, ref, _scraper_id(ref), attempt, before=match.payload)
        _announce_after_commit(match, is_changed=True, ref=ref)
    return changes


def add_events(found: Sequence[Event], *, ref_id: int, now: datetime) -> EventChanges:
    """Write events without a state: older pages of the source's list, read to fill a gap.

    Where the source has had nothing that fills it for a while, what is missing stays missing, and is not asked for
    again (but with the whole match, at its next turn). Not at once: the source may be listing only half of what it has.
    """
    ref = _locked(ref_id)
    match = ref.match
    changes = events.store(
        ref, found, are_complete=False, sequence=match.sequence + 1, now=now, others=_other_refs(ref)
    )
    events.advance(ref, found)
    if ref.has_gap and not changes.added and _was_looked_at_often(ref, now):
        ref.events_through = max(ref.events_through, events.highest(found, default=ref.events_seen))
    ref.save(update_fields=("events_seen", "events_through"))
    crash_point("fill.ref")
    if changes.served:
        match.sequence += 1
        match.last_changed_at = now
        match.save(update_fields=("sequence", "last_changed_at"))
        crash_point("fill.match")
        attempt = Attempt("", now, had_failures=False, now=now)
        _write_snapshot(match, ref, _scraper_id(ref), attempt, before=match.payload)
        _announce_after_commit(match, is_changed=True, ref=ref)
    return changes


def _was_looked_at_often(ref: MatchRef, now: datetime) -> bool:
    """This look, which ends with the transaction, is the last of several. They are seconds apart: `scheduler.gaps`."""
    looks = ScrapeTask.objects.filter(
        ref=ref, resource=Resource.COMMENTARY, state=TaskState.SUCCESS, finished_at__gt=now - VAIN_LOOKS_WITHIN
    )
    return looks.count() >= VAIN_LOOKS


def close_gone(ref_id: int, *, now: datetime) -> None:
    """The source no longer has the match: what is known of it is final, and says so, unless another source has it."""
    ref = _locked(ref_id)
    match = ref.match
    before = match.status
    ref.gone_at, ref.suspect_checksum = ref.gone_at or now, ""
    poll_times.set_next_poll(ref, now + timedelta(seconds=COMPLETED_SECONDS))
    if match.provisional.get("source") == ref.source.key:  # nobody will confirm it any more
        match.provisional = {}
        match.save(update_fields=("provisional",))
    telling = MatchRef.objects.filter(match=match, gone_at=None, is_watched=True, source__is_enabled=True)
    if telling.exclude(pk=ref.pk).exists():
        ref.save(update_fields=("gone_at", "next_poll_at", "suspect_checksum"))
        scrapers.stop(ref, reason="the source no longer has the match, another one does", now=now)
        return
    lifecycle.complete_gone(match, now=now)
    crash_point("gone.completed")
    if match.payload and match.status != before:
        old, match.payload = match.payload, {**match.payload, "status": match.status, "phase": Phase.FINISHED.value}
        match.phase, match.checksum = Phase.FINISHED.value, checksum_of(match.payload)
        match.sequence, match.last_changed_at = match.sequence + 1, now
        match.save(update_fields=("payload", "phase", "checksum", "sequence", "last_changed_at"))
        attempt = Attempt("", ref.captured_at or now, had_failures=False, now=now)
        _write_snapshot(match, ref, None, attempt, before=old)
    ref.save(update_fields=("next_poll_at", "gone_at", "suspect_checksum"))
    crash_point("gone.closed")
    _announce_after_commit(match, is_changed=match.status != before, ref=ref)


def _locked(ref_id: int, *, match_id: int | None = None) -> MatchRef:
    """The ref with its match, locked: two sources of one match are written one after the other."""
    # On SQLite the transaction itself (IMMEDIATE) is the lock.
    if match_id is None:
        match_id = MatchRef.objects.values_list("match_id", flat=True).get(pk=ref_id)
    match = Match.objects.select_for_update().get(pk=match_id)
    others = MatchRef.objects.filter(match_id=OuterRef("match_id")).exclude(pk=ref_id).exclude(captured_at=None)
    ref = MatchRef.objects.select_related("source").annotate(is_told_elsewhere=Exists(others)).get(pk=ref_id)
    if ref.match_id != match_id:  # joined with another match since it was read
        return _locked(ref_id)
    ref.match = match
    return ref


def _other_refs(ref: MatchRef) -> list[MatchRef]:
    """The match at its other sources, those that have been read. `ref` is locked with its match, and so are they.

    Where there is none that costs no query; one that came while this reading was made is among them.
    """
    if not getattr(ref, "is_told_elsewhere", True):
        return []
    refs = MatchRef.objects.filter(match_id=ref.match_id).exclude(pk=ref.pk).exclude(captured_at=None)
    return list(refs.select_related("source"))


def _ask_again_soon(ref: MatchRef, pace: Pace, now: datetime) -> Ingested:
    at = now + timedelta(seconds=max(pace.baseline_seconds / 2, ref.source.min_interval_seconds))
    poll_times.set_next_poll(ref, at)
    ref.save(update_fields=("suspect_checksum", "next_poll_at"))
    ref.match.save(update_fields=("provisional",))
    return Ingested(ref.match_id, ref.match.sequence, False, EventChanges(), at, is_taken=False)


def _store_events(ref: MatchRef, payload: Payload, others: Sequence[MatchRef], now: datetime) -> EventChanges:
    found = payload.events
    checksum = events.checksum(found)
    if checksum == ref.events_checksum:
        return EventChanges()
    ref.events_checksum = checksum
    changes = events.store(
        ref,
        found,
        are_complete=payload.events_are_complete,
        sequence=ref.match.sequence + 1,
        now=now,
        others=others,
    )
    events.advance(ref, found)
    return changes


def _renew(match: Match, reconciled: Reconciled, *, has_new_events: bool, now: datetime) -> bool:
    """Make the match what all sources say together; True if anybody would see a difference."""
    checksum = checksum_of(reconciled.state)
    match.total_scrapes += 1
    if checksum == match.checksum and not has_new_events:
        return False
    match.sequence += 1
    match.last_changed_at = now
    match.checksum, match.provenance = checksum, reconciled.provenance
    _copy_columns(match, reconciled.state)
    return True


def _reconciled(
    match: Match, ref: MatchRef, others: Sequence[MatchRef], aliases: Aliases, *, was: dict[str, Any], now: datetime
) -> Reconciled:
    """What a source said that was switched off since counts no more: an end of the match would count for ever.

    `was`: what this source told before. Where it tells another play now it moves; of the others it is known only that
    none of them has moved since the match did.
    """
    refs = (ref, *(other for other in others if other.source.is_enabled))
    still = (now - match.last_changed_at).total_seconds() if match.last_changed_at else None
    views = score_regressions.views_of(
        refs, unmoved_seconds=still, moving=ref if tells_other_play(was, ref.payload) else None
    )
    return reconcile(views, known=match.payload, aliases=aliases)


def _has_turned(ref: MatchRef, before: dict[str, Any], *, is_changed: bool) -> bool:
    """By what the match was before and is now, or by what does not move any more."""
    if is_changed:
        return is_milestone(before, ref.match.payload)
    return is_unannounced_milestone(ref.payload, unchanged_polls=ref.unchanged_polls)


def _copy_columns(match: Match, state: dict[str, Any]) -> None:
    """The fields that lists are searched and sorted by."""
    named = importance.of_match(match)
    match.payload = state
    match.sport, match.title = state["sport"], state["title"]
    match.status, match.phase = state["status"], state["phase"]
    match.team_a, match.team_b = state["teams"]["team_a"]["name"], state["teams"]["team_b"]["name"]
    match.series = str(state["metadata"].get("series") or "")[:200]
    if state["start_time"]:
        match.start_time = datetime.fromisoformat(state["start_time"])
    if importance.of_match(match) != named:
        importance.follow(match)


def _note_mode(ref: MatchRef, attempt: Attempt) -> None:
    """The way a match is read shows on its ref; a change of it is told once, with its reason."""
    if not attempt.mode or attempt.mode == ref.read_mode:
        return
    before, ref.read_mode = ref.read_mode, attempt.mode
    ref.read_mode_reason, ref.read_mode_since = attempt.mode_reason[:200], attempt.now
    changed = {"from": before, "to": attempt.mode, "reason": attempt.mode_reason, "source": ref.source.key}
    transaction.on_commit(
        partial(
            logger.info if before else logger.debug,
            "%s is read by %s now instead of %s%s",
            ref.key,
            attempt.mode,
            before or "not at all",
            f": {attempt.mode_reason}" if attempt.mode_reason else "",
            extra={"action": "read_mode_changed", "match_id": ref.key, **changed},
        )
    )
    if before:
        transaction.on_commit(partial(read_mode_changed.send_robust, sender=MatchRef, ref_id=ref.pk, **changed))


@dataclass(frozen=True)
class _Watch:
    """The scraper of a match that was just read, and whether it had nothing to be forgiven."""

    scraper_id: uuid.UUID | None
    was_well: bool


def _keep_watch(ref: MatchRef, match: Match, attempt: Attempt) -> _Watch:
    """A live match has a scraper, and its counters move; any other has none, nor has what is sent to us."""
    if ref.source.is_pushed:
        return _Watch(None, was_well=True)
    if match.lifecycle != MatchLifecycle.ACTIVE or match.status != Status.LIVE:
        scrapers.stop(ref, reason=f"the match is {match.status}", now=attempt.now)
        return _Watch(None, was_well=False)
    update = scrapers.Update(
        worker_id=attempt.worker_id,
        interval=ref.polling_interval_seconds,
        latency_ms=0 if attempt.is_replayed else attempt.latency_ms(),  # an outage is not the speed of an update
        now=attempt.now,
    )
    scraper_id = scrapers.count_updates({ref.pk: update}).get(ref.pk)
    if scraper_id is not None:
        return _Watch(scraper_id, was_well=True)
    scraper = scrapers.ensure_active(ref, now=attempt.now)
    if not scraper.total_updates:
        restart_check.verify(ref, match, scraper)
    scrapers.record_update(scraper.pk, update)
    return _Watch(scraper.pk, was_well=not scraper.error_count and bool(scraper.total_updates))


def _scraper_id(ref: MatchRef) -> uuid.UUID | None:
    scraper = scrapers.active(ref)
    return scraper.pk if scraper else None


def _write_snapshot(
    match: Match, ref: MatchRef, scraper_id: uuid.UUID | None, attempt: Attempt, *, before: dict[str, Any]
) -> None:
    """`before`: what was told of the match until now."""
    Snapshot.objects.create(
        match=match,
        sequence=match.sequence,
        checksum=match.checksum,
        payload=match.payload,
        delta=delta(before, match.payload, sequence_delta=1),
        provenance=match.provenance,
        captured_at=ref.captured_at or attempt.now,
        created_at=attempt.now,
        scraper_id=scraper_id,
        update_latency_ms=attempt.latency_ms(),
        data_source=attempt.data_source,
    )
    match.data_source = attempt.data_source  # type: ignore[attr-defined]  # as `queries` have it: it is told with the match


def _columns_of(row: Match | MatchRef, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _save(match: Match, ref: MatchRef, captured_at: datetime, before: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Only the columns that differ: most of a match stays as it was."""
    # Two sources' readings may be written in another order than they were made.
    match.last_scraper_update = max(captured_at, match.last_scraper_update or captured_at)
    for row, old in ((match, before[0]), (ref, before[1])):
        row.save(update_fields=[name for name, value in old.items() if getattr(row, name) != value])
        crash_point("ingest.match")


def _announce_after_commit(match: Match, is_changed: bool, ref: MatchRef) -> None:
    transaction.on_commit(
        partial(
            match_updated.send_robust,
            sender=Match,
            match_id=match.pk,
            sequence=match.sequence,
            is_changed=is_changed,
            ref=ref,
        )
    )
