"""The OpenAPI descriptions of the endpoints that read matches."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from scraping.api import bodies, examples, history_bodies, history_problems
from scraping.api.params import (
    MAX_SEQUENCE,
    ConflictParams,
    DeltaParams,
    EventParams,
    LineupParams,
    ListParams,
    MatchParams,
    MaxAgeParams,
    SnapshotParams,
)
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


def described(
    name: str, summary: str, description: str, body: type[bodies.Body], example: Any, *, tag: str, **more: Any
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


MATCHES = described(
    "list_matches",
    "List matches",
    "Newest first. The headers speak for the oldest live match in the answer.",
    bodies.MatchList,
    {"matches": [examples.ITEM], "next": None, "_metadata": examples.LIST_METADATA},
    tag="matches",
    parameters=[ListParams],
    headers=[LINK],
)
MATCH = described(
    "read_match",
    "Read a match",
    "The unified schema, the same for every sport and source, with the age of the data. A match that turned out to be "
    "another one, known from another source, answers with that one, under its id. With `as_of` or `sequence`: the "
    "match as it was, as long as that is kept (410 `too-old` otherwise); such an answer is final and says which state "
    "it is.",
    bodies.MatchDocument,
    {**examples.MATCH, "provenance": examples.PROVENANCE},
    tag="matches",
    parameters=[ID, MatchParams],
    problems=(history_problems.GONE,),
    examples={"read_match_as_it_was": examples.PAST_MATCH, "read_match_in_doubt": examples.DOUBTED_MATCH},
)
EVENTS = described(
    "list_events",
    "Follow a match's events",
    "Balls, wickets, goals and corrections to them, in the order we learnt of them. An update or retraction is a row "
    "with the event_id of what it corrects. Under the number of a match that turned out to be another one only "
    "`since=0` is answered, with the feed of that one; anything else is a 410 `delta-overflow`: begin anew. A number "
    "that no row has come to yet is a 409, as in a delta.",
    history_bodies.EventFeed,
    {"events": [examples.EVENT], "next_since": 9001, "has_more": False, "_metadata": examples.FULL_METADATA},
    tag="matches",
    parameters=[ID, EventParams],
    problems=(409, history_problems.GONE),
)
SEQUENCE = OpenApiParameter(
    "sequence",
    {"type": "integer", "minimum": 1, "maximum": MAX_SEQUENCE},
    OpenApiParameter.PATH,
    description="The number that the match had.",
)

DELTA = described(
    "read_delta",
    "Read what has changed in a match",
    "The difference between the match as you have it (`since`: its sequence) and as it is. Put `changed` over your "
    "document, take `removed` out of it, and you have the state of `to_sequence`, field for field. Where the state "
    "that you have is kept no more the answer is 410 `delta-overflow`: read the match whole, and go on from "
    "its sequence.",
    history_bodies.MatchDelta,
    examples.DELTA,
    tag="history",
    parameters=[ID, DeltaParams],
    problems=(409, history_problems.GONE),
)
SNAPSHOTS = described(
    "list_snapshots",
    "List the states that a match had",
    "Newest first, as far back as they are kept, each with what changed in it.",
    history_bodies.SnapshotList,
    examples.SNAPSHOTS,
    tag="history",
    parameters=[ID, SnapshotParams],
)
SNAPSHOT = described(
    "read_snapshot",
    "Read a state that a match had",
    "As it is stored, with its checksum and whose word each field was. It never changes. One that is kept no more is a "
    "410 `too-old` that says how far back they reach.",
    history_bodies.SnapshotDocument,
    examples.SNAPSHOT,
    tag="history",
    parameters=[ID, SEQUENCE, MaxAgeParams],
    problems=(history_problems.GONE,),
)
LINEUPS = described(
    "list_lineups",
    "Read who plays",
    "Line-ups with formation, starters and bench, one a side and source. What was known before the start is kept as it "
    "was known then (captured_at is before kickoff); ratings come after the end, as rows of their own.",
    history_bodies.MatchLineups,
    examples.LINEUPS,
    tag="matches",
    parameters=[ID, LineupParams],
)
CONFLICTS = described(
    "list_conflicts",
    "Read what a match's sources disagree about",
    "A field that two sources tell differently, by more than a delay would explain: runs or wickets by more than 5 %, "
    "goals, the end of the match, the teams, the toss, the start by more than a quarter of an hour. `provisional`: a "
    "score that a source took back, and that waits to be confirmed.",
    history_bodies.MatchConflicts,
    examples.CONFLICTS,
    tag="matches",
    parameters=[ID, ConflictParams],
)
