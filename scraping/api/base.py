"""What every view that answers with matches does: freshness headers, conditional requests, `max_age`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rest_framework.exceptions import APIException, NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from scraping.api import answers
from scraping.freshness import Freshness
from scraping.models import Match
from scraping.queries import find_match
from victoryline.lib.http import has_etag
from victoryline.lib.problems import TooStale
from victoryline.lib.views import ApiView

MIN_RETRY_SECONDS = 1.0


@dataclass(frozen=True)
class Answer:
    """What was found; the body is built only when it is sent."""

    freshness: Freshness
    etag: str
    cache_seconds: int
    body: Callable[[], dict[str, Any]]


class FreshView(ApiView):
    """Subclasses say in `find` what they answer. `is_unchanged` is asked before the request is counted."""

    _answer: Answer | None = None

    def find(self, request: Request) -> Answer:
        raise NotImplementedError

    def answer(self, request: Request) -> Answer:
        if self._answer is None:
            self._answer = self.find(request)
        return self._answer

    def is_unchanged(self, request: Request) -> bool:
        try:
            return "If-None-Match" in request.headers and has_etag(request, self.answer(request).etag)
        except APIException:
            return False  # whatever is wrong comes up again, and counts, when the view itself runs

    def respond(self, request: Request) -> Response:
        found = self.answer(request)
        headers = answers.headers(found.freshness, etag=found.etag, cache_seconds=found.cache_seconds)
        if has_etag(request, found.etag):
            return Response(status=304, headers=headers)
        return Response(found.body(), headers=headers)


def match_or_404(name: str) -> Match:
    match = find_match(name)
    if match is None:
        raise NotFound(f"No match is known as {name[:100]}. GET /api/v1/matches lists those that are.")
    return match


def refuse_stale(freshness: Freshness, max_age: int | None) -> None:
    if max_age is None or not freshness.is_older_than(max_age):
        return
    age = freshness.whole_age_seconds
    has_age = "was never read" if age is None else f"is {age} s old"
    raise TooStale(
        f"The data {has_age} and you accept {max_age} s. Ask again after Retry-After, or with a larger max_age.",
        retry_after=max(MIN_RETRY_SECONDS, freshness.next_update_in or MIN_RETRY_SECONDS),
        headers=answers.age_headers(freshness),
        data_age_seconds=age,
        state=freshness.state.value,
    )
