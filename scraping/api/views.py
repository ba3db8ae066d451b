"""Matches over HTTP. A view reads its parameters and the clock, asks a reader, and lets `answers` shape the body."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from scraping.api import answers, params, readers
from scraping.api.base import Answer, FreshView, known_or_404, refuse_stale
from scraping.api.described import EVENTS, MATCH, MATCHES
from scraping.api.readers import Reader
from scraping.payloads import Status, checksum_of


class MatchListView(FreshView):
    @extend_schema(**MATCHES)
    def get(self, request: Request) -> Response:
        return self.respond(request)

    def find(self, request: Request, reader: Reader) -> Answer:
        now, asked = timezone.now(), params.read(params.ListParams, request)
        before = params.read_cursor(asked.get("cursor"))
        matches, has_more = reader.page(params.match_filter(asked), before_id=before, limit=asked["limit"])
        freshness = answers.list_freshness(matches, now)
        refuse_stale(freshness, asked.get("max_age") if matches else None)
        cursor = params.make_cursor(matches[-1].id) if has_more else ""
        return Answer(
            freshness=freshness,
            etag=answers.list_etag(matches, cursor),
            cache_seconds=answers.list_cache_seconds(matches),
            body=lambda: {
                "matches": [answers.match_item(match, match.freshness(now)) for match in matches],
                "next": _next_page(request, cursor) if cursor else None,
                "_metadata": answers.list_metadata(matches, freshness, now),
            },
        )


class MatchView(FreshView):
    @extend_schema(**MATCH)
    def get(self, request: Request, match_id: str) -> Response:
        return self.respond(request)

    def find(self, request: Request, reader: Reader) -> Answer:
        asked = params.read(params.MatchParams, request)
        match = known_or_404(self.kwargs["match_id"], reader)
        freshness = match.freshness(timezone.now())
        refuse_stale(freshness, asked.get("max_age"))
        more = {"provenance": readers.provenance(match)} if asked.get("include") else {}
        etag = answers.match_etag(match)
        return Answer(
            freshness=freshness,
            # Who said what may change where the match does not.
            etag=f'{etag[:-1]}-{checksum_of(more)[:16]}"' if etag and more else etag,
            cache_seconds=answers.CACHE_SECONDS[Status(match.status)],
            body=lambda: {**answers.match_body(match, freshness), **more},
        )


class MatchEventsView(FreshView):
    @extend_schema(**EVENTS)
    def get(self, request: Request, match_id: str) -> Response:
        return self.respond(request)

    def find(self, request: Request, reader: Reader) -> Answer:
        asked = params.read(params.EventParams, request)
        match = known_or_404(self.kwargs["match_id"], reader)
        freshness = match.freshness(timezone.now())
        refuse_stale(freshness, asked.get("max_age"))
        events, has_more = readers.events(match, since=asked["since"], limit=asked["limit"])
        last = events[-1]["id"] if events else asked["since"]
        return Answer(
            freshness=freshness,
            etag=f'"{match.id}-{match.sequence}-{match.status}-{last}{"+" if has_more else ""}"',
            cache_seconds=answers.CACHE_SECONDS[Status(match.status)],
            body=lambda: {
                "events": events,
                "next_since": last,
                "has_more": has_more,
                "_metadata": answers.full_metadata(match, freshness),
            },
        )


def _next_page(request: Request, cursor: str) -> str:
    kept: dict[str, Any] = {**request.query_params.dict(), "cursor": cursor}
    return request.build_absolute_uri(f"{request.path}?{urlencode(kept)}")
