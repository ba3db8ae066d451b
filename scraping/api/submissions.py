"""Data that consumers submit: POST /cricket-data, and the state of a submission.

A request is checked and written to the journal; workers do the rest. A value that cannot be used is a 400 that names
it by its path, and nothing of the request is taken then.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any

import orjson
import pydantic
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from pydantic import AwareDatetime, Field, RootModel
from pydantic_core import ErrorDetails
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from scraping.api.bodies import ADDED, Body, Getter
from scraping.errors import PayloadRejected
from scraping.jobs import submission_schema, submissions
from scraping.jobs.submission_schema import CLOCKS_DIFFER, MOST_EVENTS, MOST_MATCHES, SentMatch, SentMatches
from scraping.jobs.submissions import Sender
from scraping.matches.validate import check
from scraping.models import Submission, SubmissionState
from victoryline.lib.http.headers import NO_STORE
from victoryline.lib.http.openapi import describe, idempotency_parameters
from victoryline.lib.http.problems import ApiProblem
from victoryline.lib.http.views import ApiView, idempotency_key

OFF_SECONDS = 300
MOST_NAMED = 50
KEY_LENGTH = 150
Path = Sequence[str | int]


class SubmissionRequest(RootModel[SentMatch | SentMatches]):
    """One match, or several under `matches`."""


class SubmittedEvents(Body):
    added: int
    updated: int
    retracted: int


def _result(name: str) -> Getter:
    return lambda submission: submission.result.get(name)


class SubmissionDocument(Body):
    """What became of one match that you sent."""

    submission_id: uuid.UUID
    state: SubmissionState = Field(
        description="accepted: it is written down and waits for a worker. done: it is in the match. refused: it can't "
        "be taken, `reason` says why."
    )
    reason: str = Field(description="Why it was refused, or what of it was not taken; usually empty.")
    match_id: Annotated[str, lambda submission: str(submission.body["match_id"])] = Field(
        description="Your own id of the match."
    )
    match: Annotated[int, attrgetter("ref.match_id")] = Field(description="Ours: GET /api/v1/matches/{match} reads it.")
    key: Annotated[str, attrgetter("ref.key")] = Field(
        description="Your match's name among all keys of the match; works as an id everywhere."
    )
    received_at: Annotated[AwareDatetime, attrgetter("created_at")]
    finished_at: AwareDatetime | None
    sequence: Annotated[int | None, _result("sequence")] = Field(
        description="The match's sequence after it; null while it waits."
    )
    is_changed: Annotated[bool | None, _result("is_changed")] = Field(
        description="Did anything that we serve change by it?"
    )
    is_taken: Annotated[bool | None, _result("is_taken")] = Field(
        description="false: its state was not taken, `reason` says why."
    )
    events: Annotated[SubmittedEvents | None, _result("events")]
    href: Annotated[str, ADDED] = Field(description="Where to ask what became of it.")


class SubmissionList(Body):
    """In the order of the matches that were sent."""

    submissions: list[SubmissionDocument]


class SubmissionAnswer(RootModel[SubmissionDocument | SubmissionList]):
    """Of one match its submission, of several a list."""


class SubmitView(ApiView):
    required_scope = "ingest"

    @describe(
        "submit_match",
        "Send in the state of a match",
        "Needs the scope ingest. The answer (202) comes when all of it is written down; workers put it into its match, "
        f"usually within a second or two. One match, or up to {MOST_MATCHES} under `matches`, of which all are taken "
        f"or none; up to {MOST_EVENTS} events each, 256 KB in all. `captured_at` is at most {CLOCKS_DIFFER.seconds} s "
        "ahead of our clock and at most a day old. What can't be used is named by its path, and nothing of the body is "
        "taken then. Sent again, the same is not taken twice: the answer is 200.",
        SubmissionAnswer,
        tag="cricket-data",
        answers={202: SubmissionAnswer},
        problems=(400, 409, 413, 415),
        parameters=idempotency_parameters(
            KEY_LENGTH,
            f"Up to {KEY_LENGTH} printable characters of your choice. The same key with the same body again gives the "
            "same submission back; with another body it is a conflict. Without one the body itself is the key.",
            location="Where the (first) submission is.",
        ),
        request=SubmissionRequest,
    )
    def post(self, request: Request) -> Response:
        now = timezone.now()
        matches, body_hash = _checked(request.data, now=now)
        key = idempotency_key(request, KEY_LENGTH) or f"sha256:{body_hash}"
        try:
            accepted = submissions.accept(matches, sender=_sender(request), key=key, body_hash=body_hash, now=now)
        except submissions.KeyReused as reuse:
            raise ApiProblem("conflict", f"{reuse}.", submission_id=str(reuse.submission.submission_id)) from reuse
        except submissions.SwitchedOff as refusal:
            raise ApiProblem("unavailable", f"{refusal}.", retry_after=OFF_SECONDS) from refusal
        found = [_document(request, one) for one in accepted.submissions]
        return Response(
            {"submissions": found} if "matches" in request.data else found[0],
            status=202 if accepted.is_new else 200,
            headers={"Location": found[0]["href"], **NO_STORE},
        )


class SubmissionView(ApiView):
    required_scope = "ingest"

    @describe(
        "read_submission",
        "See what became of what you sent",
        "Needs the scope ingest. Only your own submissions are found, for as long as we keep them (7 days).",
        SubmissionDocument,
        tag="cricket-data",
        problems=(404,),
        parameters=[
            OpenApiParameter(
                "submission_id", str, OpenApiParameter.PATH, description="From the answer to what you sent."
            )
        ],
    )
    def get(self, request: Request, submission_id: str) -> Response:
        try:
            found = submissions.find(uuid.UUID(submission_id), sender=_sender(request))
        except ValueError:
            found = None
        if found is None:
            raise NotFound(
                f"You have sent nothing that is known as {submission_id[:100]}. The id is in the answer to what you "
                "sent; what was sent long ago is not kept."
            )
        return Response(_document(request, found), headers=NO_STORE)


def _sender(request: Request) -> Sender:
    consumer = request.user.consumer  # type: ignore[union-attr]
    return Sender(str(consumer.consumer_id), consumer.name)


def _document(request: Request, one: Submission) -> dict[str, Any]:
    href = request.build_absolute_uri(reverse("submission", args=[one.submission_id]))
    return SubmissionDocument.render(one, href=href)


def _checked(body: Any, *, now: datetime) -> tuple[Sequence[SentMatch], str]:
    """Returns the matches and a hash of the body."""
    if not isinstance(body, dict):
        raise ValidationError({"body": ["It must be an object: a match, or several under `matches`."]})
    raw = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    if b"\\u0000" in raw:
        _refuse([(path, "It holds the character NUL.") for path in submission_schema.unstorable(body)])
    is_batch = "matches" in body
    matches: Sequence[SentMatch] = ()
    try:  # strictly: a number in quotation marks is none
        if is_batch:
            matches = SentMatches.model_validate_json(raw, strict=True).matches
        else:
            matches = [SentMatch.model_validate_json(raw, strict=True)]
    except pydantic.ValidationError as error:
        _refuse([(one["loc"], _message(one)) for one in error.errors(include_url=False)])
    places: list[Path] = [("matches", number) for number in range(len(matches))] if is_batch else [()]
    _refuse([found for place, match in zip(places, matches, strict=True) for found in _unfit(place, match, now)])
    return matches, hashlib.sha256(raw).hexdigest()


def _message(error: ErrorDetails) -> str:
    """Returns pydantic's message, or a plainer one."""
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            return "There is no such field here."
        case "too_long":
            return f"At most {context['max_length']} are taken at once, and these are {context['actual_length']}."
        case "too_short":
            return f"At least {context['min_length']} is needed."
    return error["msg"]


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
        said[".".join(str(part)[:60] for part in path)[:300] or "body"].append(message)
    raise ValidationError(dict(said))
