"""The OpenAPI document: its view, and a drf-spectacular hook that adds headers, problems and links to all operations.

`complete` is listed in SPECTACULAR_SETTINGS["POSTPROCESSING_HOOKS"].
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer

from victoryline.lib.http import problems
from victoryline.lib.http.strict_serializer import NOT_BLANK

REQUEST_ID = "5f0c6f5f4d0a4e0c9d3b6a1f2e7c8b90"
LIMITS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
# Header: type, description, example.
HEADERS: dict[str, tuple[str, str, Any]] = {
    "X-Request-Id": ("string", "Names this answer in our logs. Your own, if you sent one.", REQUEST_ID),
    "X-RateLimit-Limit": ("integer", "Requests a minute that you have.", 100),
    "X-RateLimit-Remaining": ("integer", "Requests that are left now.", 97),
    "X-RateLimit-Reset": ("integer", "Unix time at which the present window ends.", 1763825040),
    "Retry-After": ("integer", "Seconds to wait before you ask again.", 5),
    "WWW-Authenticate": ("string", "How to say who you are.", 'Bearer realm="victoryline"'),
    "Cache-Control": ("string", "How long the answer may be kept.", "private, max-age=2"),
    "Last-Modified": ("string", "When the data changed last.", "Sat, 22 Nov 2025 15:23:47 GMT"),
    "X-Data-Age-Seconds": ("integer", "Seconds since the source was read.", 42),
    "X-Data-State": ("string", "fresh, aging, stale, frozen, paused, final or unknown.", "stale"),
}
DETAILS = {
    400: "`limit` can't be used: Ensure this value is less than or equal to 100.",
    401: "Send a token: `Authorization: Bearer <token>`. POST /token/generate-token gives one for an API key.",
    403: 'This needs a key with the scope "operate"; yours doesn\'t have it.',
    404: "No match is known as crex_13KM. GET /api/v1/matches lists those that are.",
    409: "The match is not paused.",
    410: "What you ask for is older than what we keep. Read the match anew and go on from its sequence.",
    413: "The body may hold 256 KB at most.",
    415: 'Unsupported media type "text/plain" in request.',
    429: "You have used up your requests for now. Try again in 12 s.",
    503: "Our database can't be reached at the moment. Nothing is lost; try again in a few seconds.",
}
TOO_STALE = "The data is 42 s old and you accept 10 s. Ask again after Retry-After, or with a larger max_age."
FRESHNESS = "X-Data-State"  # answers with this header are about matches

Operation = dict[str, Any]


def complete(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    described = {each["operationId"]: each for each in operations_of(result)}
    schemas = result["components"]["schemas"]
    for path, operation in _with_paths(result):
        is_read = FRESHNESS in operation["responses"].get("200", {}).get("headers", {})
        for code, answer in operation["responses"].items():
            _add_headers(answer, int(code), is_read=is_read, is_open=not operation.get("security"))
            _add_problems(answer, int(code), path, takes_age=_takes(operation, "max_age"))
        _share_examples(operation["responses"])
        _refuse_blanks(operation)
        if _is_body_needed(operation, schemas):
            operation["requestBody"]["required"] = True
    add_links(described)
    result["components"]["headers"] = {name: _header(name) for name in HEADERS}
    return result


def operations_of(description: dict[str, Any]) -> Iterator[Operation]:
    for _, operation in _with_paths(description):
        yield operation


def _with_paths(description: dict[str, Any]) -> Iterator[tuple[str, Operation]]:
    for path, ways in description["paths"].items():
        for operation in ways.values():
            yield path, operation


def _takes(operation: Operation, name: str) -> bool:
    return any(each["name"] == name for each in operation.get("parameters", ()))


def _is_body_needed(operation: Operation, schemas: dict[str, Any]) -> bool:
    """drf-spectacular checks single fields; it does not know groups of fields of which one is required."""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        name = content["schema"].get("$ref", "").rpartition("/")[2]
        if any(rule in schemas.get(name, {}) for rule in ("oneOf", "anyOf", "required")):
            return True
    return False


def _refuse_blanks(operation: Operation) -> None:
    """Documents that query text is stripped and must not be blank."""
    for each in operation.get("parameters", ()):
        schema = each["schema"]
        is_plain = schema.get("type") == "string" and not {"pattern", "enum", "format"} & schema.keys()
        if each["in"] == "query" and is_plain:
            schema["pattern"] = NOT_BLANK


def _share_examples(answers: dict[str, Any]) -> None:
    """Shares the example of a 200 and a 202 with the same body."""
    contents = [answers[code]["content"] for code in ("200", "202") if "content" in answers.get(code, {})]
    for kind in {kind for content in contents for kind in content}:
        same = [content[kind] for content in contents if kind in content]
        shown = next((each["examples"] for each in same if each.get("examples")), None)
        for each in same:
            if shown and not each.get("examples") and each["schema"] == same[0]["schema"]:
                each["examples"] = shown


def _header(name: str) -> dict[str, Any]:
    kind, description, example = HEADERS[name]
    is_promised = name in ("X-Request-Id", "Retry-After", "WWW-Authenticate", *LIMITS)
    return {"schema": {"type": kind}, "description": description, "required": is_promised, "example": example}


def _add_headers(answer: dict[str, Any], code: int, *, is_read: bool, is_open: bool) -> None:
    names = ["X-Request-Id", *LIMITS]
    if code == 401:
        names.append("WWW-Authenticate")
    if code in (429, 503):
        names.append("Retry-After")
    if is_read and code in (200, 304):
        names += ["Cache-Control", "Last-Modified"]
    if is_read and code == 503:
        names += ["X-Data-Age-Seconds", "X-Data-State"]
    headers = answer.setdefault("headers", {})
    for name in names:
        headers[name] = {"$ref": f"#/components/headers/{name}"}
    if code == 404:  # a path that no operation matches has no rate-limit headers
        headers.update({name: {**_header(name), "required": False} for name in LIMITS})


def _add_problems(answer: dict[str, Any], code: int, path: str, *, takes_age: bool) -> None:
    content = answer.get("content", {}).get(problems.MEDIA_TYPE)
    if content is None:
        return
    shown = [_problem(path, code, DETAILS[code])]
    if code == 503 and takes_age:
        more = {"retry_after": 3, "data_age_seconds": 42, "state": "stale"}
        shown.append(_problem(path, code, TOO_STALE, kind="too-stale", extensions=more))
    named = {each["type"].rpartition("/")[2]: {"value": each} for each in shown}
    content.setdefault("examples", {}).update(named)


def _problem(path: str, code: int, detail: str, **more: Any) -> dict[str, Any]:
    """Builds the problem document as the API would answer it."""
    request = HttpRequest()
    request.path = path.replace("{match_id}", "crex_13KM").replace("{job_id}", "7")
    request.request_id = REQUEST_ID  # type: ignore[attr-defined]
    document = problems.document(request, code, detail, **more)
    waits = {429: 12, 503: 5}
    if code in waits:
        document.setdefault("retry_after", waits[code])
    return document


@dataclass(frozen=True)
class Link:
    """A link from the answer of one operation to the parameters (runtime expressions) of another."""

    of: str
    status: str
    to: str
    description: str
    parameters: tuple[tuple[str, str], ...]

    def described(self) -> dict[str, Any]:
        return {"operationId": self.to, "parameters": dict(self.parameters), "description": self.description}


def _link(of: str, status: str, to: str, description: str, **parameters: str) -> Link:
    return Link(of, status, to, description, tuple(parameters.items()))


ID = "$response.body#/id"
SAME = "$request.path.match_id"
OF_A_MATCH = ("list_events", "list_lineups", "list_conflicts", "list_snapshots")
LINKS = (
    _link("list_matches", "200", "read_match", "All of a match in the list.", match_id="$response.body#/matches/0/id"),
    *(_link("read_match", "200", to, "What belongs to the match.", match_id=ID) for to in OF_A_MATCH),
    _link(
        "read_match", "200", "read_delta", "What changes from now on.", match_id=ID, since="$response.body#/sequence"
    ),
    _link("read_match", "200", "watch_match", "To have it read.", match_id=ID),
    _link("list_events", "200", "list_events", "What comes after.", match_id=SAME, since="$response.body#/next_since"),
    _link(
        *("list_snapshots", "200", "read_snapshot", "One of them."),
        match_id=SAME,
        sequence="$response.body#/snapshots/0/sequence",
    ),
    _link("list_live_matches", "200", "read_match_info", "One of them.", match_id="$response.body#/matches/0/matchId"),
    _link("watch_match", "200", "stop_match", "The end of the watch.", match_id=ID),
    _link("pause_match", "200", "resume_match", "The end of the pause.", match_id=ID),
    _link("start_job", "202", "read_job", "How far it is.", job_id=ID),
    _link("start_job", "200", "read_job", "How far it is.", job_id=ID),
    _link("list_jobs", "200", "read_job", "One of them.", job_id="$response.body#/jobs/0/id"),
    _link(
        *("submit_match", "202", "read_submission", "What became of it."),
        submission_id="$response.body#/submission_id",
    ),
)


def add_links(operations: dict[str, dict[str, Any]]) -> None:
    """Adds the links to `operations`, given by id. Links to unknown operations are left out; a test reports them."""
    for link in LINKS:
        answer = operations.get(link.of, {}).get("responses", {}).get(link.status)
        if answer is not None and link.to in operations:
            answer.setdefault("links", {})[_name(link)] = link.described()


def _name(link: Link) -> str:
    return f"{link.to}_after_{link.of}" if link.to != link.of else f"next_of_{link.of}"


_being_made = threading.Lock()


@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    return HttpResponse(document(), content_type="application/json", headers={"Cache-Control": "max-age=300"})


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Swagger UI, served from this server without inline scripts."""
    return render(request, "api_docs.html")


def document() -> bytes:
    """Built once per process, by one thread at a time: drf-spectacular keeps state that all threads share."""
    with _being_made:
        return _document()


@cache
def _document() -> bytes:
    described = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    rendered: bytes = OpenApiJsonRenderer().render(described)
    return rendered
