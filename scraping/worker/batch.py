"""Many polls together: claimed by one statement, read at the same time, committed as they come, in waves.

A poll of a live match mostly finds what the last one found. Written one by one, a dozen statements each, the journal
would cost ten times the reading; written together, what is unchanged costs a fraction of a statement. Whatever is new
takes the same way as a single task (`scrape.take_in`), and whatever goes wrong is its own task's affair.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError
from django.utils import timezone

from scraping import journal, readings
from scraping.errors import NotStored, StaleFence
from scraping.journal import Claim
from scraping.models import MatchRef, Stage
from scraping.payloads import Payload, Resource
from scraping.reading.reader import Target
from scraping.readings import Reading
from scraping.worker import unchanged
from scraping.worker.engine import Engine
from scraping.worker.scrape import held_match, run, take_in, target_of, write_down
from scraping.worker.unchanged import Again, MovedOnError
from victoryline.lib.crash import crash_point
from victoryline.lib.database_errors import DATABASE_AWAY
from victoryline.lib.logs import bind

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Poll:
    """One of many: its right to be done, and the context that its log lines and stages belong to."""

    claim: Claim
    ref: MatchRef
    target: Target
    context: Context


@dataclass(frozen=True)
class Good:
    poll: Poll
    reading: Reading
    payload: Payload


def poll(task_ids: Sequence[int], engine: Engine) -> None:
    """Do those of the tasks that are there to be done. Raises nothing: the outcomes are in the journal."""
    now = timezone.now()
    try:
        lease = engine.policies.lease_seconds
        claims = journal.claim_many(task_ids, worker_id=engine.worker_id, lease_seconds=lease, now=now)
    except DATABASE_AWAY as error:
        engine.lost_store(error)
        return
    with _holding(claims, engine):
        polls = [claim for claim in claims if claim.resource is Resource.SCORECARD]
        if polls:
            _poll_all(polls, engine)
        for claim in claims:
            if claim.resource is not Resource.SCORECARD:
                run(claim, engine)


@contextmanager
def _holding(claims: Sequence[Claim], engine: Engine) -> Iterator[None]:
    """All of them are in this worker's hands; each leaves them when it is done."""
    with ExitStack() as stack:
        for claim in claims:
            engine.take(claim)
            stack.callback(engine.release, claim)
        yield


def _poll_all(claims: Sequence[Claim], engine: Engine) -> None:
    polls = _ready(claims, engine)
    crash_point("read.before")
    for wave in engine.reader.waves([one.target for one in polls], [one.context for one in polls]):
        good: list[Good] = []
        for brought in wave:
            one = polls[brought.number]
            if brought.reading is not None and brought.payload is not None:
                good.append(Good(one, brought.reading, brought.payload))
            else:
                assert brought.error is not None
                _fail(one, brought.error, engine)
        _commit(good, engine)


def _ready(claims: Sequence[Claim], engine: Engine) -> list[Poll]:
    """What each needs to be read; those that their breakers hold back go back into the journal."""
    try:
        refs = {ref.pk: ref for ref in unchanged.for_polling([claim.ref_id for claim in claims if claim.ref_id])}
    except DATABASE_AWAY as error:
        engine.lost_store(error)
        return []
    polls = []
    for claim in claims:
        context = copy_context()
        context.run(_enter, claim, engine)
        ref = refs.get(claim.ref_id or 0)
        try:
            if ref is None:
                raise LookupError(f"the match of task {claim.task_id} does not exist any more")
            polls.append(Poll(claim, ref, context.run(target_of, claim, ref, engine), context))
        except Exception as error:  # noqa: BLE001 - every failure has a place in the journal
            context.run(write_down, claim, error, engine)
            engine.release(claim)
    return polls


def _enter(claim: Claim, engine: Engine) -> None:
    bind(task_id=claim.task_id, job_id=claim.job_id, attempt=claim.attempt)
    readings.set_stage_listener(lambda stage: engine.progress(claim, Stage(stage)))


def _fail(one: Poll, error: Exception, engine: Engine) -> None:
    one.context.run(write_down, one.claim, error, engine)
    engine.release(one.claim)


def _commit(wave: Sequence[Good], engine: Engine) -> None:
    """What is unchanged together, the rest one by one."""
    now = timezone.now()
    same: list[Again] = []
    others: list[Good] = []
    for good in wave:
        one = good.poll
        last = engine.told.get(one.ref.pk)
        mode = good.reading.mode.value
        if unchanged.is_again(one.claim, one.ref, good.payload, last, mode=mode):
            same.append(unchanged.again(one.claim, one.ref, good.payload, pace=engine.policies.pace, now=now))
        else:
            others.append(good)
    if same and not _commit_same(same, engine, now):
        again = {one.claim.task_id for one in same}
        others = [good for good in wave if good.poll.claim.task_id in again] + others
    for good in others:
        _take_in(good, engine)


def _commit_same(same: Sequence[Again], engine: Engine, now: datetime) -> bool:
    """False if they have to be written one by one: a row has moved on, a lease was lost."""
    claims = [one.claim for one in same]
    try:
        crash_point("read.after")
        with journal.finishing_many(claims, now=now):
            unchanged.write(same, now=now)
            crash_point("ingest.applied")
    except (MovedOnError, StaleFence) as reason:
        logger.debug("Written one by one: %s", reason, extra={"action": "wave_split"})
        return False
    except DATABASE_AWAY as error:
        _keep(same, error, engine)
        return True
    except DatabaseError as error:
        logger.warning("Written one by one: %s", error, extra={"action": "wave_split"})
        return False
    for one in same:
        engine.told.put(one.ref.pk, one.payload)
        if engine.keeper is not None:
            engine.keeper.stored(held_match(one.ref), one.payload, interval_seconds=one.interval_seconds)
        engine.outcomes.count(one.claim.source_id, now=now)
        engine.release(one.claim)
    return True


def _keep(same: Sequence[Again], error: Exception, engine: Engine) -> None:
    for one in same:
        engine.lost_store(
            NotStored(f"the database did not take it: {error}", match=held_match(one.ref), payload=one.payload)
        )


def _take_in(good: Good, engine: Engine) -> None:
    one = good.poll

    def take() -> None:
        take_in(one.claim, one.ref, good.reading, good.payload, engine)
        engine.outcomes.count(one.claim.source_id, is_retry=one.claim.is_retry, now=timezone.now())

    try:
        one.context.run(take)
    except Exception as error:  # noqa: BLE001 - every failure has a place in the journal
        one.context.run(write_down, one.claim, error, engine)
    engine.release(one.claim)
