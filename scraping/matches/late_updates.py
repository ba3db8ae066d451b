"""Updates of a match that are no readings of its state: events that fill a gap, a removed match.

Each function runs inside the caller's transaction, like `ingest.apply`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from scraping.matches import events, ingest, lifecycle, poll_times, scrapers
from scraping.matches.events import EventChanges
from scraping.matches.ingest import Attempt
from scraping.models import MatchRef, ScrapeTask, TaskState
from scraping.payloads import Event, Integrity, Lineups, MatchState, Payload, Phase, Resource, checksum_of
from scraping.policies.interval import COMPLETED_SECONDS, Pace
from victoryline.lib.crash import crash_point

# After so many reads without a missing event in this time, the source counts as not having it.
EMPTY_READS, EMPTY_READS_WITHIN = 5, timedelta(minutes=10)


def add_toss(found: Lineups, *, ref_id: int, pace: Pace, attempt: Attempt) -> None:
    """Writes the toss that a page of the line-ups shows and the polls of this source have not had."""
    ref = MatchRef.objects.get(pk=ref_id)
    if found.toss is None or not ref.payload or ref.payload.get("toss") or ref.captured_at is None:
        return
    state = MatchState.model_validate({**ref.payload, "toss": found.toss})
    last = Payload(
        source=found.source,
        payload_schema=ref.payload_schema,
        captured_at=ref.captured_at,  # the rest is as old as it was
        source_event_id=found.source_event_id,
        state=state,
        is_partial_state=True,
        integrity=Integrity(missing_fields=("events",)),
    )
    ingest.apply(last, ref_id=ref_id, pace=pace, attempt=attempt)
    MatchRef.objects.filter(pk=ref_id).update(integrity=ref.integrity)


def add_events(found: Sequence[Event], *, ref_id: int, now: datetime) -> EventChanges:
    """Writes events without a state: older pages of the source's list, read to fill a gap.

    If the source has listed nothing that fills it for a while, the gap is closed without the missing events. Where its
    lists omit known events, the gap is opened again as soon as one omits none.
    """
    ref = ingest.lock_ref(ref_id)
    changes = events.store(ref, found, are_complete=False, now=now, others=ingest.other_refs(ref))
    events.advance(ref, found)
    reads = ScrapeTask.objects.filter(  # how far apart: `scheduler.other_tasks`
        ref=ref, resource=Resource.COMMENTARY, state=TaskState.SUCCESS, finished_at__gt=now - EMPTY_READS_WITHIN
    )
    if not changes.added and reads.count() >= EMPTY_READS:
        if ref.events_doubted_from is None and (not ref.has_gap or events.omits_known(ref, found)):
            ref.events_doubted_from = ref.events_through
        if ref.has_gap:
            listed = (event.ordinal for event in found if event.ordinal is not None)
            ref.events_through = max(ref.events_through, max(listed, default=ref.events_seen))
    ref.save(update_fields=events.MARKS)
    crash_point("fill.ref")
    if changes.served:
        ingest.publish_events(ref, Attempt("", now, had_failures=False, now=now))
    return changes


def close_removed(ref_id: int, *, now: datetime) -> None:
    """Ends a match that its source no longer has: the known state becomes final, unless another source has it."""
    ref = ingest.lock_ref(ref_id)
    match = ref.match
    before = match.status
    ref.gone_at, ref.suspect_checksum = ref.gone_at or now, ""
    poll_times.set_next_poll(ref, now + timedelta(seconds=COMPLETED_SECONDS))
    if match.provisional.get("source") == ref.source.key:  # there will be no confirmation
        match.provisional = {}
        match.save(update_fields=("provisional",))
    elsewhere = MatchRef.objects.filter(match=match, gone_at=None, is_watched=True, source__is_enabled=True)
    if elsewhere.exclude(pk=ref.pk).exists():
        ref.save(update_fields=("gone_at", "next_poll_at", "suspect_checksum"))
        scrapers.stop(ref, reason="the source no longer has the match, another one does", now=now)
        return
    lifecycle.complete_gone(match, now=now)
    crash_point("gone.completed")
    if match.payload and match.status != before:
        last, match.payload = match.payload, {**match.payload, "status": match.status, "phase": Phase.FINISHED.value}
        match.phase, match.checksum = Phase.FINISHED.value, checksum_of(match.payload)
        match.sequence, match.last_changed_at = match.sequence + 1, now
        match.save(update_fields=("payload", "phase", "checksum", "sequence", "last_changed_at"))
        attempt = Attempt("", ref.captured_at or now, had_failures=False, now=now)
        ingest.write_snapshot(ref, None, attempt, before=last)
    ref.save(update_fields=("next_poll_at", "gone_at", "suspect_checksum"))
    if ref.captured_at is None and not match.team_a:  # an address that was given to us, of no match
        poll_times.stop_watching(MatchRef.objects.filter(pk=ref.pk))
    crash_point("gone.closed")
    ingest.announce_after_commit(ref, is_changed=match.status != before)
