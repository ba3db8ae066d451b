"""The history of a match over HTTP: as of a time or a sequence, delta, snapshots."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from django.http import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from scraping.api import history_problems, params, reads
from scraping.api.bodies import FullMetadata, MatchDocument, PastMetadata
from scraping.api.endpoints import DELTA, SNAPSHOT, SNAPSHOTS
from scraping.api.fresh_view import CACHE_SECONDS, Answer, FreshView, address, refuse_stale, unsequenced_version
from scraping.api.history_bodies import MatchDelta, SnapshotList
from scraping.documents import history
from scraping.documents.cached_match import CachedMatch
from scraping.documents.freshness import DataState, Freshness
from scraping.payloads import Status
from victoryline.lib.http.problems import BadParameter, DatabaseAway
from victoryline.lib.http.views import read_params
from victoryline.lib.times import as_utc_iso

PAST_CACHE_SECONDS = 86_400  # an earlier state never changes


class MatchDeltaView(FreshView):
    @extend_schema(**DELTA)
    def get(self, request: Request, match_id: str) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request) -> Answer:
        asked = read_params(params.DeltaParams, request)
        match = self.match()
        freshness = match.freshness(timezone.now())
        good_for = refuse_stale(freshness, asked.get("max_age"))
        since, limit = asked["since"], asked["limit"]
        if since and match.is_former_id(self.kwargs["match_id"]):
            raise history_problems.became_another(match, self.kwargs["match_id"])
        found = _difference(match, since)
        events, has_more = _events_since(match, since, limit)
        return Answer.of_match(
            match,
            freshness,
            good_for=good_for,
            etag=f'"{match.id}-{since}-{match.sequence}-{match.status}-{limit}-delta"',
            body=lambda: MatchDelta.render(
                id=match.id,
                _diff_type=_diff_type(match, since),
                _sequence_delta=match.sequence - since,
                from_sequence=since,
                to_sequence=match.sequence,
                changed=found.changed,
                removed=found.removed,
                events=events,
                has_more=has_more,
                next_since=events[-1]["id"] if has_more else None,
                _metadata=FullMetadata.of(match, freshness),
            ),
        )


class MatchSnapshotsView(FreshView):
    @extend_schema(**SNAPSHOTS)
    def get(self, request: Request, match_id: str) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request) -> Answer:
        asked = read_params(params.SnapshotParams, request)
        match = self.match()
        freshness = match.freshness(timezone.now())
        good_for = refuse_stale(freshness, asked.get("max_age"))
        rows, has_more = reads.snapshots(match, before=asked.get("before"), limit=asked["limit"])
        next_page = self.link(
            first=address(request, before=None),
            next=address(request, before=rows[-1]["sequence"]) if has_more else "",
        )
        return Answer.of_match(
            match,
            freshness,
            good_for=good_for,
            etag=f'"{match.id}-{match.status}-{_mark(rows)}{"+" if has_more else ""}"',
            body=lambda: SnapshotList.render(
                snapshots=rows, next=next_page, _metadata=FullMetadata.of(match, freshness)
            ),
        )


class MatchSnapshotView(FreshView):
    @extend_schema(**SNAPSHOT)
    def get(self, request: Request, match_id: str, sequence: int) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request) -> Answer:
        read_params(params.MaxAgeParams, request)  # an earlier state is never too old; unknown parameters are refused
        match = self.match()
        row = _at(match, self.kwargs["sequence"], self.kwargs["match_id"])
        if row["sequence"] != self.kwargs["sequence"]:
            raise history_problems.too_old(match, reads.oldest(match))
        now, was = timezone.now(), reads.as_it_was(match, row)
        freshness = _freshness_then(was, now)
        return Answer(
            freshness=freshness,
            etag=f'"{match.id}-{row["sequence"]}-snapshot"',
            cache_seconds=PAST_CACHE_SECONDS,
            changed_at=was.changed_at,
            body=lambda: {**row, "_metadata": _metadata_then(was, row, freshness, None)},
        )


def past(match: CachedMatch, asked: dict[str, Any], *, name: str, now: datetime) -> Answer:
    """Returns the match as it was at a time (`as_of`) or a sequence. `name`: how it was requested."""
    _refuse_contradictions(asked)
    moment: datetime | None = asked.get("as_of")
    if moment is not None and moment > now:
        raise history_problems.in_the_future()
    row = _at(match, asked["sequence"], name) if moment is None else _at_time(match, moment)
    was = reads.as_it_was(match, row)
    freshness = _freshness_then(was, now)
    more = {"provenance": row["provenance"]} if asked.get("include") else {}
    is_closed = moment is None or row["sequence"] < match.sequence
    return Answer(
        freshness=freshness,
        etag=f'"{match.id}-{row["sequence"]}-as-of-{unsequenced_version(was)}{"-provenance" if more else ""}"',
        cache_seconds=PAST_CACHE_SECONDS if is_closed else CACHE_SECONDS[Status(match.status)],
        changed_at=was.changed_at,
        body=lambda: MatchDocument.render(
            was,
            lifecycle=None,  # it has no history
            **more,
            _metadata=_metadata_then(was, row, freshness, moment),
        ),
    )


def _refuse_contradictions(asked: dict[str, Any]) -> None:
    if {"as_of", "sequence"} <= asked.keys():
        raise BadParameter("as_of", "`as_of` and `sequence` both say which state you want: leave one out.")
    if "provisional" in asked.get("include", ""):
        named = "as_of" if "as_of" in asked else "sequence"
        raise BadParameter(
            named, f"`{named}` does not go with `include=provisional`: doubts are known of the present only."
        )


def _at(match: CachedMatch, sequence: int, name: str) -> dict[str, Any]:
    if match.is_former_id(name):
        raise history_problems.counts_its_own(match, name)
    if sequence > match.sequence or not sequence:
        raise history_problems.not_yet(match, sequence)
    try:
        return reads.at_sequence(match, sequence)
    except reads.NotKeptError:
        raise history_problems.too_old(match, reads.oldest(match)) from None


def _at_time(match: CachedMatch, moment: datetime) -> dict[str, Any]:
    try:
        return reads.at_time(match, moment)
    except reads.NotKeptError:
        raise history_problems.too_old(match, reads.oldest(match)) from None


def _difference(match: CachedMatch, since: int) -> history.Difference:
    if since > match.sequence:
        raise history_problems.ahead(match, since)
    if since == match.sequence:
        return history.Difference({}, [])
    if not since:
        return history.Difference(reads.state_of(match), [])
    try:
        before = reads.as_it_was(match, reads.at_sequence(match, since))
    except reads.NotKeptError:
        raise history_problems.overflow(match, since, reads.oldest(match)) from None
    return history.difference(_state_had(before), reads.state_of(match))


def _state_had(before: CachedMatch) -> dict[str, Any]:
    """Returns the state as the consumer has it, without a start time that the snapshot does not have.

    The match keeps the last known one, which may differ from the one served then: it is sent again.
    """
    state = reads.state_of(before)
    if not before.payload.get("start_time") and before.start_time is not None:
        state.pop("start_time", None)
    return state


def _events_since(match: CachedMatch, since: int, limit: int) -> tuple[list[dict[str, Any]], bool]:
    if since == match.sequence:
        return [], False
    feed = reads.events(match, since=0, since_sequence=since, limit=limit)
    if feed.sequence < match.sequence:  # the rows in between would be in no later delta either
        raise DatabaseAway.now("What you ask for (the events since then) is not among what we know without it. ")
    rows = [row for row in feed.rows if row["sequence"] <= match.sequence]
    return rows, feed.has_more and len(rows) == len(feed.rows)  # later rows belong to the next delta


def _diff_type(match: CachedMatch, since: int) -> str:
    if since == match.sequence:
        return "none"
    return "update" if since else "initial"


def _freshness_then(was: CachedMatch, now: datetime) -> Freshness:
    age = max(0.0, (now - was.scraped_at).total_seconds()) if was.scraped_at else None
    return Freshness(state=DataState.FINAL, scraped_at=was.scraped_at, age_seconds=age, next_update_in=None)


def _metadata_then(
    was: CachedMatch, row: dict[str, Any], freshness: Freshness, moment: datetime | None
) -> dict[str, Any]:
    return PastMetadata.of(
        was,
        freshness,
        scraper_id=row["scraper_id"],
        as_of=None if moment is None else as_utc_iso(moment),
        captured_at=row["captured_at"],
        created_at=row["created_at"],
    )


def _mark(rows: list[dict[str, Any]]) -> str:
    text = "|".join(f"{row['sequence']}-{row['checksum']}" for row in rows)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
