"""Operator actions on a match over HTTP; the admin calls the same functions."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from pydantic import AwareDatetime
from rest_framework.request import Request
from rest_framework.response import Response

from scraping.api import examples
from scraping.api.bodies import Body, From
from scraping.api.endpoints import ID
from scraping.api.fresh_view import no_such_match
from scraping.api.params import PauseRequest
from scraping.documents.queries import find_match
from scraping.matches import lifecycle, watches
from scraping.models import Match, MatchLifecycle
from victoryline.lib.http.problems import Conflict, NoMemory, problem_responses
from victoryline.lib.http.views import ApiView


class LifecycleAnswer(Body):
    id: Annotated[int, From("pk")]
    title: str
    lifecycle: MatchLifecycle
    pause_until: AwareDatetime | None
    pause_reason: str


def _operate(name: str, summary: str, description: str, request: Any) -> dict[str, Any]:
    return {
        "operation_id": name,
        "summary": summary,
        "description": description,
        "tags": ["operations"],
        "parameters": [ID],
        "request": request,
        "responses": {
            200: LifecycleAnswer,
            **problem_responses(400, 401, 403, 404, 409, 413, 415, 429, 503),
        },
        "examples": [
            OpenApiExample(name, examples.PAUSED, response_only=True, status_codes=["200"]),
            *([OpenApiExample("a pause", examples.PAUSE, request_only=True)] if request else []),
        ],
    }


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


class PauseView(ApiView):
    required_scope = "operate"

    @extend_schema(**PAUSE)
    def post(self, request: Request, match_id: str) -> Response:
        now, match = timezone.now(), _match(match_id)
        asked = PauseRequest(data=request.data)
        asked.is_valid(raise_exception=True)
        until = now + timedelta(minutes=asked.validated_data["minutes"])
        try:
            paused = lifecycle.pause(
                match_id=match.pk, until=until, reason=asked.validated_data["reason"], actor=actor_of(request), now=now
            )
        except lifecycle.NotAllowed as error:
            raise Conflict(f"{error}.") from error
        return Response(LifecycleAnswer.render(paused))


class ResumeView(ApiView):
    required_scope = "operate"

    @extend_schema(**RESUME)
    def post(self, request: Request, match_id: str) -> Response:
        match = _match(match_id)
        try:
            resumed = lifecycle.resume(match_id=match.pk, actor=actor_of(request), now=timezone.now())
        except lifecycle.NotAllowed as error:
            raise Conflict(f"{error}.") from error
        return Response(LifecycleAnswer.render(resumed))


class WatchView(ApiView):
    required_scope = "operate"

    @extend_schema(**WATCH)
    def post(self, request: Request, match_id: str) -> Response:
        match = _match(match_id)
        try:
            watched = watches.begin(match_id=match.pk, actor=actor_of(request), now=timezone.now())
        except watches.WatchDeferred as refusal:
            raise NoMemory(f"{refusal}.", retry_after=refusal.retry_seconds) from refusal
        except lifecycle.NotAllowed as error:
            raise Conflict(f"{error}.") from error
        return Response(LifecycleAnswer.render(watched))


class StopView(ApiView):
    required_scope = "operate"

    @extend_schema(**STOP)
    def post(self, request: Request, match_id: str) -> Response:
        match = _match(match_id)
        try:
            ended = watches.end(
                match_id=match.pk, reason="ended by request", actor=actor_of(request), now=timezone.now()
            )
        except lifecycle.NotAllowed as error:
            raise Conflict(f"{error}.") from error
        return Response(LifecycleAnswer.render(ended))


def actor_of(request: Request) -> str:
    """The caller, as audit and history name them."""
    return f"api:{getattr(request.user, 'name', 'unknown')}"[:150]


def _match(name: str) -> Match:
    found = find_match(name)
    if found is None:
        raise no_such_match(name)
    return found
