"""The OpenAPI document: its views, the description of an operation, and a drf-spectacular hook that completes all
operations with headers, problems, examples and links.

`complete` is listed in SPECTACULAR_SETTINGS["POSTPROCESSING_HOOKS"].
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.utils import OpenApiParameter, extend_schema

from victoryline.lib.http import problems
from victoryline.lib.http.compression import BEST, GZIP_ETAG, accepts_gzip, gzipped
from victoryline.lib.http.problems import problem_responses
from victoryline.lib.http.strict_serializer import NOT_BLANK
from victoryline.lib.http.views import not_modified

REQUEST_ID = "5f0c6f5f4d0a4e0c9d3b6a1f2e7c8b90"
LIMITS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
# Header: type, description, example.
HEADERS: dict[str, tuple[str, str, Any]] = {
    "X-Request-Id": ("string", "The id of the request in our logs: your own, if the request had one.", REQUEST_ID),
    "X-RateLimit-Limit": ("integer", "Your limit of requests per minute.", 100),
    "X-RateLimit-Remaining": ("integer", "Requests that are left in the present window.", 97),
    "X-RateLimit-Reset": ("integer", "Unix time at which the present window ends.", 1763825040),
    "Retry-After": ("integer", "Seconds to wait before the next request.", 5),
    "WWW-Authenticate": ("string", "The required authentication scheme.", 'Bearer realm="victoryline"'),
    "Cache-Control": ("string", "How long the answer may be cached.", "private, max-age=2"),
    "Last-Modified": ("string", "Time of the last change of the data.", "Sat, 22 Nov 2025 15:23:47 GMT"),
    "X-Data-Age-Seconds": ("integer", "Seconds since the source was read.", 42),
    "X-Data-State": ("string", "fresh, aging, partial, stale, frozen, paused, final or unknown.", "stale"),
}
FRESHNESS = "X-Data-State"  # answers with this header are about matches

Operation = dict[str, Any]
# By operation: `request` and `answer`, each with examples by name. Tests compare them with the schemas.
EXAMPLES: dict[str, dict[str, dict[str, Any]]] = json.loads((Path(__file__).parent / "examples.json").read_text())


def describe(
    name: str,
    summary: str,
    description: str,
    body: Any,
    *,
    tag: str,
    problems: Sequence[int],
    answers: Mapping[int, Any] | None = None,
    **more: Any,
) -> Callable[[Any], Any]:
    """Describes an operation that needs a token; its examples are in examples.json."""
    refusals = problem_responses(*sorted({401, 403, 429, 503, *problems}))
    return extend_schema(
        operation_id=name,
        summary=summary,
        description=description,
        tags=[tag],
        responses={200: body, **(answers or {}), **refusals},
        **more,
    )


def idempotency_parameters(longest: int, description: str, *, location: str) -> list[OpenApiParameter]:
    """Returns the headers of a POST that may be repeated: the key of the request, the address of the result."""
    return [
        OpenApiParameter(
            "Idempotency-Key",
            {"type": "string", "maxLength": longest},
            OpenApiParameter.HEADER,
            description=description,
        ),
        OpenApiParameter("Location", str, OpenApiParameter.HEADER, description=location, response=[200, 202]),
    ]


def complete(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    schemas = result["components"]["schemas"]
    operations = {}
    for path, ways in result["paths"].items():
        for operation in ways.values():
            operations[operation["operationId"]] = operation
            is_read = FRESHNESS in operation["responses"].get("200", {}).get("headers", {})
            for code, answer in operation["responses"].items():
                _add_headers(answer, int(code), is_read=is_read)
                _add_problem(answer, int(code), path)
            _add_examples(operation)
            _refuse_blanks(operation)
            if _is_body_needed(operation, schemas):
                operation["requestBody"]["required"] = True
    for link in LINKS:
        name = f"{link.to}_after_{link.of}" if link.to != link.of else f"next_of_{link.of}"
        linked = {"operationId": link.to, "parameters": link.parameters, "description": link.description}
        operations[link.of]["responses"][link.status].setdefault("links", {})[name] = linked
    result["components"]["headers"] = {name: _header(name) for name in HEADERS}
    return result


def _add_examples(operation: Operation) -> None:
    known = EXAMPLES.get(operation["operationId"], {})
    taken = [operation.get("requestBody", {})]
    given = [answer for code, answer in operation["responses"].items() if code < "300"]
    for part, bodies in (("request", taken), ("answer", given)):
        shown = {
            "".join(word.capitalize() for word in name.replace("_", " ").split()): {"value": value, "summary": name}
            for name, value in known.get(part, {}).items()
        }
        for content in (content for body in bodies for content in body.get("content", {}).values()):
            content["examples"] = shown


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


def _header(name: str) -> dict[str, Any]:
    kind, description, example = HEADERS[name]
    is_promised = name in ("X-Request-Id", "Retry-After", "WWW-Authenticate", *LIMITS)
    return {"schema": {"type": kind}, "description": description, "required": is_promised, "example": example}


def _add_headers(answer: dict[str, Any], code: int, *, is_read: bool) -> None:
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


def _add_problem(answer: dict[str, Any], code: int, path: str) -> None:
    """Adds a problem document of the usual kind as an example."""
    content = answer.get("content", {}).get(problems.MEDIA_TYPE)
    if content is None:
        return
    request = HttpRequest()
    request.path = path.replace("{match_id}", "crex_13KM").replace("{job_id}", "7")
    request.request_id = REQUEST_ID  # type: ignore[attr-defined]
    more = {"retry_after": problems.RETRY_SECONDS} if code in (429, 503) else {}
    shown = problems.document(request, code, problems.KINDS[problems.of_status(code)].meaning, extensions=more)
    content["examples"] = {shown["code"]: {"value": shown}}


class Link(NamedTuple):
    """A link from the answer of one operation to the parameters (runtime expressions) of another."""

    of: str
    status: str
    to: str
    description: str
    parameters: dict[str, str]


ID = {"match_id": "$response.body#/id"}
SAME = {"match_id": "$request.path.match_id"}
JOB = {"job_id": "$response.body#/id"}
BODY = "$response.body#"
OF_A_MATCH = ("list_events", "list_lineups", "list_conflicts", "list_snapshots")
LINKS = (
    Link("list_matches", "200", "read_match", "A match of the list.", {"match_id": f"{BODY}/matches/0/id"}),
    *(Link("read_match", "200", to, "Further data of the match.", ID) for to in OF_A_MATCH),
    Link("read_match", "200", "read_delta", "The changes after this state.", {**ID, "since": f"{BODY}/sequence"}),
    Link("read_match", "200", "watch_match", "Starts polling the match.", ID),
    Link("list_events", "200", "list_events", "The rows that follow.", {**SAME, "since": f"{BODY}/next_since"}),
    Link(
        "list_snapshots", "200", "read_snapshot", "One of them.", {**SAME, "sequence": f"{BODY}/snapshots/0/sequence"}
    ),
    Link("list_live_matches", "200", "read_match_info", "One of them.", {"match_id": f"{BODY}/matches/0/matchId"}),
    Link("watch_match", "200", "stop_match", "Ends the watch.", ID),
    Link("pause_match", "200", "resume_match", "Ends the pause.", ID),
    Link("start_job", "202", "read_job", "How far it is.", JOB),
    Link("start_job", "200", "read_job", "How far it is.", JOB),
    Link("list_jobs", "200", "read_job", "One of them.", {"job_id": f"{BODY}/jobs/0/id"}),
    Link(
        "submit_match",
        "202",
        "read_submission",
        "The state of the submission.",
        {"submission_id": f"{BODY}/submission_id"},
    ),
)


_being_made = threading.Lock()


@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    found = document()
    headers = {"Cache-Control": "max-age=300", "Vary": "Accept-Encoding"}
    headers["ETag"] = found.etag
    if unchanged := not_modified(request, headers):
        return unchanged
    if not accepts_gzip(request):
        return HttpResponse(found.text, content_type="application/json", headers=headers)
    headers |= {"ETag": found.etag[:-1] + GZIP_ETAG, "Content-Encoding": "gzip"}
    return HttpResponse(found.compressed, content_type="application/json", headers=headers)


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Swagger UI, served from this server without inline scripts."""
    return render(request, "api_docs.html")


class RenderedSchema(NamedTuple):
    text: bytes
    compressed: bytes
    etag: str


def document() -> RenderedSchema:
    """Built once per process, by one thread at a time: drf-spectacular keeps state that all threads share."""
    with _being_made:
        return _document()


@cache
def _document() -> RenderedSchema:
    described = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    rendered: bytes = OpenApiJsonRenderer().render(described)
    return RenderedSchema(rendered, gzipped(rendered, BEST), f'"{hashlib.sha256(rendered).hexdigest()[:32]}"')
