"""The bodies around POST /cricket-data, with their examples and OpenAPI descriptions."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from pydantic import AwareDatetime, Field, RootModel

from scraping.api.bodies import ADDED, Body, Computed, From
from scraping.jobs.submission_schema import CLOCKS_DIFFER, MOST_EVENTS, MOST_MATCHES, SentMatch, SentMatches
from scraping.models import Submission, SubmissionState
from victoryline.lib.http.problems import problem_responses


class SubmissionRequest(RootModel[SentMatch | SentMatches]):
    """One match, or several under `matches`."""


class SubmittedEvents(Body):
    added: int
    updated: int
    retracted: int


def _own_id(submission: Submission) -> str:
    return str(submission.body["match_id"])


def _result(name: str) -> Computed:
    return Computed(lambda submission: submission.result.get(name))


class SubmissionDocument(Body):
    """What became of one match that you sent."""

    submission_id: UUID
    state: SubmissionState = Field(
        description="accepted: it is written down and waits for a worker. done: it is in the match. refused: it can't "
        "be taken, `reason` says why."
    )
    reason: str = Field(description="Why it was refused, or what of it was not taken; usually empty.")
    match_id: Annotated[str, Computed(_own_id)] = Field(description="Your own id of the match.")
    match: Annotated[int, From("ref.match_id")] = Field(description="Ours: GET /api/v1/matches/{match} reads it.")
    key: Annotated[str, From("ref.key")] = Field(
        description="Your match's name among all keys of the match; works as an id everywhere."
    )
    received_at: Annotated[AwareDatetime, From("created_at")]
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

    submissions: Annotated[list[SubmissionDocument], ADDED]


class SubmissionAnswer(RootModel[SubmissionDocument | SubmissionList]):
    """Of one match its submission, of several a list."""


TAG = "cricket-data"
KEY_LENGTH = 150
SENT: dict[str, Any] = {
    "match_id": "ind-aus-2026-1",
    "captured_at": "2026-06-14T18:00:00.000Z",
    "status": "live",
    "series": "Australia in India 2026",
    "match_type": "T20",
    "teams": {
        "team_a": {"name": "India", "short_name": "IND"},
        "team_b": {"name": "Australia", "short_name": "AUS"},
    },
    "innings": [{"number": 1, "team": "team_a", "runs": 91, "wickets": 2, "overs": "11.5"}],
    "current_innings": 1,
    "events": [
        {
            "id": "1-72",
            "kind": "four",
            "innings": 1,
            "over": "11.5",
            "ball": 6,
            "runs": 4,
            "description": "Through the covers",
        }
    ],
}
ACCEPTED: dict[str, Any] = {
    "submission_id": "6f1c2a34-5b0e-4a55-9f0b-6a8f6a1d2c3e",
    "state": "accepted",
    "reason": "",
    "match_id": "ind-aus-2026-1",
    "match": 42,
    "key": "pushed_5d41402abc4b-ind-aus-2026-1",
    "received_at": "2026-06-14T18:00:00.412Z",
    "finished_at": None,
    "sequence": None,
    "is_changed": None,
    "is_taken": None,
    "events": None,
    "href": "https://scores.example.com/cricket-data/submissions/6f1c2a34-5b0e-4a55-9f0b-6a8f6a1d2c3e",
}
DONE: dict[str, Any] = {
    **ACCEPTED,
    "state": "done",
    "finished_at": "2026-06-14T18:00:01.035Z",
    "sequence": 118,
    "is_changed": True,
    "is_taken": True,
    "events": {"added": 1, "updated": 0, "retracted": 0},
}

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "maxLength": KEY_LENGTH},
    OpenApiParameter.HEADER,
    description=f"Up to {KEY_LENGTH} printable characters of your choice. The same key with the same body again gives "
    "the same submission back; with another body it is a conflict. Without one the body itself is the key.",
)
LOCATION = OpenApiParameter(
    "Location", str, OpenApiParameter.HEADER, description="Where the (first) submission is.", response=[200, 202]
)
ID = OpenApiParameter("submission_id", str, OpenApiParameter.PATH, description="From the answer to what you sent.")


def _answered(name: str, example: Any, code: str) -> OpenApiExample:
    return OpenApiExample(name, example, response_only=True, status_codes=[code])


SUBMIT: dict[str, Any] = {
    "operation_id": "submit_match",
    "summary": "Send in the state of a match",
    "description": "Needs the scope ingest. The answer (202) comes when all of it is written down; workers put it into "
    f"its match, usually within a second or two. One match, or up to {MOST_MATCHES} under `matches`, of which all are "
    f"taken or none; up to {MOST_EVENTS} events each, 256 KB in all. `captured_at` is at most "
    f"{CLOCKS_DIFFER.seconds} s ahead of our clock and at most a day old. What can't be used is named by its path, and "
    "nothing of the body is taken then. Sent again, the same is not taken twice: the answer is 200.",
    "tags": [TAG],
    "parameters": [IDEMPOTENCY_KEY, LOCATION],
    "request": SubmissionRequest,
    "responses": {
        202: SubmissionAnswer,
        200: SubmissionAnswer,
        **problem_responses(400, 401, 403, 409, 413, 415, 429, 503),
    },
    "examples": [
        OpenApiExample("a match", SENT, request_only=True),
        _answered("submit_match", ACCEPTED, "202"),
    ],
}
SUBMISSION: dict[str, Any] = {
    "operation_id": "read_submission",
    "summary": "See what became of what you sent",
    "description": "Needs the scope ingest. Only your own submissions are found, for as long as we keep them "
    "(KEEP_SUBMISSIONS_DAYS).",
    "tags": [TAG],
    "parameters": [ID],
    "responses": {200: SubmissionDocument, **problem_responses(401, 403, 404, 429, 503)},
    "examples": [_answered("read_submission", DONE, "200")],
}
