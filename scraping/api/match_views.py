"""A match over HTTP: its present state, events, line-ups and conflicts.

A view reads its parameters and the clock, asks the document cache, and returns an answer with a body to render.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.http import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from scraping.api import history_problems, history_views, params, reads
from scraping.api.bodies import FullMetadata, MatchDocument, render_match
from scraping.api.endpoints import CONFLICTS, EVENTS, LINEUPS, MATCH
from scraping.api.fresh_view import Answer, FreshView, match_etag, refuse_stale
from scraping.api.history_bodies import EventFeed, MatchConflicts, MatchLineups
from scraping.documents.cached_match import CachedMatch
from scraping.payloads import checksum_of
from victoryline.lib.http.views import read_params

SIDES = ("team_a", "team_b")


class MatchView(FreshView):
    @extend_schema(**MATCH)
    def get(self, request: Request, match_id: str) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request) -> Answer:
        asked = read_params(params.MatchParams, request)
        match = self.match()
        if {"as_of", "sequence"} & asked.keys():
            return history_views.past(match, asked, name=self.kwargs["match_id"], now=timezone.now())
        freshness = match.freshness(timezone.now())
        good_for = refuse_stale(freshness, asked.get("max_age"))
        included = _included(match, asked.get("include", ""))
        etag = match_etag(match)
        if etag and included:  # provenance and doubts may change while the match does not
            etag = f'{etag[:-1]}-{checksum_of(included)[:16]}"'
        return Answer.of_match(
            match,
            freshness,
            good_for=good_for,
            etag=etag,
            body=lambda: render_match(MatchDocument, match, _metadata=FullMetadata.of(match, freshness), **included),
        )


def _included(match: CachedMatch, include: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "provenance" in include:
        found["provenance"] = reads.provenance(match)
    if "provisional" in include:
        found["provisional"] = reads.provisional(match)
    return found


class MatchEventsView(FreshView):
    @extend_schema(**EVENTS)
    def get(self, request: Request, match_id: str) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request) -> Answer:
        asked = read_params(params.EventParams, request)
        match, name = self.match(), self.kwargs["match_id"]
        freshness = match.freshness(timezone.now())
        good_for = refuse_stale(freshness, asked.get("max_age"))
        if (asked["since"] or asked["since_sequence"]) and match.is_former_id(name):
            raise history_problems.has_another_feed(match, name)
        if asked["since_sequence"] > match.sequence:
            raise history_problems.ahead(match, asked["since_sequence"])
        feed = reads.events(match, since=asked["since"], since_sequence=asked["since_sequence"], limit=asked["limit"])
        return Answer.of_match(
            match,
            freshness,
            good_for=good_for,
            etag=f'"{match.id}-{feed.sequence}-{match.status}-{feed.last}{"+" if feed.has_more else ""}"',
            body=lambda: EventFeed.render(
                events=feed.rows,
                next_since=feed.last,
                has_more=feed.has_more,
                # The sequence of the rows, which may be older than the match while the database is away.
                _metadata=FullMetadata.of(match, freshness, sequence=feed.sequence),
            ),
        )


class MatchLineupsView(FreshView):
    @extend_schema(**LINEUPS)
    def get(self, request: Request, match_id: str) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request) -> Answer:
        asked = read_params(params.LineupParams, request)
        match = self.match()
        freshness = match.freshness(timezone.now())
        good_for = refuse_stale(freshness, asked.get("max_age"))
        wanted, known = asked.get("snapshot_type"), reads.lineups(match)
        rows = [row for row in known if wanted in (None, row["snapshot_type"])]
        # The ETag is of all of them: `xi_missing` is about those that were filtered out, too.
        parts = [(row["source"], row["side"], row["snapshot_type"], row["captured_at"]) for row in known]
        return Answer.of_match(
            match,
            freshness,
            good_for=good_for,
            etag=_etag(match, parts),
            has_change_time=False,
            body=lambda: MatchLineups.render(
                lineups=[{"team": _team(match, row["side"]), **row} for row in rows],
                xi_missing={side: _is_missing(known, side) for side in SIDES},
                _metadata=FullMetadata.of(match, freshness),
            ),
        )


def _is_missing(rows: list[dict[str, Any]], side: str) -> bool:
    return all(row["xi_missing"] for row in rows if row["side"] == side and row["snapshot_type"] == "pre_match")


def _team(match: CachedMatch, side: str) -> str:
    team = (match.payload.get("teams") or {}).get(side) or {}
    return str(team.get("name") or "")


class MatchConflictsView(FreshView):
    @extend_schema(**CONFLICTS)
    def get(self, request: Request, match_id: str) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request) -> Answer:
        asked = read_params(params.ConflictParams, request)
        match = self.match()
        freshness = match.freshness(timezone.now())
        good_for = refuse_stale(freshness, asked.get("max_age"))
        rows = reads.conflicts(match, is_open_only=asked["state"] == "open")
        doubted = reads.provisional(match)
        parts: list[Any] = [(row["id"], row["times_seen"], row["last_seen_at"], row["resolved_at"]) for row in rows]
        if doubted:
            parts.append((doubted["source"], doubted["since"], doubted["readings"]))
        return Answer.of_match(
            match,
            freshness,
            good_for=good_for,
            etag=_etag(match, parts),
            has_change_time=False,
            body=lambda: MatchConflicts.render(
                conflicts=rows, provisional=doubted, _metadata=FullMetadata.of(match, freshness)
            ),
        )


def _etag(match: CachedMatch, parts: list[Any]) -> str:
    digest = hashlib.sha256(repr(parts).encode(errors="backslashreplace")).hexdigest()[:16]
    return f'"{match.id}-{match.sequence}-{match.status}-{digest}"'
