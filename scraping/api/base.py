"""What every view that answers with matches does: freshness headers, conditional requests, `max_age`.

Answers are read from the board, where this process follows what is committed; elsewhere the database is asked. While it
is away the same view is answered from what is known last, with its true age and `X-Data-Source: cache`; what is not
known is a 503.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from rest_framework.exceptions import APIException, NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from scraping.api import answers
from scraping.api.readers import FromBoard, FromDatabase, LastKnown, Reader
from scraping.documents.board import board
from scraping.documents.freshness import DataState, Freshness
from scraping.documents.known import Known, NotKnown
from scraping.documents.queries import find_match
from scraping.models import Match
from victoryline.lib import availability, pg_wait
from victoryline.lib.database_errors import DATABASE_AWAY
from victoryline.lib.http.headers import has_etag
from victoryline.lib.http.problems import DatabaseAway, TooStale
from victoryline.lib.http.views import ApiView

MIN_RETRY_SECONDS, UNPLANNED_RETRY_SECONDS = 1.0, 10.0
SOURCE_HEADER = "X-Data-Source"
JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    """What was found; the body is built only when it is sent."""

    freshness: Freshness
    etag: str
    cache_seconds: int
    body: Callable[[], dict[str, Any] | bytes]
    changed_at: datetime | None = None
    good_for: float | None = None  # seconds until it is older than the caller accepts


class FreshView(ApiView):
    """Subclasses say in `find` what they answer. `is_unchanged` is asked before the request is counted."""

    needs_database = False
    _answer: Answer | None = None
    _is_from_cache = False

    def find(self, request: Request, reader: Reader) -> Answer:
        raise NotImplementedError

    def answer(self, request: Request) -> Answer:
        if self._answer is None:
            self._answer = self._found(request)
        return self._answer

    def is_unchanged(self, request: Request) -> bool:
        try:
            return "If-None-Match" in request.headers and has_etag(request, self.answer(request).etag)
        except APIException:
            return False  # whatever is wrong comes up again, and counts, when the view itself runs

    def respond(self, request: Request) -> HttpResponseBase:
        found = self.answer(request)
        headers = answers.headers(
            found.freshness,
            etag=found.etag,
            cache_seconds=found.cache_seconds,
            changed_at=found.changed_at,
            good_for=found.good_for,
        )
        if self._is_from_cache:
            headers[SOURCE_HEADER] = "cache"
        if has_etag(request, found.etag):
            return _nothing_new(headers)
        body = found.body()
        if isinstance(body, bytes):
            return HttpResponse(body, headers=headers, content_type=JSON)
        return Response(body, headers=headers)

    def _found(self, request: Request) -> Answer:
        if not availability.database.is_away():
            try:
                with pg_wait.within(availability.READ_SECONDS):
                    return self.find(request, FromBoard() if board.is_in_step else FromDatabase())
            except DATABASE_AWAY as error:
                availability.database.report(error)
            except NotKnown:
                pass  # it went away after the match was found: once more, without it
        self._is_from_cache = True
        try:
            return self.find(request, FromBoard() if board.is_in_step else LastKnown())
        except NotKnown as error:
            raise DatabaseAway.now(f"What you ask for ({error}) is not among what we know without it. ") from error


def list_answer(
    found: Sequence[Known],
    max_age: int | None,
    now: datetime,
    *,
    mark: str,
    body: Callable[[Sequence[Known], Freshness, int], bytes],
) -> Answer:
    """Of a list, as every list is judged. `mark` is what else tells it apart; `body` is given what is left of it, its
    freshness, and how many were left out. Raises TooStale."""
    matches, left_out = answers.without_silent_senders(found, max_age, now)
    oldest = answers.list_freshness(matches, now)
    good_for = refuse_stale(oldest, max_age if matches else None)
    freshness = answers.with_next_update(oldest, matches, now)
    return Answer(
        freshness=freshness,
        good_for=good_for,
        etag=answers.list_etag(matches, f"{mark}|{left_out}"),
        cache_seconds=answers.list_cache_seconds(matches),
        changed_at=answers.list_changed_at(matches),
        body=lambda: body(matches, freshness, left_out),
    )


def _nothing_new(headers: dict[str, str]) -> HttpResponse:
    """Plain, for there is nothing to render: what is asked most often should cost the least."""
    answer = HttpResponse(status=304, headers=headers)
    del answer.headers["Content-Type"]
    return answer


def match_or_404(name: str) -> Match:
    match = find_match(name)
    if match is None:
        raise _no_such_match(name)
    return match


def known_or_404(name: str, reader: Reader) -> Known:
    known = reader.match(name)
    if known is None:
        raise _no_such_match(name)
    return known


def _no_such_match(name: str) -> NotFound:
    return NotFound(f"No match is known as {name[:100]}. GET /api/v1/matches lists those that are.")


def refuse_stale(freshness: Freshness, max_age: int | None) -> float | None:
    """For how many seconds more it is good enough for the caller; None: for ever. Raises TooStale."""
    if max_age is None or freshness.state == DataState.FINAL:
        return None
    if freshness.age_seconds is not None and not freshness.is_older_than(max_age):
        return max_age - freshness.age_seconds
    age = freshness.whole_age_seconds
    raise TooStale(
        f"The data {_has_age(freshness.age_seconds, max_age)} and you accept {max_age} s. "
        "Ask again after Retry-After, or with a larger max_age.",
        retry_after=_time_to_come_back(freshness.next_update_in),
        headers=answers.age_headers(freshness),
        data_age_seconds=age,
        state=freshness.state.value,
    )


def _time_to_come_back(next_update_in: float | None) -> float:
    """When it is read again. What nobody reads (it is sent in, or was stopped) is no reason to ask every second."""
    return UNPLANNED_RETRY_SECONDS if next_update_in is None else max(MIN_RETRY_SECONDS, next_update_in)


def _has_age(age: float | None, max_age: int) -> str:
    """In whole seconds, rounded down as everywhere; never the number that would have been young enough."""
    if age is None:
        return "was never read"
    whole = math.floor(age)
    return f"is {whole} s old" if whole > max_age else f"is {math.ceil(age * 10) / 10:.1f} s old"
