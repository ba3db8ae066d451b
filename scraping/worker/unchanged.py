"""Writes readings that equal the stored state, which most do, together by a few short statements.

Only times and counters change, so nothing is reconciled and no payload is loaded. A reading that needs more (a breaker
that counts failures, errors to resolve, another source with a newer state) goes to `ingest.apply`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, Min, OuterRef, QuerySet, Subquery
from django.utils import timezone

from scraping.journal import Claim
from scraping.matches import poll_times, scrapers
from scraping.matches.poll_times import NextPoll
from scraping.matches.reconcile.choosing import STUCK_SECONDS
from scraping.models import Breaker, BreakerState, Match, MatchLifecycle, MatchRef, ScraperStatus
from scraping.payloads import Payload, Status
from scraping.policies.interval import Pace
from scraping.policies.milestones import UNANNOUNCED, is_unannounced_milestone
from scraping.recovery import breakers
from scraping.signals import match_updated
from victoryline.lib import bulk_sql
from victoryline.lib.crash import crash_point

SAME_AGE = timedelta(seconds=10)  # reconcile does not prefer one of two sources whose readings are this close
_COUNT_READS = bulk_sql.with_columns(
    Match,
    """UPDATE {table} SET {total_scrapes} = {total_scrapes} + v.column3, {last_scraper_update} =
         CASE WHEN {last_scraper_update} > v.column2 THEN {last_scraper_update} ELSE v.column2 END
       FROM (VALUES {{rows}}) AS v
       WHERE {id} = v.column1 AND {lifecycle} = %s AND {status} = %s AND {scraper_status} = %s
         AND {failing_since} IS NULL""",
)


class RowsChangedError(Exception):
    """The rows have changed since the reading began: the readings must be written one by one."""


@dataclass(frozen=True)
class UnchangedReading:
    claim: Claim
    ref: MatchRef  # as loaded before the reading
    payload: Payload
    next_poll: NextPoll


def for_polling(ref_ids: Sequence[int]) -> QuerySet[MatchRef]:
    """Returns refs with source, match and breakers, without payloads, and with the ages of other sources."""
    others = MatchRef.objects.filter(match=OuterRef("match")).exclude(pk=OuterRef("pk"))
    oldest = others.order_by().values("match").annotate(oldest=Min("captured_at")).values("oldest")
    return (
        MatchRef.objects.filter(pk__in=ref_ids)
        .select_related("source__breaker", "match", "breaker")
        .defer("payload", "match__payload", "match__provenance")
        .annotate(has_other_sources=Exists(others), oldest_other=Subquery(oldest))
    )


def is_unchanged(claim: Claim, ref: MatchRef, payload: Payload, last: Payload | None, *, mode: str) -> bool:
    """Returns whether the payload equals the stored one, of a match and a source without any trouble.

    So many unchanged polls that an innings or the match may have ended are left to `ingest`.
    """
    polls = ref.unchanged_polls + 1
    return (
        last is not None
        and ref.captured_at == last.captured_at
        and not ref.has_overtaken(payload.captured_at)
        and claim.attempt == 1
        and mode == ref.read_mode
        and not ref.lacks_events
        and _is_healthy(ref)
        and _keeps_source_order(ref, payload.captured_at)
        and payload.state == last.state
        and payload.events == last.events
        and payload.integrity == last.integrity
        and payload.events_are_complete == last.events_are_complete
        and not (polls in UNANNOUNCED and is_unannounced_milestone(payload.normalized(), unchanged_polls=polls))
    )


def _is_healthy(ref: MatchRef) -> bool:
    match: Match = ref.match
    of_ref: Breaker | None = getattr(ref, "breaker", None)
    of_source: Breaker | None = getattr(ref.source, "breaker", None)
    return (
        match.lifecycle == MatchLifecycle.ACTIVE
        and match.status == Status.LIVE
        and match.scraper_status == ScraperStatus.ACTIVE
        and match.failing_since is None
        and not ref.suspect_checksum
        and ref.slowed_until is None  # ingest clears it after errors
        and of_ref is not None
        and of_ref.state == BreakerState.CLOSED
        and of_ref.failure_count == 0
        and (of_source is None or (of_source.state == BreakerState.CLOSED and of_source.failure_count == 0))
    )


def _keeps_source_order(ref: MatchRef, captured_at: datetime) -> bool:
    """Returns whether the age of this reading leaves the order in which reconcile prefers the sources unchanged."""
    if not getattr(ref, "has_other_sources", True):
        return True
    oldest: datetime | None = getattr(ref, "oldest_other", None)
    if ref.captured_at is None or not hasattr(ref, "oldest_other"):
        return False
    if oldest is None:  # no other source was ever read
        return True
    changed_at: datetime | None = ref.match.last_changed_at
    if changed_at is None or (captured_at - changed_at).total_seconds() >= STUCK_SECONDS:  # one of them may be stuck
        return False
    return captured_at - min(oldest, ref.captured_at) <= SAME_AGE


def plan(claim: Claim, ref: MatchRef, payload: Payload, *, pace: Pace, now: datetime) -> UnchangedReading:
    state = payload.normalized() if poll_times.plan_needs_score(ref.unchanged_polls + 1, pace) else None
    planned = poll_times.after_reading(ref, is_changed=False, pace=pace, now=now, state=state)
    return UnchangedReading(claim, ref, payload, planned)


def write(readings: Sequence[UnchangedReading], *, now: datetime) -> dict[int, UUID]:
    """Runs inside the transaction that ends the tasks. Raises RowsChangedError if a row has changed.

    Returns the ids of the scrapers by ref.
    """
    match_ids = {one.ref.match_id for one in readings}
    if connection.features.has_select_for_update:  # in the order of ids and first, as every writer of matches does
        list(Match.objects.select_for_update().filter(pk__in=match_ids).order_by("pk").values_list("pk", flat=True))
    crash_point("ingest.locked")
    _expect(len(match_ids), _update_matches(readings))
    crash_point("ingest.match")
    polls = [(one.ref, one.payload.captured_at, one.next_poll) for one in readings]
    _expect(len(readings), poll_times.write_unchanged(polls))
    crash_point("ingest.ref")
    written_at = timezone.now()
    updates = {
        one.ref.pk: (
            max(0, round((written_at - one.payload.captured_at).total_seconds() * 1000)),
            one.next_poll.seconds,
        )
        for one in readings
    }
    counted = scrapers.count_updates(updates, worker_id=readings[0].claim.worker_id, now=now)
    _expect(len(readings), len(counted))
    crash_point("ingest.scraper")
    _expect(len(readings), breakers.count_success_of_closed([one.ref.pk for one in readings]))
    transaction.on_commit(lambda: _send_updates(readings))
    return counted


def _expect(wanted: int, found: int) -> None:
    if found != wanted:
        raise RowsChangedError(f"{wanted - found} of {wanted} rows have changed")


def _update_matches(readings: Sequence[UnchangedReading]) -> int:
    read_at: dict[int, list[datetime]] = {}
    for one in readings:
        read_at.setdefault(one.ref.match_id, []).append(one.payload.captured_at)
    rows = [(match_id, max(moments), len(moments)) for match_id, moments in read_at.items()]
    return bulk_sql.execute_rows(
        _COUNT_READS,
        rows,
        after=(MatchLifecycle.ACTIVE.value, Status.LIVE.value, ScraperStatus.ACTIVE.value),
    )


def _send_updates(readings: Sequence[UnchangedReading]) -> None:
    for one in readings:
        ref, match = one.ref, one.ref.match
        ref.captured_at = one.payload.captured_at
        poll_times.set_next_poll(ref, one.next_poll.at)
        ref.polling_interval_seconds = one.next_poll.seconds
        match.last_scraper_update = max(one.payload.captured_at, match.last_scraper_update or one.payload.captured_at)
        match_updated.send_robust(sender=Match, match_id=match.pk, sequence=match.sequence, is_changed=False, ref=ref)
