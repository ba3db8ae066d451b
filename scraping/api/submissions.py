"""Data that consumers submit: POST /cricket-data, and the state of a submission.

A request is checked and written to the journal; workers do the rest. A value that cannot be used is a 400 that names
it by its path, and nothing of the request is taken then.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
import pydantic
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from pydantic_core import ErrorDetails
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from scraping.api.submission_bodies import KEY_LENGTH, SUBMISSION, SUBMIT, SubmissionDocument
from scraping.errors import PayloadRejected
from scraping.jobs import submission_schema, submissions
from scraping.jobs.submission_schema import SentMatch, SentMatches
from scraping.jobs.submissions import Sender
from scraping.matches.validate import check
from scraping.models import Submission
from victoryline.lib.http.problems import BadParameter, Conflict, Unavailable
from victoryline.lib.http.views import ApiView

NO_STORE = {"Cache-Control": "no-store"}
OFF_SECONDS = 300
MOST_NAMED = 50
Path = Sequence[str | int]


class SubmitView(ApiView):
    required_scope = "ingest"

    @extend_schema(**SUBMIT)
    def post(self, request: Request) -> Response:
        now = timezone.now()
        asked = _checked(request, now=now)
        try:
            accepted = submissions.accept(
                asked.matches, sender=_sender(request), key=asked.key, body_hash=asked.body_hash, now=now
            )
        except submissions.KeyReused as reuse:
            raise Conflict(f"{reuse}.", submission_id=str(reuse.submission.submission_id)) from reuse
        except submissions.SwitchedOff as refusal:
            raise Unavailable(f"{refusal}.", retry_after=OFF_SECONDS) from refusal
        found = [_document(request, one) for one in accepted.submissions]
        return Response(
            {"submissions": found} if asked.is_batch else found[0],
            status=202 if accepted.is_new else 200,
            headers={"Location": found[0]["href"], **NO_STORE},
        )


class SubmissionView(ApiView):
    required_scope = "ingest"

    @extend_schema(**SUBMISSION)
    def get(self, request: Request, submission_id: str) -> Response:
        asked = _uuid(submission_id)
        found = submissions.find(asked, sender=_sender(request)) if asked else None
        if found is None:
            raise NotFound(
                f"You have sent nothing that is known as {submission_id[:100]}. The id is in the answer to what you "
                "sent; what was sent long ago is not kept."
            )
        return Response(_document(request, found), headers=NO_STORE)


def _sender(request: Request) -> Sender:
    return Sender(str(request.user.consumer_id), str(request.user.name))  # type: ignore[union-attr]


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def _document(request: Request, one: Submission) -> dict[str, Any]:
    href = request.build_absolute_uri(reverse("submission", args=[one.submission_id]))
    return SubmissionDocument.render(one, href=href)


@dataclass(frozen=True)
class CheckedRequest:
    matches: Sequence[SentMatch]
    is_batch: bool
    key: str
    body_hash: str


def _checked(request: Request, *, now: datetime) -> CheckedRequest:
    body = request.data
    if not isinstance(body, dict):
        raise ValidationError({"body": ["It must be an object: a match, or several under `matches`."]})
    raw = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    if b"\\u0000" in raw:
        _refuse([(path, "It holds the character NUL.") for path in submission_schema.unstorable(body)])
    is_batch = "matches" in body
    matches = _parsed(raw, is_batch=is_batch)
    places: list[Path] = [("matches", number) for number in range(len(matches))] if is_batch else [()]
    _refuse([found for place, match in zip(places, matches, strict=True) for found in _unfit(place, match, now)])
    body_hash = hashlib.sha256(raw).hexdigest()
    return CheckedRequest(matches, is_batch, _key(request) or f"sha256:{body_hash}", body_hash)


def _parsed(raw: bytes, *, is_batch: bool) -> Sequence[SentMatch]:
    """Strictly: a number in quotation marks is none."""
    try:
        if is_batch:
            return SentMatches.model_validate_json(raw, strict=True).matches
        return [SentMatch.model_validate_json(raw, strict=True)]
    except pydantic.ValidationError as error:
        _refuse([(one["loc"], _words(one)) for one in error.errors(include_url=False)])
        raise  # there is always something to name


def _words(one: ErrorDetails) -> str:
    """As the checker has them, but where it speaks of its own insides."""
    told = one.get("ctx", {})
    match one["type"]:
        case "extra_forbidden":
            return "There is no such field here."
        case "too_long":
            return f"At most {told['max_length']} are taken at once, and these are {told['actual_length']}."
        case "too_short":
            return f"At least {told['min_length']} is needed."
    return one["msg"]


def _unfit(place: Path, match: SentMatch, now: datetime) -> list[tuple[Path, str]]:
    """What no schema can say."""
    found: list[tuple[Path, str]] = []
    if late := submission_schema.out_of_time(match, now):
        found.append(((*place, "captured_at"), late))
    try:
        check(match.payload(source="", source_event_id="", received_at=now), expected_id="", sport="cricket")
    except PayloadRejected as refusal:
        found.append(((*place, "innings"), f"{refusal}."))
    return found


def _refuse(found: Sequence[tuple[Path, str]]) -> None:
    """By path: `matches.3.teams.team_a.name`. Of very many the first ones."""
    if not found:
        return
    said: defaultdict[str, list[str]] = defaultdict(list)
    for path, message in found[:MOST_NAMED]:
        said[_shown(path)].append(message)
    raise ValidationError(dict(said))


def _shown(path: Path) -> str:
    return ".".join(str(part)[:60] for part in path)[:300] or "body"


def _key(request: Request) -> str:
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > KEY_LENGTH or not key.isprintable():
        said = f"`Idempotency-Key` can't be used: it has up to {KEY_LENGTH} printable characters."
        raise BadParameter("Idempotency-Key", said)
    return key
