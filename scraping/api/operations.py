"""Operator actions on a match over HTTP; the admin calls the same functions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Annotated, Any

from django.utils import timezone
from pydantic import AwareDatetime
from rest_framework.request import Request
from rest_framework.response import Response

from scraping.api.bodies import Body
from scraping.api.fresh_view import ID, no_such_match
from scraping.api.params import PauseRequest
from scraping.documents.queries import find_match
from scraping.matches import lifecycle, watches
from scraping.models import Match, MatchLifecycle
from victoryline.lib.http.openapi import describe
from victoryline.lib.http.problems import ApiProblem
from victoryline.lib.http.views import ApiView


class LifecycleAnswer(Body):
    id: Annotated[int, attrgetter("pk")]
    title: str
    lifecycle: MatchLifecycle
    pause_until: AwareDatetime | None
    pause_reason: str


def _describe(name: str, summary: str, description: str = "", request: Any = None) -> Callable[[Any], Any]:
    return describe(
        name,
        summary,
        f"Needs the scope operate. {description}".strip(),
        LifecycleAnswer,
        tag="operations",
        problems=(400, 404, 409, 413, 415),
        parameters=[ID],
        request=request,
    )


class _OperationView(ApiView):
    required_scope = "operate"

    def apply(self, request: Request, name: str, change: Callable[..., Match], **values: Any) -> Response:
        """Calls `change` for the match of this name."""
        match = find_match(name)
        if match is None:
            raise no_such_match(name)
        values.setdefault("now", timezone.now())
        try:
            changed = change(match_id=match.pk, actor=actor_of(request), **values)
        except watches.WatchDeferred as refusal:
            raise ApiProblem("insufficient-memory", f"{refusal}.", retry_after=refusal.retry_seconds) from refusal
        except lifecycle.NotAllowed as error:
            raise ApiProblem("conflict", f"{error}.") from error
        return Response(LifecycleAnswer.render(changed))


class PauseView(_OperationView):
    @_describe(
        "pause_match",
        "Pause a match",
        "Polling resumes automatically when the pause ends.",
        PauseRequest,
    )
    def post(self, request: Request, match_id: str) -> Response:
        asked = PauseRequest(data=request.data)
        asked.is_valid(raise_exception=True)
        now: datetime = timezone.now()
        until = now + timedelta(minutes=asked.validated_data["minutes"])
        reason = asked.validated_data["reason"]
        return self.apply(request, match_id, lifecycle.pause, until=until, reason=reason, now=now)


class ResumeView(_OperationView):
    @_describe("resume_match", "Resume a paused match")
    def post(self, request: Request, match_id: str) -> Response:
        return self.apply(request, match_id, lifecycle.resume)


class WatchView(_OperationView):
    @_describe(
        "watch_match",
        "Watch a match",
        "If the workers' machines have too little free memory, the answer is 503 `insufficient-memory` with "
        "Retry-After: the request is stored, and the watch starts automatically when there is enough.",
    )
    def post(self, request: Request, match_id: str) -> Response:
        return self.apply(request, match_id, watches.begin)


class StopView(_OperationView):
    @_describe(
        "stop_match",
        "Stop watching a match",
        "It is no longer polled until it is watched again. Its last state is still served, with its age.",
    )
    def post(self, request: Request, match_id: str) -> Response:
        return self.apply(request, match_id, watches.end, reason="ended by request")


def actor_of(request: Request) -> str:
    """Returns the name of the caller for audit and history."""
    return f"api:{request.user.consumer.name}"[:150]  # type: ignore[union-attr]
