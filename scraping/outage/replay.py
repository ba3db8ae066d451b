"""Writes the spool's updates into the database: in order, in batches, each with a journal row, each at most once.

Guards against updates that an outage would lose or double: a worker that dies while it replays leaves a spool that the
next one continues, and an update that was committed before is recognised by its journal row.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from django.db import DatabaseError, transaction
from django.utils import timezone

from scraping import journal
from scraping.errors import PayloadRejected
from scraping.matches import ingest
from scraping.models import MatchRef
from scraping.outage.spool import Spool, Update
from scraping.payloads import Payload
from scraping.policies.interval import Pace
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.crash import crash_point
from victoryline.lib.statements import statement_of

logger = logging.getLogger(__name__)
BATCH = 25
MERGE_ABOVE, MERGED_BATCH = 500, 500


def replay_all(spool: Spool, *, pace: Pace) -> int:
    """Writes all updates of the spool; returns how many were written."""
    written = 0
    is_merged = len(spool) > MERGE_ABOVE
    while updates := spool.batch(MERGED_BATCH if is_merged else BATCH):
        written += replay(updates, pace=pace, now=timezone.now(), is_merged=is_merged)
        spool.done(updates)
    return written


def replay(updates: Sequence[Update], *, pace: Pace, now: datetime, is_merged: bool = False) -> int:
    """Writes a batch, one transaction per match, its updates in order; returns how many were written.

    `is_merged`: so many wait that of a match's updates in the batch all events are written and only the last state.
    Raises OperationalError or InterfaceError when the database is away again; writing the batch again is harmless.
    """
    by_match: defaultdict[int, list[Update]] = defaultdict(list)
    for update in updates:
        by_match[update.ref_id].append(update)
    written = 0
    for of_one in by_match.values():
        try:
            with transaction.atomic():
                written_now = _write(of_one, pace, now, is_merged=is_merged)
                crash_point("replay.before_commit")
            written += written_now
        except DATABASE_AWAY:
            raise
        except Exception:  # noqa: BLE001 - the failing update is found by writing each alone
            written += sum(_write_alone(update, pace=pace, now=now) for update in of_one)
    return written


def _write_alone(update: Update, *, pace: Pace, now: datetime) -> bool:
    """Writes one update; an invalid one is skipped, so that it does not block the others."""
    try:
        with transaction.atomic():
            return bool(_write([update], pace, now))
    except DATABASE_AWAY:
        raise
    except (PayloadRejected, DatabaseError, ValueError) as error:
        logger.error(  # noqa: TRY400 - the stack adds nothing
            "An update of %s read at %s could not be written and is left out: %s",
            update.key,
            update.payload.captured_at.isoformat(),
            error,
            extra={"action": "update_refused", "match_id": update.key, "error_message": str(error)[:500]}
            | statement_of(error),
        )
        return False


def _write(updates: Sequence[Update], pace: Pace, now: datetime, *, is_merged: bool = False) -> int:
    new = [update for update in updates if _is_new(update, now)]
    writes = [(update, update.payload) for update in new]
    if is_merged and new:
        writes = [(new[-1], merged([update.payload for update in new]))]
    for update, payload in writes:
        attempt = ingest.Attempt(
            update.worker_id,
            payload.captured_at,
            had_failures=False,
            now=now,
            is_replayed=True,
            clock=timezone.now,
        )
        ingest.apply(payload, ref_id=update.ref_id, pace=pace, attempt=attempt)
    return len(new)


def merged(payloads: Sequence[Payload]) -> Payload:
    """Returns the last state with the events of all; of an event that changed, its last version."""
    last = payloads[-1]
    if last.events_are_complete:
        return last
    events = {event.id: event for payload in payloads for event in payload.events}
    return last.model_copy(update={"events": tuple(events.values())})


def _is_new(update: Update, now: datetime) -> bool:
    """Writes the update's journal row; returns False if the match is gone or the row exists already."""
    source_id = MatchRef.objects.filter(pk=update.ref_id).values_list("source_id", flat=True).first()
    if source_id is None:
        logger.warning(
            "%s is no longer known: an update of it is left out", update.key, extra={"action": "update_refused"}
        )
        return False
    return journal.record_past_read(
        update.update_id,
        source_id=source_id,
        ref_id=update.ref_id,
        worker_id=update.worker_id,
        read_at=update.payload.captured_at,
        now=now,
    )
