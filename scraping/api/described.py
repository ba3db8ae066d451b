"""How the API's description (OpenAPI) presents each endpoint."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from scraping.api import documents, examples, history_problems
from scraping.api.params import EventParams, ListParams, MatchParams, MaxAgeParams, PauseRequest
from victoryline.lib.http.problems import problem_responses

ID = OpenApiParameter(
    "match_id", str, OpenApiParameter.PATH, description="The match's number, or its key at a source such as crex_13KM."
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    str,
    OpenApiParameter.HEADER,
    description="The ETag you have. Unchanged: 304 with fresh headers, which costs no quota.",
)


def _out(name: str, description: str, kind: type = str) -> OpenApiParameter:
    return OpenApiParameter(name, kind, OpenApiParameter.HEADER, description=description, response=[200, 304])


FRESHNESS_HEADERS = [
    _out("X-Data-Freshness", "When the source was last read successfully (ISO 8601). Absent if it never was."),
    _out("X-Data-Age-Seconds", "Seconds since then.", int),
    _out("X-Data-State", "fresh, aging, stale, frozen, paused, final or unknown."),
    _out("X-Next-Update-In", "Seconds until we read the source again. Absent when we won't.", int),
    _out("X-Data-Source", "cache: our database is away, and this is what was known last. Absent otherwise."),
    _out("ETag", "Names this version of the data."),
    _out("X-RateLimit-Limit", "Requests a minute.", int),
    _out("X-RateLimit-Remaining", "Requests left.", int),
    _out("X-RateLimit-Reset", "Unix time at which the present window ends.", int),
]

LINK = _out("Link", 'Where the first and the next page are: `<...>; rel="next"` (RFC 8288).')


def _read(
    name: str, summary: str, description: str, body: type[documents.Document], example: Any, *, tag: str, **more: Any
) -> dict[str, Any]:
    problems = problem_responses(*sorted({400, 401, 403, 404, 429, 503, *more.get("problems", ())}))
    return {
        "operation_id": name,
        "summary": summary,
        "description": description,
        "tags": [tag],
        "parameters": [*more.get("parameters", ()), IF_NONE_MATCH, *FRESHNESS_HEADERS, *more.get("headers", ())],
        "responses": {200: body, 304: None, **problems},
        "examples": [
            OpenApiExample(title, shown, response_only=True, status_codes=["200"])
            for title, shown in {name: example, **more.get("examples", {})}.items()
        ],
    }


described = _read  # for endpoints that have a module of their own


def _operate(name: str, summary: str, description: str, request: Any) -> dict[str, Any]:
    return {
        "operation_id": name,
        "summary": summary,
        "description": description,
        "tags": ["operations"],
        "parameters": [ID],
        "request": request,
        "responses": {
            200: documents.LifecycleAnswer,
            **problem_responses(400, 401, 403, 404, 409, 413, 415, 429, 503),
        },
        "examples": [
            OpenApiExample(name, examples.PAUSED, response_only=True, status_codes=["200"]),
            *([OpenApiExample("a pause", examples.PAUSE, request_only=True)] if request else []),
        ],
    }


MATCHES = _read(
    "list_matches",
    "List matches",
    "Newest first. The headers speak for the oldest live match in the answer.",
    documents.MatchList,
    {"matches": [examples.ITEM], "next": None, "_metadata": examples.LIST_METADATA},
    tag="matches",
    parameters=[ListParams],
    headers=[LINK],
)
MATCH = _read(
    "read_match",
    "Read a match",
    "The unified schema, the same for every sport and source, with the age of the data. A match that turned out to be "
    "another one, known from another source, answers with that one, under its id. With `as_of` or `sequence`: the "
    "match as it was, as long as that is kept (410 `too-old` otherwise); such an answer is final and says which state "
    "it is.",
    documents.MatchDocument,
    {**examples.MATCH, "provenance": examples.PROVENANCE},
    tag="matches",
    parameters=[ID, MatchParams],
    problems=(history_problems.GONE,),
    examples={"read_match_as_it_was": examples.PAST_MATCH, "read_match_in_doubt": examples.DOUBTED_MATCH},
)
EVENTS = _read(
    "list_events",
    "Follow a match's events",
    "Balls, wickets, goals and corrections to them, in the order we learnt of them. An update or retraction is a row "
    "with the event_id of what it corrects. Under the number of a match that turned out to be another one only "
    "`since=0` is answered, with the feed of that one; anything else is a 410 `delta-overflow`: begin anew. A number "
    "that no row has come to yet is a 409, as in a delta.",
    documents.EventFeed,
    {"events": [examples.EVENT], "next_since": 9001, "has_more": False, "_metadata": examples.FULL_METADATA},
    tag="matches",
    parameters=[ID, EventParams],
    problems=(409, history_problems.GONE),
)
MATCH_INFO = _read(
    "read_match_info",
    "Read a cricket match",
    "The older, cricket-only shape.",
    documents.MatchInfo,
    examples.MATCH_INFO,
    tag="cricket-data",
    parameters=[ID, MaxAgeParams],
)
LIVE_MATCHES = _read(
    "list_live_matches",
    "List live cricket matches",
    "Every live cricket match in the older shape.",
    documents.LiveMatches,
    {"matches": [examples.MATCH_INFO], "_metadata": examples.LIST_METADATA},
    tag="cricket-data",
    parameters=[MaxAgeParams],
)
PAUSE = _operate(
    "pause_match",
    "Stop reading a match for a while",
    "Needs the scope operate. The match goes on by itself when the time is over.",
    PauseRequest,
)
RESUME = _operate("resume_match", "Read a paused match again", "Needs the scope operate.", None)
WATCH = _operate(
    "watch_match",
    "Read a match from now on",
    "Needs the scope operate. Where the workers' machines have too little memory left the answer is 503 "
    "`insufficient-memory` with Retry-After: the wish is noted, and the watch begins by itself when there is room.",
    None,
)
STOP = _operate(
    "stop_match",
    "Read a match no more",
    "Needs the scope operate. What is known of it stays served, with its age, until somebody watches it again.",
    None,
)
