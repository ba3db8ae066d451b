"""GET /api/v1/matches/{id}/conflicts: where the sources of a match contradict each other."""

from __future__ import annotations

import hashlib
from typing import Any

from django.http import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from scraping.api import answers, history_readers, params, readers
from scraping.api.base import Answer, FreshView, known_or_404, refuse_stale
from scraping.api.conflict_documents import EXAMPLE, MatchConflicts
from scraping.api.described import ID, described
from scraping.api.params import MaxAgeParams
from scraping.api.readers import Reader
from scraping.payloads import Status


class ConflictParams(MaxAgeParams):
    state = serializers.ChoiceField(
        required=False,
        default="open",
        choices=["open", "all"],
        help_text="open: what they disagree about now. all: what they have agreed about since as well.",
    )


CONFLICTS = described(
    "list_conflicts",
    "Read what a match's sources disagree about",
    "A field that two sources tell differently, by more than a delay would explain: runs or wickets by more than 5 %, "
    "goals, the end of the match, the teams, the toss, the start by more than a quarter of an hour. `provisional`: a "
    "score that a source took back, and that waits to be confirmed.",
    MatchConflicts,
    EXAMPLE,
    tag="matches",
    parameters=[ID, ConflictParams],
)


class MatchConflictsView(FreshView):
    @extend_schema(**CONFLICTS)
    def get(self, request: Request, match_id: str) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request, reader: Reader) -> Answer:
        asked = params.read(ConflictParams, request)
        match = known_or_404(self.kwargs["match_id"], reader)
        freshness = match.freshness(timezone.now())
        good_for = refuse_stale(freshness, asked.get("max_age"))
        rows = readers.conflicts(match, is_open_only=asked["state"] == "open")
        doubted = history_readers.provisional(match)
        return Answer(
            freshness=freshness,
            good_for=good_for,
            etag=f'"{match.id}-{match.sequence}-{match.status}-{_version(rows, doubted)}"',
            cache_seconds=answers.CACHE_SECONDS[Status(match.status)],
            body=lambda: {
                "conflicts": rows,
                "provisional": doubted,
                "_metadata": answers.full_metadata(match, freshness),
            },
        )


def _version(rows: list[dict[str, Any]], doubted: dict[str, Any] | None) -> str:
    parts = "|".join(f"{row['id']}-{row['times_seen']}-{row['last_seen_at']}-{row['resolved_at']}" for row in rows)
    if doubted:
        parts += f"|{doubted['source']}-{doubted['since']}-{doubted['readings']}"
    return hashlib.sha256(parts.encode()).hexdigest()[:16]
