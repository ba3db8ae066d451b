"""Data that consumers submit: POST /cricket-data, and the state of a submission.

A request is checked and written to the journal; workers do the rest.
"""

from __future__ import annotations

import hashlib
import unicodedata
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
from scraping.jobs.submission_schema import CLOCKS_DIFFER, MOST_EVENTS, MOST_MATCHES, OVERS, SentMatch, SentMatches
from scraping.jobs.submissions import Submitter
from scraping.matches.validate import check
from scraping.models import Submission, SubmissionState
from victoryline.lib.http.headers import NO_STORE
from victoryline.lib.http.openapi import describe, idempotency_parameters
from victoryline.lib.http.problems import ApiProblem
from victoryline.lib.http.views import ApiView, idempotency_key

OFF_SECONDS = 300
MOST_NAMED = 50
KEY_LENGTH = 150
_UNSEEN = "It holds U+{:04X} ({}), a character that is not seen. Leave it out."
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
    """The state of the submission of one match."""

    submission_id: uuid.UUID
    state: SubmissionState = Field(
        description="accepted: stored, waits for a worker. done: written into the match. refused: invalid, see "
        "`reason`."
    )
    reason: str = Field(description="Why all or a part of it was refused; usually empty.")
    match_id: Annotated[str, lambda submission: str(submission.body["match_id"])] = Field(
        description="Your own id of the match."
    )
    match: Annotated[int, attrgetter("ref.match_id")] = Field(
        description="Our id: GET /api/v1/matches/{match} reads the match."
    )
    key: Annotated[str, attrgetter("ref.key")] = Field(description="The key of your match; works as an id everywhere.")
    received_at: Annotated[AwareDatetime, attrgetter("created_at")]
    finished_at: AwareDatetime | None
    sequence: Annotated[int | None, _result("sequence")] = Field(
        description="The match's sequence after the submission; null while it waits."
    )
    is_changed: Annotated[bool | None, _result("is_changed")] = Field(
        description="Whether the served data has changed."
    )
    is_taken: Annotated[bool | None, _result("is_taken")] = Field(
        description="false: the state was not accepted, see `reason`."
    )
    events: Annotated[SubmittedEvents | None, _result("events")]
    href: Annotated[str, ADDED] = Field(description="The address of this submission.")


class SubmissionList(Body):
    """In the order of the matches that were sent."""

    submissions: list[SubmissionDocument]


class SubmissionAnswer(RootModel[SubmissionDocument | SubmissionList]):
    """The submission of one match, or a list for several."""


class SubmitView(ApiView):
    required_scope = "ingest"

    @describe(
        "submit_match",
        "Submit the state of a match",
        "Needs the scope ingest. The answer (202) comes when the request is stored; workers write it into the match, "
        f"usually within two seconds. One match, or up to {MOST_MATCHES} under `matches`, of which all are accepted or "
        f"none; up to {MOST_EVENTS} events each, 256 KB in all. `captured_at` is at most {CLOCKS_DIFFER.seconds} s "
        "ahead of our clock and at most a day old. An invalid value is named by its path, and then nothing of the body "
        "is accepted. A repeated request is accepted once: the answer is 200.",
        SubmissionAnswer,
        tag="cricket-data",
        answers={202: SubmissionAnswer},
        problems=(400, 409, 413, 415),
        parameters=idempotency_parameters(
            KEY_LENGTH,
            f"Up to {KEY_LENGTH} printable characters of your choice. The same key with the same body returns the same "
            f"submission; with another body it is a conflict. Without a key the body itself is the key.",
            location="The address of the (first) submission.",
        ),
        request=SubmissionRequest,
    )
    def post(self, request: Request) -> Response:
        now = timezone.now()
        matches, body_hash = _checked(request.data, now=now)
        key = idempotency_key(request, KEY_LENGTH) or f"sha256:{body_hash}"
        try:
            accepted = submissions.accept(matches, sender=_sender(request), key=key, body_hash=body_hash, now=now)
        except submissions.SubmissionKeyReused as reuse:
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
        "Read a submission",
        "Needs the scope ingest. Only your own submissions are found; they are kept for 7 days.",
        SubmissionDocument,
        tag="cricket-data",
        problems=(404,),
        parameters=[
            OpenApiParameter("submission_id", str, OpenApiParameter.PATH, description="From the answer to the request.")
        ],
    )
    def get(self, request: Request, submission_id: str) -> Response:
        try:
            found = submissions.find(uuid.UUID(submission_id), sender=_sender(request))
        except ValueError:
            found = None
        if found is None:
            raise NotFound(
                f"There is no submission {submission_id[:100]} of yours. The id is in the answer to your request; "
                f"submissions are kept for 7 days."
            )
        return Response(_document(request, found), headers=NO_STORE)


def _sender(request: Request) -> Submitter:
    consumer = request.user.consumer  # type: ignore[union-attr]
    return Submitter(str(consumer.consumer_id), consumer.name)


def _document(request: Request, one: Submission) -> dict[str, Any]:
    href = request.build_absolute_uri(reverse("submission", args=[one.submission_id]))
    return SubmissionDocument.render(one, href=href)


def _checked(body: Any, *, now: datetime) -> tuple[Sequence[SentMatch], str]:
    """Returns the matches and a hash of the body."""
    if not isinstance(body, dict):
        raise ValidationError({"body": ["It must be an object: a match, or several under `matches`."]})
    raw = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    _refuse(
        [(path, _UNSEEN.format(ord(char), _name(char))) for path, char in submission_schema.invisible_characters(body)]
    )
    is_batch = "matches" in body
    matches: Sequence[SentMatch] = ()
    try:  # strict: a number in quotation marks is a text
        if is_batch:
            matches = SentMatches.model_validate_json(raw, strict=True).matches
        else:
            matches = [SentMatch.model_validate_json(raw, strict=True)]
    except pydantic.ValidationError as error:
        _refuse([(one["loc"], _message(one)) for one in error.errors(include_url=False)])
    places: list[Path] = [("matches", number) for number in range(len(matches))] if is_batch else [()]
    _refuse([found for place, match in zip(places, matches, strict=True) for found in _unfit(place, match, now)])
    return matches, hashlib.sha256(raw).hexdigest()


def _name(char: str) -> str:
    return unicodedata.name(char, "a control character")


def _message(error: ErrorDetails) -> str:
    """Returns pydantic's message, or a plainer one."""
    context = error.get("ctx", {})
    match error["type"]:
        case "value_error":
            return f"It {context['error']}."
        case "string_pattern_mismatch" if context["pattern"] == OVERS:
            return "Send overs and balls such as 14.4. Extras do not count, so an over has at most 6 balls."
        case "extra_forbidden":
            return "There is no such field here."
        case "too_long":
            sent = context["actual_length"]  # of a dictionary it is not known
            return f"At most {context['max_length']} are accepted at once" + (f"; there are {sent}." if sent else ".")
        case "too_short":
            return f"At least {context['min_length']} is needed."
    return error["msg"]


def _unfit(place: Path, match: SentMatch, now: datetime) -> list[tuple[Path, str]]:
    """Returns the problems that the schema cannot express, each with its path."""
    found: list[tuple[Path, str]] = []
    if late := submission_schema.out_of_time(match, now):
        found.append(((*place, "captured_at"), late))
    try:
        check(match.payload(source="", source_event_id="", received_at=now), expected_id="", sport="cricket")
    except PayloadRejected as refusal:
        found.append(((*place, "innings"), f"{refusal}."))
    return found


def _refuse(found: Sequence[tuple[Path, str]]) -> None:
    """Raises the problems by path, such as `matches.3.teams.team_a.name`; at most MOST_NAMED of them."""
    if not found:
        return
    said: defaultdict[str, list[str]] = defaultdict(list)
    for path, message in found[:MOST_NAMED]:
        said[".".join(str(part)[:60] for part in path)[:300] or "body"].append(message)
    raise ValidationError(dict(said))
