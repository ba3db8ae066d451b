"""The view of all match answers: freshness headers, conditional requests, `max_age`.

While the database is away it answers with the last known data, its true age and `X-Data-Source: cache`, or with 503.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.utils import timezone
from django.utils.http import http_date
from drf_spectacular.utils import OpenApiParameter, extend_schema_view
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from scraping.api.bodies import Body
from scraping.api.params import MaxAgeParams
from scraping.documents.cache import documents
from scraping.documents.cached_match import CACHE, SHOWN, CachedMatch, NotCachedError, Page
from scraping.documents.filters import MatchFilter, Place
from scraping.documents.freshness import DataState, Freshness
from scraping.payloads import Status, checksum_of
from victoryline.lib.http.openapi import describe
from victoryline.lib.http.problems import ApiProblem, DatabaseAway
from victoryline.lib.http.views import ConditionalView, MakeBody, read_params
from victoryline.lib.times import as_utc_iso

CACHE_SECONDS = {Status.LIVE: 1, Status.UPCOMING: 10, Status.COMPLETED: 60, Status.ABANDONED: 60}
# For how long a cache may serve its copy while our answers fail. X-Data-Freshness has the age of the copy.
STALE_IF_ERROR_SECONDS = {
    **dict.fromkeys((DataState.FRESH, DataState.AGING, DataState.PARTIAL), 60),
    **dict.fromkeys((DataState.STALE, DataState.FROZEN, DataState.PAUSED), 300),
    DataState.FINAL: 86_400,
    DataState.UNKNOWN: 0,
}
MIN_RETRY_SECONDS, UNPLANNED_RETRY_SECONDS = 1.0, 10.0
Asked = dict[str, Any]  # the checked parameters of a request
Made = TypeVar("Made")


@dataclass(frozen=True)
class Answer:
    """The parts of an answer; the body is built only if it is sent."""

    freshness: Freshness
    etag: str
    cache_seconds: int
    body: MakeBody
    changed_at: datetime | None = None
    good_for: float | None = None  # seconds until it is older than the caller accepts

    def headers(self) -> dict[str, str]:
        seconds, spare = self.cache_seconds, STALE_IF_ERROR_SECONDS[self.freshness.state]
        if self.good_for is not None:  # longer, and a cache would serve data that we refuse with 503
            seconds = min(seconds, int(self.good_for))
            spare = min(spare, int(self.good_for) - seconds)
        found = age_headers(self.freshness)
        found["Cache-Control"] = f"private, max-age={seconds}, stale-if-error={spare}"
        if self.changed_at is not None:
            found["Last-Modified"] = http_date(self.changed_at.timestamp())
        if self.freshness.next_update_in is not None:
            # Never 0: a client that sleeps for this time would send requests without a pause while a poll is overdue.
            found["X-Next-Update-In"] = str(max(1, math.ceil(self.freshness.next_update_in)))
        if self.etag:
            found["ETag"] = self.etag
        return found


IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    str,
    OpenApiParameter.HEADER,
    description="The ETag of your copy. If it is unchanged: 304 with new freshness headers, which costs no quota.",
)
ID = OpenApiParameter(
    "match_id", str, OpenApiParameter.PATH, description="The match's number, or its key at a source such as crex_13KM."
)


def header(name: str, description: str, kind: type = str) -> OpenApiParameter:
    return OpenApiParameter(name, kind, OpenApiParameter.HEADER, description=description, response=[200, 304])


FRESHNESS_HEADERS = (
    header("X-Data-Freshness", "When the source was last read successfully (ISO 8601). Absent if it never was."),
    header("X-Data-Age-Seconds", "Seconds since then.", int),
    header("X-Data-State", "fresh, aging, partial, stale, frozen, paused, final or unknown."),
    header("X-Next-Update-In", "Seconds until the source is read again. Absent if it will not be.", int),
    header("X-Data-Source", "cache: our database is unreachable, and this is the last known data. Absent otherwise."),
    header("ETag", "Identifies this version of the data."),
)


def describe_read(
    name: str,
    summary: str,
    description: str,
    body: type[Body],
    *parameters: Any,
    tag: str = "matches",
    problems: Sequence[int] = (),
) -> Callable[[Any], Any]:
    """Describes the `get` of a FreshView."""
    described = describe(
        name,
        summary,
        description,
        body,
        tag=tag,
        answers={304: None},
        problems=(400, 404, *problems),
        parameters=[*parameters, IF_NONE_MATCH, *FRESHNESS_HEADERS],
    )
    return extend_schema_view(get=described)


def needing_cache(make: Callable[[], Made]) -> Callable[[], Made]:
    """Returns the function with a 503 in place of a NotCachedError."""

    def made() -> Made:
        try:
            return make()
        except NotCachedError as error:
            raise DatabaseAway(f"The requested data ({error}) is not cached. ") from error

    return made


class FreshView(ConditionalView):
    """Subclasses return their answer from `find`."""

    params: type[serializers.Serializer[None]] = MaxAgeParams
    _is_from_cache = False
    _link = ""

    def find(self, asked: Asked) -> Answer:
        raise NotImplementedError

    def match(self) -> CachedMatch:
        """Returns the requested match; raises NotFound."""
        found = self.find_match(self.kwargs["match_id"])
        if found is None:
            raise no_such_match(self.kwargs["match_id"])
        return found

    def find_match(self, name: str) -> CachedMatch | None:
        found = documents.find(name)
        self._is_from_cache |= found is not None and found.data_source == CACHE
        return found

    def page(self, wanted: MatchFilter, *, after: Place | None = None, limit: int) -> Page:
        found = documents.page(wanted, after=after, limit=limit)
        self._is_from_cache = found.is_last_known
        return found

    def link(self, *, first: str, next: str) -> str | None:
        """Sets the `Link` header of a list (RFC 8288); returns the address of the next page, None if there is none."""
        links = {"first": first, "next": next}
        self._link = ", ".join(f'<{where}>; rel="{name}"' for name, where in links.items() if where)
        return next or None

    def prepare(self, request: Request) -> tuple[dict[str, str], MakeBody]:
        found = needing_cache(lambda: self.find(read_params(self.params, request)))()
        headers = found.headers()
        if self._is_from_cache:
            headers["X-Data-Source"] = CACHE
        if self._link:
            headers["Link"] = self._link
        return headers, found.body


class MatchReadView(FreshView):
    """Reads one match as it is now. Subclasses return ETag and body from `read`."""

    has_change_time = True  # False: the data may change while the match does not

    def find(self, asked: Asked) -> Answer:
        match = self.match()
        freshness = match.freshness(timezone.now())
        good_for = refuse_stale(freshness, asked.get("max_age"))
        etag, body = self.read(match, freshness, asked)
        if etag and match.left_out:  # `_metadata.integrity` may change while the match does not
            etag = f'{etag[:-1]}-{checksum_of({"left_out": match.left_out})[:8]}"'
        changed_at = match.changed_at if self.has_change_time else None
        return Answer(freshness, etag, CACHE_SECONDS[Status(match.status)], body, changed_at, good_for)

    def read(self, match: CachedMatch, freshness: Freshness, asked: Asked) -> tuple[str, MakeBody]:
        raise NotImplementedError


def age_headers(freshness: Freshness) -> dict[str, str]:
    """A match that was never read has no time and no age; its state says so."""
    found = {"X-Data-State": freshness.state.value}
    if freshness.scraped_at is not None:
        found["X-Data-Freshness"] = as_utc_iso(freshness.scraped_at)
        found["X-Data-Age-Seconds"] = str(freshness.whole_age_seconds)
    return found


def match_etag(match: CachedMatch) -> str:
    """Returns a strong ETag of the data of the match, without its age; empty for a match that was never read."""
    return f'"{match_version(match)}"' if match.sequence else ""


def match_version(match: CachedMatch) -> str:
    return f"{match.id}-{match.sequence}-{match.status}-{match.lifecycle}-{unsequenced_version(match)}"


def unsequenced_version(match: CachedMatch, *, without: Collection[str] = ()) -> str:
    """Returns a hash of the fields that change without a new sequence: above all the names at sources."""

    def make() -> bytes:
        shown = (getattr(match, name) for name in SHOWN if name not in without)
        texts = [as_utc_iso(value) if isinstance(value, datetime) else str(value) for value in shown]
        facts = repr((match.keys, texts)).encode(errors="backslashreplace")
        return hashlib.blake2b(facts, digest_size=6).hexdigest().encode()

    return match.rendered(f"version without {', '.join(without)}", make).decode()


def no_such_match(name: str) -> NotFound:
    return NotFound(f"No match is known as {name[:100]}. GET /api/v1/matches lists those that are.")


def address(request: Request, **changed: Any) -> str:
    """Returns the address of this request with other values of some parameters; None leaves one out."""
    kept = {**request.query_params.dict(), **changed}
    query = urlencode({name: value for name, value in kept.items() if value is not None})
    return request.build_absolute_uri(f"{request.path}?{query}" if query else request.path)


def refuse_stale(freshness: Freshness, max_age: int | None) -> float | None:
    """Returns for how many seconds more the data is young enough; None without limit. Raises `too-stale`."""
    if max_age is None or freshness.state == DataState.FINAL:
        return None
    if freshness.age_seconds is not None and not freshness.is_older_than(max_age):
        return max_age - freshness.age_seconds
    # A match without a planned poll (submitted, or stopped) needs no request every second.
    wait = freshness.next_update_in
    # In whole seconds, rounded down as everywhere; never the number that would have been young enough.
    age = freshness.age_seconds
    shown = None if age is None else math.floor(age) if math.floor(age) > max_age else math.ceil(age * 10) / 10
    raise ApiProblem(
        "too-stale",
        f"The data {'was never read' if shown is None else f'is {shown} s old'} and you accept {max_age} s. Try again "
        f"after Retry-After, or with a larger max_age.",
        retry_after=UNPLANNED_RETRY_SECONDS if wait is None else max(MIN_RETRY_SECONDS, wait),
        headers=age_headers(freshness),
        data_age_seconds=freshness.whole_age_seconds,
        state=freshness.state.value,
    )
