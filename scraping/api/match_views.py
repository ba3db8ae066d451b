"""A match over HTTP: its present state, events, line-ups and conflicts."""

from __future__ import annotations

import hashlib
from typing import Any

from django.utils import timezone

from scraping.api import history_problems, history_views, params, reads
from scraping.api.bodies import FullMetadata, MatchDocument, render_match
from scraping.api.fresh_view import ID, Answer, Asked, MatchReadView, describe_read, match_etag
from scraping.api.history_bodies import EventFeed, MatchConflicts, MatchLineups
from scraping.documents.cached_match import CachedMatch
from scraping.documents.freshness import Freshness
from scraping.payloads import checksum_of
from victoryline.lib.http.views import MakeBody

SIDES = ("team_a", "team_b")


@describe_read(
    "read_match",
    "Read a match",
    "The unified schema, the same for every sport and source, with the age of the data. The id of a match that was "
    "merged into another one returns that one, with its id. With `as_of` or `sequence`: an earlier state, if it is "
    "still kept (410 `too-old` otherwise); such an answer never changes and has the sequence of its state.",
    MatchDocument,
    ID,
    params.MatchParams,
    problems=(410,),
)
class MatchView(MatchReadView):
    params = params.MatchParams

    def find(self, asked: Asked) -> Answer:
        if "as_of" in asked or "sequence" in asked:
            return history_views.past(self.match(), asked, name=self.kwargs["match_id"], now=timezone.now())
        return super().find(asked)

    def read(self, match: CachedMatch, freshness: Freshness, asked: Asked) -> tuple[str, MakeBody]:
        include = asked.get("include", "")
        included: dict[str, Any] = {}
        if "provenance" in include:
            included["provenance"] = reads.provenance(match)
        if "provisional" in include:
            included["provisional"] = reads.provisional(match)
        if "readings" in include:
            included["readings"] = reads.readings(match)
        etag = match_etag(match)
        if etag and included:  # what is included may change while the match does not
            etag = f'{etag[:-1]}-{checksum_of(included)[:16]}"'
        return etag, lambda: render_match(MatchDocument, match, _metadata=FullMetadata.of(match, freshness), **included)


@describe_read(
    "list_events",
    "Follow a match's events",
    "Balls, wickets, goals and corrections to them, in the order in which they were stored. An update or retraction is "
    "a row with the event_id of the event that it corrects. With the id of a match that was merged into another one "
    "only `since=0` is valid and returns the feed of that one; any other value is a 410 `delta-overflow`: start again. "
    "An id that no row has reached yet is a 409, as in a delta.",
    EventFeed,
    ID,
    params.EventParams,
    problems=(409, 410),
)
class MatchEventsView(MatchReadView):
    params = params.EventParams

    def read(self, match: CachedMatch, freshness: Freshness, asked: Asked) -> tuple[str, MakeBody]:
        name, since, since_sequence = self.kwargs["match_id"], asked["since"], asked["since_sequence"]
        if since or since_sequence:
            history_problems.refuse_former_id(match, name, "feed")
        if since_sequence > match.sequence:
            raise history_problems.ahead(match, since_sequence)
        feed = reads.events(match, since=since, since_sequence=since_sequence, limit=asked["limit"])
        etag = f'"{match.id}-{feed.sequence}-{match.status}-{feed.last}{"+" if feed.has_more else ""}"'
        return etag, lambda: EventFeed.render(
            events=feed.rows,
            next_since=feed.last,
            has_more=feed.has_more,
            # The sequence of the rows, which may be older than the match while the database is away.
            _metadata=FullMetadata.of(match, freshness, sequence=feed.sequence),
        )


@describe_read(
    "list_lineups",
    "Read the line-ups of a match",
    "Line-ups with formation, starters and bench, one per side and source. Line-ups from before the start are never "
    "changed later (captured_at is before kickoff); ratings are added after the end, as rows of their own.",
    MatchLineups,
    ID,
    params.LineupParams,
)
class MatchLineupsView(MatchReadView):
    params = params.LineupParams
    has_change_time = False

    def read(self, match: CachedMatch, freshness: Freshness, asked: Asked) -> tuple[str, MakeBody]:
        wanted, known = asked.get("snapshot_type"), reads.lineups(match)
        teams = match.payload.get("teams") or {}
        rows = [
            {"team": str((teams.get(row["side"]) or {}).get("name") or ""), **row}
            for row in known
            if wanted in (None, row["snapshot_type"])
        ]
        # The ETag covers all of them: `xi_missing` also depends on those that were filtered out.
        parts = [(row["source"], row["side"], row["snapshot_type"], row["captured_at"]) for row in known]
        before = [row for row in known if row["snapshot_type"] == "pre_match"]
        missing = {side: all(row["xi_missing"] for row in before if row["side"] == side) for side in SIDES}
        return _etag(match, parts), lambda: MatchLineups.render(
            lineups=rows, xi_missing=missing, _metadata=FullMetadata.of(match, freshness)
        )


@describe_read(
    "list_conflicts",
    "Read the conflicts between a match's sources",
    "Fields that two sources report differently, by more than a delay would explain: runs or wickets by more than 5 %, "
    "goals, the end of the match, the teams, the toss, the start by more than 15 minutes. `provisional`: a lower score "
    "that a source reports and that is not confirmed yet.",
    MatchConflicts,
    ID,
    params.ConflictParams,
)
class MatchConflictsView(MatchReadView):
    params = params.ConflictParams
    has_change_time = False

    def read(self, match: CachedMatch, freshness: Freshness, asked: Asked) -> tuple[str, MakeBody]:
        rows = reads.conflicts(match, is_open_only=asked["state"] == "open")
        doubted = reads.provisional(match)
        parts: list[Any] = [(row["id"], row["times_seen"], row["last_seen_at"], row["resolved_at"]) for row in rows]
        if doubted:
            parts.append((doubted["source"], doubted["since"], doubted["readings"]))
        return _etag(match, parts), lambda: MatchConflicts.render(
            conflicts=rows, provisional=doubted, _metadata=FullMetadata.of(match, freshness)
        )


def _etag(match: CachedMatch, parts: list[Any]) -> str:
    digest = hashlib.sha256(repr(parts).encode(errors="backslashreplace")).hexdigest()[:16]
    return f'"{match.id}-{match.sequence}-{match.status}-{digest}"'
