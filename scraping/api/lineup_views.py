"""GET /api/v1/matches/{id}/lineups: who plays, as it was known before the start, and apart from it after the end."""

from __future__ import annotations

import hashlib
from typing import Any

from django.http import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from scraping.api import answers, params, readers
from scraping.api.base import Answer, FreshView, known_or_404, refuse_stale
from scraping.api.described import ID, described
from scraping.api.lineup_documents import EXAMPLE, MatchLineups
from scraping.api.params import MaxAgeParams
from scraping.api.readers import Reader
from scraping.documents.known import Known
from scraping.models import SnapshotType
from scraping.payloads import Status

SIDES = ("team_a", "team_b")


class LineupParams(MaxAgeParams):
    snapshot_type = serializers.ChoiceField(
        required=False,
        choices=SnapshotType.values,
        help_text="pre_match: only what was read before the start. post_match: only what was read after the end.",
    )


LINEUPS = described(
    "list_lineups",
    "Read who plays",
    "Line-ups with formation, starters and bench, one a side and source. What was known before the start is kept as it "
    "was known then (captured_at is before kickoff); ratings come after the end, as rows of their own.",
    MatchLineups,
    EXAMPLE,
    tag="matches",
    parameters=[ID, LineupParams],
)


class MatchLineupsView(FreshView):
    @extend_schema(**LINEUPS)
    def get(self, request: Request, match_id: str) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request, reader: Reader) -> Answer:
        asked = params.read(LineupParams, request)
        match = known_or_404(self.kwargs["match_id"], reader)
        freshness = match.freshness(timezone.now())
        good_for = refuse_stale(freshness, asked.get("max_age"))
        wanted = asked.get("snapshot_type")
        known = readers.lineups(match)
        rows = [row for row in known if wanted in (None, row["snapshot_type"])]
        return Answer(
            freshness=freshness,
            good_for=good_for,
            etag=_etag(match, known),  # of all of them: `xi_missing` speaks of those that were not asked for, too
            cache_seconds=answers.CACHE_SECONDS[Status(match.status)],
            body=lambda: {
                "lineups": [{"team": _team(match, row["side"]), **row} for row in rows],
                "xi_missing": {side: _is_missing(known, side) for side in SIDES},
                "_metadata": answers.full_metadata(match, freshness),
            },
        )


def _is_missing(rows: list[dict[str, Any]], side: str) -> bool:
    return all(row["xi_missing"] for row in rows if row["side"] == side and row["snapshot_type"] == "pre_match")


def _team(match: Known, side: str) -> str:
    team = (match.payload.get("teams") or {}).get(side) or {}
    return str(team.get("name") or "")


def _etag(match: Known, rows: list[dict[str, Any]]) -> str:
    parts = "|".join(f"{row['source']}-{row['side']}-{row['snapshot_type']}-{row['captured_at']}" for row in rows)
    return f'"{match.id}-{match.sequence}-{match.status}-{hashlib.sha256(parts.encode()).hexdigest()[:16]}"'
