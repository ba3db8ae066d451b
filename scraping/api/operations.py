"""What operators may do to a match over HTTP; the admin calls the same functions."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from scraping.api.base import match_or_404
from scraping.api.described import PAUSE, RESUME, STOP, WATCH
from scraping.api.params import PauseRequest
from scraping.matches import lifecycle, watches
from scraping.models import Match
from victoryline.lib.http.problems import Conflict, NoMemory
from victoryline.lib.http.views import ApiView
from victoryline.lib.times import as_utc_iso


class PauseView(ApiView):
    required_scope = "operate"

    @extend_schema(**PAUSE)
    def post(self, request: Request, match_id: str) -> Response:
        now, match = timezone.now(), match_or_404(match_id)
        asked = PauseRequest(data=request.data)
        asked.is_valid(raise_exception=True)
        until = now + timedelta(minutes=asked.validated_data["minutes"])
        try:
            paused = lifecycle.pause(
                match_id=match.pk, until=until, reason=asked.validated_data["reason"], actor=actor_of(request), now=now
            )
        except lifecycle.NotAllowed as error:
            raise Conflict(f"{error}.") from error
        return Response(_body(paused))


class ResumeView(ApiView):
    required_scope = "operate"

    @extend_schema(**RESUME)
    def post(self, request: Request, match_id: str) -> Response:
        match = match_or_404(match_id)
        try:
            resumed = lifecycle.resume(match_id=match.pk, actor=actor_of(request), now=timezone.now())
        except lifecycle.NotAllowed as error:
            raise Conflict(f"{error}.") from error
        return Response(_body(resumed))


class WatchView(ApiView):
    required_scope = "operate"

    @extend_schema(**WATCH)
    def post(self, request: Request, match_id: str) -> Response:
        match = match_or_404(match_id)
        try:
            watched = watches.begin(match_id=match.pk, actor=actor_of(request), now=timezone.now())
        except watches.WatchDeferred as refusal:
            raise NoMemory(f"{refusal}.", retry_after=refusal.retry_seconds) from refusal
        except lifecycle.NotAllowed as error:
            raise Conflict(f"{error}.") from error
        return Response(_body(watched))


class StopView(ApiView):
    required_scope = "operate"

    @extend_schema(**STOP)
    def post(self, request: Request, match_id: str) -> Response:
        match = match_or_404(match_id)
        try:
            ended = watches.end(
                match_id=match.pk, reason="ended by request", actor=actor_of(request), now=timezone.now()
            )
        except lifecycle.NotAllowed as error:
            raise Conflict(f"{error}.") from error
        return Response(_body(ended))


def actor_of(request: Request) -> str:
    """The caller, as audit and history name them."""
    return f"api:{getattr(request.user, 'name', 'unknown')}"[:150]


def _body(match: Match) -> dict[str, object]:
    return {
        "id": match.pk,
        "title": match.title,
        "lifecycle": match.lifecycle,
        "pause_until": as_utc_iso(match.pause_until) if match.pause_until else None,
        "pause_reason": match.pause_reason,
    }
