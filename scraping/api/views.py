"""Matches over HTTP. A view reads its parameters and the clock, asks `queries`, and lets `answers` shape the body."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from scraping import queries
from scraping.api import answers, params
from scraping.api.base import Answer, FreshView, match_or_404, refuse_stale
from scraping.api.described import EVENTS, MATCH, MATCHES
from scraping.payloads import Status


class MatchListView(FreshView):
    @extend_schema(**MATCHES)
    def get(self, request: Request) -> Response:
        return self.respond(request)

    def find(self, request: Request) -> Answer:
        now, asked = timezone.now(), params.read(params.ListParams, request)
        before = params.read_cursor(asked.get("cursor"))
        matches, has_more = queries.page_of_matches(params.match_filter(asked), before_id=before, limit=asked["limit"])
        freshness = answers.list_freshness(matches, now)
        refuse_stale(freshness, asked.get("max_age") if matches else None)
        cursor = params.make_cursor(matches[-1].pk) if has_more else ""
        return Answer(
            freshness=freshness,
            etag=answers.list_etag(matches, cursor),
            cache_seconds=answers.list_cache_seconds(matches),
            body=lambda: {
                "matches": [answers.match_item(match, queries.freshness_of(match, now)) for match in matches],
                "next": _next_page(request, cursor) if cursor else None,
                "_metadata": answers.list_metadata(matches, freshness, now),
            },
        )


class MatchView(FreshView):
    @extend_schema(**MATCH)
    def get(self, request: Request, match_id: str) -> Response:
        return self.respond(request)

    def find(self, request: Request) -> Answer:
        asked = params.read(params.MaxAgeParams, request)
        match = match_or_404(self.kwargs["match_id"])
        freshness = queries.freshness_of(match, timezone.now())
        refuse_stale(freshness, asked.get("max_age"))
        return Answer(
            freshness=freshness,
            etag=answers.match_etag(match),
            cache_seconds=answers.CACHE_SECONDS[Status(match.status)],
            body=lambda: answers.match_body(match, freshness),
        )


class MatchEventsView(FreshView):
    @extend_schema(**EVENTS)
    def get(self, request: Request, match_id: str) -> Response:
        return self.respond(request)

    def find(self, request: Request) -> Answer:
        asked = params.read(params.EventParams, request)
        match = match_or_404(self.kwargs["match_id"])
        freshness = queries.freshness_of(match, timezone.now())
        refuse_stale(freshness, asked.get("max_age"))
        events, has_more = queries.page_of_events(match, since=asked["since"], limit=asked["limit"])
        last = events[-1].pk if events else asked["since"]
        return Answer(
            freshness=freshness,
            etag=f'"{match.pk}-{match.sequence}-{match.status}-{last}{"+" if has_more else ""}"',
            cache_seconds=answers.CACHE_SECONDS[Status(match.status)],
            body=lambda: {
                "events": [answers.event_row(event) for event in events],
                "next_since": last,
                "has_more": has_more,
                "_metadata": answers.full_metadata(match, freshness),
            },
        )


def _next_page(request: Request, cursor: str) -> str:
    kept: dict[str, Any] = {**request.query_params.dict(), "cursor": cursor}
    return request.build_absolute_uri(f"{request.path}?{urlencode(kept)}")
