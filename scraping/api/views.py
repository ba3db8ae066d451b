"""Matches over HTTP. A view reads its parameters and the clock, asks a reader, and lets `answers` shape the body."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from scraping.api import answers, history_problems, history_readers, history_views, params, readers, rendering
from scraping.api.base import Answer, FreshView, known_or_404, list_answer, refuse_stale
from scraping.api.described import EVENTS, MATCH, MATCHES
from scraping.api.linking import LinkedView, address
from scraping.api.readers import Reader
from scraping.documents.known import Known
from scraping.payloads import Status, checksum_of


class MatchListView(LinkedView):
    @extend_schema(**MATCHES)
    def get(self, request: Request) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request, reader: Reader) -> Answer:
        now, asked = timezone.now(), params.read(params.ListParams, request)
        wanted = params.match_filter(asked)
        before = params.read_cursor(asked.get("cursor"), wanted)
        found, has_more = reader.page(wanted, before_id=before, limit=asked["limit"])
        cursor = params.make_cursor(found[-1].id, wanted) if has_more else ""
        next_page = self.link(first=address(request, cursor=None), next=cursor and address(request, cursor=cursor))
        return list_answer(
            found,
            asked.get("max_age"),
            now,
            mark=cursor,
            body=lambda matches, freshness, left_out: rendering.match_list(
                matches, freshness, now, left_out=left_out, next_page=next_page
            ),
        )


class MatchView(FreshView):
    @extend_schema(**MATCH)
    def get(self, request: Request, match_id: str) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request, reader: Reader) -> Answer:
        asked = params.read(params.MatchParams, request)
        match = known_or_404(self.kwargs["match_id"], reader)
        if {"as_of", "sequence"} & asked.keys():
            return history_views.past(match, asked, name=self.kwargs["match_id"], now=timezone.now())
        freshness = match.freshness(timezone.now())
        good_for = refuse_stale(freshness, asked.get("max_age"))
        more = _included(match, asked.get("include", ""))
        etag = answers.match_etag(match)
        return Answer(
            freshness=freshness,
            good_for=good_for,
            # Who said what, and what is doubted, may change where the match does not.
            etag=f'{etag[:-1]}-{checksum_of(more)[:16]}"' if etag and more else etag,
            cache_seconds=answers.CACHE_SECONDS[Status(match.status)],
            changed_at=match.changed_at,
            body=lambda: rendering.match_document(match, freshness, more),
        )


class MatchEventsView(FreshView):
    @extend_schema(**EVENTS)
    def get(self, request: Request, match_id: str) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request, reader: Reader) -> Answer:
        asked = params.read(params.EventParams, request)
        match = known_or_404(self.kwargs["match_id"], reader)
        freshness = match.freshness(timezone.now())
        good_for = refuse_stale(freshness, asked.get("max_age"))
        if (asked["since"] or asked["since_sequence"]) and match.has_another_number(self.kwargs["match_id"]):
            raise history_problems.has_another_feed(match, self.kwargs["match_id"])
        if asked["since_sequence"] > match.sequence:
            raise history_problems.ahead(match, asked["since_sequence"])
        feed = history_readers.events(
            match, since=asked["since"], since_sequence=asked["since_sequence"], limit=asked["limit"]
        )
        return Answer(
            freshness=freshness,
            good_for=good_for,
            etag=f'"{match.id}-{feed.sequence}-{match.status}-{feed.last}{"+" if feed.has_more else ""}"',
            cache_seconds=answers.CACHE_SECONDS[Status(match.status)],
            changed_at=match.changed_at,
            body=lambda: {
                "events": feed.rows,
                "next_since": feed.last,
                "has_more": feed.has_more,
                # Of the rows, not of the match: whoever has this number lacks no row up to it.
                "_metadata": {**answers.full_metadata(match, freshness), "sequence": feed.sequence},
            },
        )


def _included(match: Known, include: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "provenance" in include:
        found["provenance"] = readers.provenance(match)
    if "provisional" in include:
        found["provisional"] = history_readers.provisional(match)
    return found
