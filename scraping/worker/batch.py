"""Polls many matches together: claimed by one statement, read concurrently, committed in batches as they arrive.

Most polls of a live match find no change. Written one by one, a dozen statements each, the journal would cost ten times
the reading; unchanged polls that are written together cost a fraction of a statement each (unchanged.py). A changed
match is written as a single task would (`scrape.ingest_reading`), and a failure concerns its own task only.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from contextvars import Context, copy_context
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import DatabaseError
from django.utils import timezone
from structlog.contextvars import bind_contextvars

from scraping import journal, readings
from scraping.errors import NotStored, StaleFence
from scraping.journal import Claim
from scraping.models import MatchRef, Stage
from scraping.payloads import Payload, Resource
from scraping.reading.reader import Target
from scraping.readings import Reading
from scraping.worker import unchanged
from scraping.worker.engine import Engine, target_of
from scraping.worker.scrape import held_match, ingest_reading, record_failure, run
from scraping.worker.unchanged import RowsChangedError, UnchangedReading
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.crash import crash_point

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Poll:
    """One poll of a batch, with the context of its log lines and stages."""

    claim: Claim
    ref: MatchRef
    target: Target
    context: Context


@dataclass(frozen=True)
class ReadPoll:
    poll: Poll
    reading: Reading
    payload: Payload


def poll(task_ids: Sequence[int], engine: Engine) -> None:
    """Claims and runs those of the tasks that are due and free. Raises nothing: the outcomes are in the journal."""
    now = timezone.now()
    try:
        lease = engine.policies.lease_seconds
        claims = journal.claim_many(task_ids, worker_id=engine.worker_id, lease_seconds=lease, now=now)
    except DATABASE_AWAY as error:
        engine.lost_store(error)
        return
    with ExitStack() as stack:
        for claim in claims:
            engine.hold(claim)
            stack.callback(engine.release, claim)  # at the latest: each is released when it is done
        polls = [claim for claim in claims if claim.resource is Resource.SCORECARD]
        if polls:
            _poll_all(polls, engine)
        for claim in claims:
            if claim.resource is not Resource.SCORECARD:
                run(claim, engine)


def _poll_all(claims: Sequence[Claim], engine: Engine) -> None:
    polls = _prepare(claims, engine)
    crash_point("read.before")
    for results in engine.reader.batches([one.target for one in polls], [one.context for one in polls]):
        read: list[ReadPoll] = []
        for result in results:
            one = polls[result.number]
            if result.reading is not None and result.payload is not None:
                read.append(ReadPoll(one, result.reading, result.payload))
            else:
                assert result.error is not None
                one.context.run(record_failure, one.claim, result.error, engine)
                engine.release(one.claim)
        _commit(read, engine)


def _prepare(claims: Sequence[Claim], engine: Engine) -> list[Poll]:
    """Loads the targets. Tasks whose breakers are open return to the journal."""
    try:
        refs = {ref.pk: ref for ref in unchanged.for_polling([claim.ref_id for claim in claims if claim.ref_id])}
    except DATABASE_AWAY as error:
        engine.lost_store(error)
        return []
    polls = []
    for claim in claims:
        context = copy_context()
        context.run(bind_contextvars, task_id=claim.task_id, job_id=claim.job_id, attempt=claim.attempt)
        context.run(readings.stage_listener.set, partial(_set_stage, claim, engine))
        ref = refs.get(claim.ref_id or 0)
        try:
            if ref is None:
                raise LookupError(f"the match of task {claim.task_id} does not exist any more")
            polls.append(Poll(claim, ref, context.run(target_of, claim, ref, engine), context))
        except Exception as error:  # noqa: BLE001 - every failure goes to the journal
            context.run(record_failure, claim, error, engine)
            engine.release(claim)
    return polls


def _set_stage(claim: Claim, engine: Engine, stage: str) -> None:
    engine.progress(claim, Stage(stage))


def _commit(read: Sequence[ReadPoll], engine: Engine) -> None:
    """Writes unchanged readings together, the others one by one."""
    now = timezone.now()
    same: list[UnchangedReading] = []
    others: list[ReadPoll] = []
    for one in read:
        claim, ref = one.poll.claim, one.poll.ref
        last = engine.last_payload(ref.pk)
        if unchanged.is_unchanged(claim, ref, one.payload, last, mode=one.reading.mode.value):
            same.append(unchanged.plan(claim, ref, one.payload, pace=engine.policies.pace, now=now))
        else:
            others.append(one)
    if same and not _commit_unchanged(same, engine, now):
        split = {one.claim.task_id for one in same}
        others = [one for one in read if one.poll.claim.task_id in split] + others
    for one in others:
        _ingest(one, engine)


def _commit_unchanged(same: Sequence[UnchangedReading], engine: Engine, now: datetime) -> bool:
    """Returns False if they must be written one by one: a row has changed, or a lease was lost."""
    claims = [one.claim for one in same]
    try:
        crash_point("read.after")
        with journal.finishing(*claims, now=now):
            unchanged.write(same, now=now)
            crash_point("ingest.applied")
    except (RowsChangedError, StaleFence) as reason:
        logger.debug("Written one by one: %s", reason, extra={"action": "wave_split"})
        return False
    except DATABASE_AWAY as error:
        for one in same:
            why = f"the database did not accept it: {error}"
            engine.lost_store(NotStored(why, match=held_match(one.ref), payload=one.payload))
        return True
    except DatabaseError as error:
        logger.warning("Written one by one: %s", error, extra={"action": "wave_split"})
        return False
    for one in same:
        engine.set_last_payload(one.ref.pk, one.payload)
        if engine.keeper is not None:
            engine.keeper.stored(held_match(one.ref), one.payload, interval_seconds=one.next_poll.seconds)
        engine.outcomes.count(one.claim.source_id, now=now)
        engine.release(one.claim)
    return True


def _ingest(one: ReadPoll, engine: Engine) -> None:
    claim, ref, context = one.poll.claim, one.poll.ref, one.poll.context

    def ingest() -> None:
        ingest_reading(claim, ref, one.reading, one.payload, engine)
        engine.outcomes.count(claim.source_id, is_retry=claim.is_retry, now=timezone.now())

    try:
        context.run(ingest)
    except Exception as error:  # noqa: BLE001 - every failure goes to the journal
        context.run(record_failure, claim, error, engine)
    engine.release(claim)
