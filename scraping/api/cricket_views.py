"""The older, cricket-only surface: /cricket-data."""

from __future__ import annotations

from django.http import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from scraping.api import answers, params, rendering
from scraping.api.base import Answer, FreshView, known_or_404, list_answer, refuse_stale
from scraping.api.described import LIVE_MATCHES, MATCH_INFO
from scraping.api.readers import Reader
from scraping.documents.looking import HELD_AT_MOST
from scraping.documents.queries import MatchFilter
from scraping.payloads import Sport, Status

LIVE_LIMIT = HELD_AT_MOST  # all there are: this list has no pages, so what is left out nobody could ask for


class MatchInfoView(FreshView):
    @extend_schema(**MATCH_INFO)
    def get(self, request: Request, match_id: str) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request, reader: Reader) -> Answer:
        asked = params.read(params.MaxAgeParams, request)
        match = known_or_404(self.kwargs["match_id"], reader)
        if match.sport != Sport.CRICKET:
            raise NotFound(f"Match {match.id} is {match.sport}, not cricket. Read it at /api/v1/matches/{match.id}.")
        freshness = match.freshness(timezone.now())
        good_for = refuse_stale(freshness, asked.get("max_age"))
        return Answer(
            freshness=freshness,
            good_for=good_for,
            etag=answers.match_etag(match),
            cache_seconds=answers.CACHE_SECONDS[Status(match.status)],
            changed_at=match.changed_at,
            body=lambda: rendering.info_document(match, freshness),
        )


class LiveMatchesView(FreshView):
    @extend_schema(**LIVE_MATCHES)
    def get(self, request: Request) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request, reader: Reader) -> Answer:
        now, asked = timezone.now(), params.read(params.MaxAgeParams, request)
        live = MatchFilter(status=Status.LIVE, sport=Sport.CRICKET)
        found, _ = reader.page(live, before_id=None, limit=LIVE_LIMIT)
        return list_answer(
            found,
            asked.get("max_age"),
            now,
            mark="",
            body=lambda matches, freshness, left_out: rendering.info_list(matches, freshness, now, left_out=left_out),
        )
