"""Submissions: matches that consumers send in. Stored by the request, written into the match by a worker.

Guards against losing or duplicating accepted data: the response is sent after the commit of body, match reference and
idempotency key; a second request with the same key returns the first result; and a submission's end is written in the
transaction that writes its effects, under the fence of its task. Sole writer of submissions.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from scraping import names
from scraping.errors import PayloadRejected
from scraping.jobs.submission_schema import SentMatch, event_id_at
from scraping.journal import Claim
from scraping.matches import discovery, ingest, late_updates
from scraping.matches.events import EventChanges
from scraping.matches.reconcile.states import SIDES, team_name
from scraping.matches.validate import check
from scraping.models import MatchLifecycle, MatchRef, Source, Submission, SubmissionState, TeamAlias
from scraping.models.source import PUSHED
from scraping.payloads import Payload, Sport, Status
from scraping.policies.interval import Pace
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.crash import crash_point

logger = logging.getLogger(__name__)

FORGOTTEN = timedelta(
    days=3
)  # longer than any break in a match: after this time nothing more is expected from a sender
AT_ONCE = 50  # in one transaction, which locks the match; the next task writes the rest
REASON_LENGTH = 500
MANUAL = "manual"  # Snapshot.data_source of submitted data
_PART = "\x1f"  # between a key and the number of a match in its batch; no valid key contains it
OLD = "a newer state was sent before: only events that were not known yet were accepted"
PROVISIONAL = (
    "the score went down: it is confirmed when another source reports it, or when you have sent it three times in a row"
)
OUR_FAULT = "it could not be written because of an error of ours, which is logged; nothing of it was accepted"


class SubmissionKeyReused(Exception):  # noqa: N818 - reads as what it says at every `except`
    """The idempotency key was used for another body; the message is for people."""

    def __init__(self, message: str, *, submission: Submission) -> None:
        super().__init__(message)
        self.submission = submission


class SwitchedOff(Exception):  # noqa: N818
    """Submissions are disabled; the message is for people."""


@dataclass(frozen=True)
class Submitter:
    id: str
    name: str


@dataclass(frozen=True)
class Accepted:
    """The submissions in the order of the request. Not new: an earlier, equal request was accepted."""

    submissions: list[Submission]
    is_new: bool


def accept(matches: Sequence[SentMatch], *, sender: Submitter, key: str, body_hash: str, now: datetime) -> Accepted:
    """Stores the matches of a request, all or none. The same request with the same key changes nothing."""
    keys = [f"{key}{_PART}{number}" if number else key for number in range(len(matches))]
    known = _known(sender, keys)
    if known:
        return _again(known, body_hash)
    source = Source.objects.filter(key=PUSHED).first()
    if source is None or not source.is_enabled:
        raise SwitchedOff("Submissions are switched off. Nothing was accepted; ask the operators of this service")
    try:
        with transaction.atomic():
            # As for any source: a match that is known from another source gets a ref more.
            ids = [event_id_at(sender.id, match.match_id) for match in matches]
            listed = [
                match.listed(source_event_id=event_id, url=f"{source.base_url.rstrip('/')}/{event_id}")
                for event_id, match in zip(ids, matches, strict=True)
            ]
            refs = {ref.source_event_id: ref for ref in discovery.refs_of(source, listed, now=now)}
            written = [
                Submission.objects.create(
                    sender=sender.id,
                    sender_name=sender.name[:120],
                    idempotency_key=own_key,
                    body_hash=body_hash,
                    body=match.model_dump(mode="json"),
                    ref=refs[event_id],
                    created_at=now,
                )
                for own_key, event_id, match in zip(keys, ids, matches, strict=True)
            ]
            crash_point("submit.written")
    except IntegrityError:  # the same request, sent at the same time, was faster
        known = _known(sender, keys)
        if not known:
            raise
        return _again(known, body_hash)
    return Accepted(written, is_new=True)


def find(submission_id: uuid.UUID, *, sender: Submitter) -> Submission | None:
    rows = Submission.objects.filter(submission_id=submission_id, sender=sender.id)
    return rows.select_related("ref__source").first()


def _known(sender: Submitter, keys: Sequence[str]) -> list[Submission]:
    """Returns the submissions under the keys of a batch; the first key is the one that was sent."""
    rows = Submission.objects.filter(sender=sender.id, idempotency_key__in=keys)
    return list(rows.select_related("ref__source").order_by("pk"))


def _again(known: list[Submission], body_hash: str) -> Accepted:
    if known[0].body_hash != body_hash:
        raise SubmissionKeyReused(
            "This Idempotency-Key was used for another body. Nothing was accepted; send this body with another key",
            submission=known[0],
        )
    return Accepted(known, is_new=False)


def write_waiting(ref_id: int, claim: Claim, *, pace: Pace, now: datetime) -> list[Submission]:
    """Writes the waiting submissions of a match in their order, inside the transaction that finishes the task.

    One that is invalid is refused with its reason; the others are written all the same.
    """
    waiting = Submission.objects.filter(ref_id=ref_id, state=SubmissionState.ACCEPTED).order_by("pk")[:AT_ONCE]
    return [_write(one, claim, pace, now) for one in waiting]


def forgotten(now: datetime) -> QuerySet[MatchRef]:
    """Returns matches that their senders have stopped sending without ending them: they would stay live for ever."""
    is_late = Q(match__status=Status.LIVE) | Q(match__status=Status.UPCOMING, match__start_time__lt=now - FORGOTTEN)
    refs = MatchRef.objects.filter(source__key=PUSHED, gone_at=None, captured_at__lt=now - FORGOTTEN)
    return refs.filter(is_late, match__lifecycle__in=(MatchLifecycle.DISCOVERED, MatchLifecycle.ACTIVE))


def end_forgotten(ref_id: int, *, now: datetime) -> bool:
    """Ends a match without new submissions, unless another source has it. A later submission opens it again."""
    if not forgotten(now).filter(pk=ref_id).exists():
        return False
    late_updates.close_removed(ref_id, now=now)
    return True


def _write(one: Submission, claim: Claim, pace: Pace, now: datetime) -> Submission:
    one.state, one.result = SubmissionState.REFUSED, {}
    try:
        with transaction.atomic():
            one.reason, one.result = _ingest(one, claim, pace, now)
        one.state = SubmissionState.DONE
    except DATABASE_AWAY:
        raise
    except PayloadRejected as refusal:
        one.reason = str(refusal)
    except Exception:  # otherwise it would block all later ones
        logger.exception(
            "Submission %s of %s could not be written and is refused",
            one.submission_id,
            one.sender_name,
            extra={"action": "submission_failed", "submission_id": str(one.submission_id)},
        )
        one.reason = OUR_FAULT
    one.reason, one.task_id, one.finished_at = one.reason[:REASON_LENGTH], claim.task_id, now
    one.save(update_fields=("state", "reason", "result", "task", "finished_at"))
    crash_point("submit.ended")
    return one


def _ingest(one: Submission, claim: Claim, pace: Pace, now: datetime) -> tuple[str, dict[str, Any]]:
    """Returns a remark for the sender, and the result."""
    ref = MatchRef.objects.select_related("match", "source").get(pk=one.ref_id)
    sent = SentMatch.model_validate(one.body)
    payload = sent.payload(source=PUSHED, source_event_id=ref.source_event_id, received_at=one.created_at)
    _refuse_unfit(ref, payload)
    attempt = ingest.Attempt(
        claim.worker_id, payload.captured_at, claim.attempt > 1, now=now, data_source=MANUAL, clock=timezone.now
    )
    ingested = ingest.apply(payload, ref_id=ref.pk, pace=pace, attempt=attempt)
    reason = OLD if ingested.is_overtaken else "" if ingested.is_taken else PROVISIONAL
    return reason, _result(ingested.sequence, ingested.is_changed, ingested.events, is_taken=ingested.is_taken)


def _refuse_unfit(ref: MatchRef, payload: Payload) -> None:
    check(payload, expected_id=ref.source_event_id, sport=ref.match.sport)
    if ref.match.lifecycle == MatchLifecycle.ARCHIVED:
        raise PayloadRejected("the match has ended and is archived: it does not change any more")
    has_begun = ref.payload.get("status") not in (None, Status.UPCOMING)
    if has_begun and _are_other_teams(payload.normalized(), ref.payload):
        teams = ref.payload["teams"]
        known = f"{teams['team_a']['name']} and {teams['team_b']['name']}"
        raise PayloadRejected(f"you had sent {known} under this match_id, and this is another match")


def _are_other_teams(state: dict[str, Any], known: dict[str, Any]) -> bool:
    """Returns whether neither order of the teams has the same or similar names."""
    if state["teams"] == known["teams"]:
        return False
    aliases = TeamAlias.objects.names(Sport.CRICKET.value)
    own, before = ([team_name(one, side, aliases) for side in SIDES] for one in (state, known))
    return not any(
        all(names.similarity(one, other) for one, other in zip(own, pair, strict=True))
        for pair in (before, before[::-1])
    )


def _result(sequence: int, is_changed: bool, changes: EventChanges, *, is_taken: bool) -> dict[str, Any]:
    return {
        "sequence": sequence,
        "is_changed": is_changed,
        "is_taken": is_taken,
        "events": {"added": changes.added, "updated": changes.updated, "retracted": changes.retracted},
    }
