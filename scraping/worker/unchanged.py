"""Readings that say what the last one said: most of them. Many are written together, with a few short statements.

Nothing but times and counters moves, so nothing is reconciled and no payload is loaded. Whatever else may have to be
done (a breaker that counts failures, errors to be resolved, another source's word) is left to `ingest.apply`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Exists, Min, OuterRef, QuerySet, Subquery
from django.utils import timezone

from scraping.journal import Claim
from scraping.matches import poll_times, scrapers
from scraping.matches.poll_times import NextPoll, UnchangedPoll
from scraping.matches.reconcile.stuck import STUCK_SECONDS
from scraping.models import Breaker, BreakerState, Match, MatchLifecycle, MatchRef, ScraperStatus
from scraping.payloads import Payload, Status
from scraping.policies.interval import Pace
from scraping.policies.milestones import is_unannounced_milestone, may_be_unannounced_milestone
from scraping.recovery import breakers
from scraping.signals import match_updated
from victoryline.lib import bulk_sql
from victoryline.lib.crash import crash_point

REMEMBERED = 2000
SIDE_BY_SIDE = timedelta(seconds=10)  # sources so close to each other count the same as a moment ago: see reconcile


class MovedOnError(Exception):
    """The rows are not as they were when the reading began: each is to be written by itself."""


class LastTold:
    """What this worker wrote last of each match; bounded, and shared by its task threads."""

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._limit = limit
        self._payloads: OrderedDict[int, Payload] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, ref_id: int) -> Payload | None:
        with self._lock:
            return self._payloads.get(ref_id)

    def put(self, ref_id: int, payload: Payload) -> None:
        with self._lock:
            self._payloads[ref_id] = payload
            self._payloads.move_to_end(ref_id)
            while len(self._payloads) > self._limit:
                self._payloads.popitem(last=False)

    def forget(self, ref_id: int) -> None:
        with self._lock:
            self._payloads.pop(ref_id, None)


@dataclass(frozen=True)
class Again:
    """A reading that brought nothing new, and when the next one is due."""

    claim: Claim
    ref: MatchRef  # as it was when the reading began
    payload: Payload
    next_poll: NextPoll

    @property
    def interval_seconds(self) -> float:
        return self.next_poll.seconds


def for_polling(ref_ids: Sequence[int]) -> QuerySet[MatchRef]:
    """Refs as a poll needs them: with the rows that decide about it, and without payloads."""
    others = MatchRef.objects.filter(match=OuterRef("match")).exclude(pk=OuterRef("pk"))
    oldest = others.order_by().values("match").annotate(oldest=Min("captured_at")).values("oldest")
    return (
        MatchRef.objects.filter(pk__in=ref_ids)
        .select_related("source__breaker", "match", "breaker")
        .defer("payload", "match__payload", "match__provenance")
        .annotate(has_other_sources=Exists(others), oldest_other=Subquery(oldest))
    )


def is_again(claim: Claim, ref: MatchRef, payload: Payload, last: Payload | None, *, mode: str) -> bool:
    """Is this the very thing that is stored, of a match and a source with which all is well?"""
    return (
        last is not None
        and ref.captured_at == last.captured_at
        and claim.attempt == 1
        and mode == ref.read_mode
        and _is_well(ref)
        and _counts_as_before(ref, payload.captured_at)
        and payload.state == last.state
        and payload.events == last.events
        and payload.integrity == last.integrity
        and payload.events_are_complete == last.events_are_complete
        and not _is_milestone(ref, payload)
    )


def _is_milestone(ref: MatchRef, payload: Payload) -> bool:
    """Has it said the same so often that something has to be done about it?"""
    number = ref.unchanged_polls + 1
    return may_be_unannounced_milestone(number) and is_unannounced_milestone(
        payload.normalized(), unchanged_polls=number
    )


def _is_well(ref: MatchRef) -> bool:
    match: Match = ref.match
    of_ref: Breaker | None = getattr(ref, "breaker", None)
    of_source: Breaker | None = getattr(ref.source, "breaker", None)
    return (
        match.lifecycle == MatchLifecycle.ACTIVE
        and match.status == Status.LIVE
        and match.scraper_status == ScraperStatus.ACTIVE
        and match.failing_since is None
        and not ref.suspect_checksum
        and ref.slowed_until is None  # what errors left behind is cleared by a whole reading
        and of_ref is not None
        and of_ref.state == BreakerState.CLOSED
        and of_ref.failure_count == 0
        and (of_source is None or (of_source.state == BreakerState.CLOSED and of_source.failure_count == 0))
    )


def _counts_as_before(ref: MatchRef, captured_at: datetime) -> bool:
    """Is no source heard so much later than another one that it would be believed more or less than before?"""
    if not getattr(ref, "has_other_sources", True):
        return True
    oldest: datetime | None = getattr(ref, "oldest_other", None)
    if ref.captured_at is None or not hasattr(ref, "oldest_other"):
        return False
    if oldest is None:  # no other one was ever read
        return True
    moved_at: datetime | None = ref.match.last_changed_at
    if moved_at is None or (captured_at - moved_at).total_seconds() >= STUCK_SECONDS:  # one of them may be left behind
        return False
    return captured_at - min(oldest, ref.captured_at) <= SIDE_BY_SIDE


def again(claim: Claim, ref: MatchRef, payload: Payload, *, pace: Pace, now: datetime) -> Again:
    state = payload.normalized() if poll_times.asks_for_score(ref.unchanged_polls + 1) else None
    planned = poll_times.after_reading(ref, ref.match, is_changed=False, pace=pace, now=now, state=state)
    return Again(claim, ref, payload, planned)


def write(readings: Sequence[Again], *, now: datetime) -> None:
    """Inside the transaction that ends their tasks. MovedOnError if anything is not as it was: nothing is written."""
    ref_ids = [one.ref.pk for one in readings]
    _lock_matches([one.ref.match_id for one in readings])
    crash_point("ingest.locked")
    _expect(len({one.ref.match_id for one in readings}), _update_matches(readings))
    crash_point("ingest.match")
    _expect(len(readings), _update_refs(readings))
    crash_point("ingest.ref")
    _expect(len(readings), _update_scrapers(readings, now))
    crash_point("ingest.scraper")
    _expect(len(readings), breakers.count_success_of_closed(ref_ids))
    transaction.on_commit(lambda: _announce(readings))


def _expect(wanted: int, found: int) -> None:
    if found != wanted:
        raise MovedOnError(f"{wanted - found} of {wanted} rows are not as they were")


def _lock_matches(match_ids: Sequence[int]) -> None:
    """In one order, before anything else of theirs: as every other writer of matches does."""
    if connection.features.has_select_for_update:
        list(Match.objects.select_for_update().filter(pk__in=match_ids).order_by("pk").values_list("pk", flat=True))


def _update_matches(readings: Sequence[Again]) -> int:
    read_at: dict[int, list[datetime]] = {}
    for one in readings:
        read_at.setdefault(one.ref.match_id, []).append(one.payload.captured_at)
    rows = [(match_id, max(moments), len(moments)) for match_id, moments in read_at.items()]
    return bulk_sql.execute_rows(
        """UPDATE scraping_match SET total_scrapes = total_scrapes + v.column3, last_scraper_update =
             CASE WHEN last_scraper_update > v.column2 THEN last_scraper_update ELSE v.column2 END
           FROM (VALUES {rows}) AS v
           WHERE scraping_match.id = v.column1 AND lifecycle = %s AND status = %s AND scraper_status = %s
             AND failing_since IS NULL""",
        rows,
        after=(MatchLifecycle.ACTIVE.value, Status.LIVE.value, ScraperStatus.ACTIVE.value),
    )


def _update_refs(readings: Sequence[Again]) -> int:
    return poll_times.write_unchanged(
        [UnchangedPoll(one.ref, one.payload.captured_at, one.next_poll) for one in readings]
    )


def _update_scrapers(readings: Sequence[Again], now: datetime) -> int:
    written_at = timezone.now()
    updates = {
        one.ref.pk: scrapers.Update(
            worker_id=one.claim.worker_id,
            interval=one.interval_seconds,
            latency_ms=max(0, round((written_at - one.payload.captured_at).total_seconds() * 1000)),
            now=now,
        )
        for one in readings
    }
    return len(scrapers.count_updates(updates))


def _announce(readings: Sequence[Again]) -> None:
    for one in readings:
        ref, match = one.ref, one.ref.match
        ref.captured_at = one.payload.captured_at
        poll_times.set_next_poll(ref, one.next_poll.at)
        ref.polling_interval_seconds = one.interval_seconds
        match.last_scraper_update = max(one.payload.captured_at, match.last_scraper_update or one.payload.captured_at)
        match_updated.send_robust(sender=Match, match_id=match.pk, sequence=match.sequence, is_changed=False, ref=ref)
