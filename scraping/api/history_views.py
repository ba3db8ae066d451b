"""What a match was, and what has changed since: as of a time or a number, delta, snapshots."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from django.http import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from scraping.api import answers, history_problems, params
from scraping.api import history_readers as readers
from scraping.api.base import Answer, FreshView, known_or_404, refuse_stale
from scraping.api.history_described import DELTA, SNAPSHOT, SNAPSHOTS
from scraping.api.linking import LinkedView, address
from scraping.api.readers import Reader
from scraping.documents import history
from scraping.documents.freshness import DataState, Freshness
from scraping.documents.known import Known
from scraping.payloads import Status
from victoryline.lib.http.problems import BadParameter, DatabaseAway
from victoryline.lib.times import as_utc_iso

PAST_CACHE_SECONDS = 86_400  # what was, stays as it was


class MatchDeltaView(FreshView):
    @extend_schema(**DELTA)
    def get(self, request: Request, match_id: str) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request, reader: Reader) -> Answer:
        asked = params.read(params.DeltaParams, request)
        match = known_or_404(self.kwargs["match_id"], reader)
        freshness = match.freshness(timezone.now())
        good_for = refuse_stale(freshness, asked.get("max_age"))
        since, limit = asked["since"], asked["limit"]
        if since and match.has_another_number(self.kwargs["match_id"]):
            raise history_problems.became_another(match, self.kwargs["match_id"])
        found = _difference(match, since)
        events, has_more = _events_since(match, since, limit)
        return Answer(
            freshness=freshness,
            good_for=good_for,
            etag=f'"{match.id}-{since}-{match.sequence}-{match.status}-{limit}-delta"',
            cache_seconds=answers.CACHE_SECONDS[Status(match.status)],
            changed_at=match.changed_at,
            body=lambda: {
                "id": match.id,
                "_diff_type": _kind(match, since),
                "_sequence_delta": match.sequence - since,
                "from_sequence": since,
                "to_sequence": match.sequence,
                "changed": found.changed,
                "removed": found.removed,
                "events": events,
                "has_more": has_more,
                "next_since": events[-1]["id"] if has_more else None,
                "_metadata": answers.full_metadata(match, freshness),
            },
        )


class MatchSnapshotsView(LinkedView):
    @extend_schema(**SNAPSHOTS)
    def get(self, request: Request, match_id: str) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request, reader: Reader) -> Answer:
        asked = params.read(params.SnapshotParams, request)
        match = known_or_404(self.kwargs["match_id"], reader)
        freshness = match.freshness(timezone.now())
        good_for = refuse_stale(freshness, asked.get("max_age"))
        rows, has_more = readers.snapshots(match, before=asked.get("before"), limit=asked["limit"])
        next_page = self.link(
            first=address(request, before=None),
            next=address(request, before=rows[-1]["sequence"]) if has_more else "",
        )
        return Answer(
            freshness=freshness,
            good_for=good_for,
            etag=f'"{match.id}-{match.status}-{_mark(rows)}{"+" if has_more else ""}"',
            cache_seconds=answers.CACHE_SECONDS[Status(match.status)],
            changed_at=match.changed_at,
            body=lambda: {
                "snapshots": rows,
                "next": next_page,
                "_metadata": answers.full_metadata(match, freshness),
            },
        )


class MatchSnapshotView(FreshView):
    @extend_schema(**SNAPSHOT)
    def get(self, request: Request, match_id: str, sequence: int) -> HttpResponseBase:
        return self.respond(request)

    def find(self, request: Request, reader: Reader) -> Answer:
        params.read(params.MaxAgeParams, request)  # what was is never too old; misspelled parameters are refused
        match = known_or_404(self.kwargs["match_id"], reader)
        row = _at(match, self.kwargs["sequence"], self.kwargs["match_id"])
        if row["sequence"] != self.kwargs["sequence"]:
            raise history_problems.too_old(match, readers.oldest(match))
        now, was = timezone.now(), readers.as_it_was(match, row)
        freshness = _freshness_then(was, now)
        return Answer(
            freshness=freshness,
            etag=f'"{match.id}-{row["sequence"]}-snapshot"',
            cache_seconds=PAST_CACHE_SECONDS,
            changed_at=was.changed_at,
            body=lambda: {**row, "_metadata": _metadata_then(was, row, freshness, None)},
        )


def past(match: Known, asked: dict[str, Any], *, name: str, now: datetime) -> Answer:
    """The match as it was at a time (`as_of`) or with a number (`sequence`). Such an answer won't change any more.

    `name`: what it was asked for by.
    """
    _refuse_what_has_no_past(asked)
    moment: datetime | None = asked.get("as_of")
    if moment is not None and moment > now:
        raise history_problems.in_the_future()
    row = _at(match, asked["sequence"], name) if moment is None else _at_time(match, moment)
    was = readers.as_it_was(match, row)
    freshness = _freshness_then(was, now)
    more = {"provenance": row["provenance"]} if asked.get("include") else {}
    is_closed = moment is None or row["sequence"] < match.sequence
    return Answer(
        freshness=freshness,
        etag=f'"{match.id}-{row["sequence"]}-as-of-{answers.unnumbered(was)}{"-provenance" if more else ""}"',
        cache_seconds=PAST_CACHE_SECONDS if is_closed else answers.CACHE_SECONDS[Status(match.status)],
        changed_at=was.changed_at,
        body=lambda: {
            **answers.match_state(was),
            "lifecycle": None,  # of what we do with a match there is no history
            **more,
            "_metadata": _metadata_then(was, row, freshness, moment),
        },
    )


def _refuse_what_has_no_past(asked: dict[str, Any]) -> None:
    if {"as_of", "sequence"} <= asked.keys():
        raise BadParameter("as_of", "`as_of` and `sequence` both say which state you want: leave one out.")
    if "provisional" in asked.get("include", ""):
        named = "as_of" if "as_of" in asked else "sequence"
        raise BadParameter(
            named, f"`{named}` does not go with `include=provisional`: doubts are known of the present only."
        )


def _at(match: Known, sequence: int, name: str) -> dict[str, Any]:
    if match.has_another_number(name):
        raise history_problems.counts_its_own(match, name)
    if sequence > match.sequence or not sequence:
        raise history_problems.not_yet(match, sequence)
    try:
        return readers.at_sequence(match, sequence)
    except readers.NotKeptError:
        raise history_problems.too_old(match, readers.oldest(match)) from None


def _at_time(match: Known, moment: datetime) -> dict[str, Any]:
    try:
        return readers.at_time(match, moment)
    except readers.NotKeptError:
        raise history_problems.too_old(match, readers.oldest(match)) from None


def _difference(match: Known, since: int) -> history.Difference:
    if since > match.sequence:
        raise history_problems.ahead(match, since)
    if since == match.sequence:
        return history.Difference({}, [])
    if not since:
        return history.Difference(readers.state_of(match), [])
    try:
        before = readers.as_it_was(match, readers.at_sequence(match, since))
    except readers.NotKeptError:
        raise history_problems.overflow(match, since, readers.oldest(match)) from None
    return history.difference(_state_had(before), readers.state_of(match))


def _state_had(before: Known) -> dict[str, Any]:
    """As a consumer has it. A start that nobody told with that state is not known to be the one that was shown with it
    (the match keeps the last one that was told): it is sent again."""
    state = readers.state_of(before)
    if not before.payload.get("start_time") and before.start_time is not None:
        state.pop("start_time", None)
    return state


def _events_since(match: Known, since: int, limit: int) -> tuple[list[dict[str, Any]], bool]:
    if since == match.sequence:
        return [], False
    feed = readers.events(match, since=0, since_sequence=since, limit=limit)
    if feed.sequence < match.sequence:  # the rows in between would be in no later delta either
        raise DatabaseAway.now("What you ask for (the events since then) is not among what we know without it. ")
    told = [row for row in feed.rows if row["sequence"] <= match.sequence]
    return told, feed.has_more and len(told) == len(feed.rows)  # what came a moment ago belongs to the next delta


def _kind(match: Known, since: int) -> str:
    if since == match.sequence:
        return "none"
    return "update" if since else "initial"


def _freshness_then(was: Known, now: datetime) -> Freshness:
    age = max(0.0, (now - was.scraped_at).total_seconds()) if was.scraped_at else None
    return Freshness(state=DataState.FINAL, scraped_at=was.scraped_at, age_seconds=age, next_update_in=None)


def _metadata_then(was: Known, row: dict[str, Any], freshness: Freshness, moment: datetime | None) -> dict[str, Any]:
    return {
        **answers.full_metadata(was, freshness),
        "scraper_id": row["scraper_id"],
        "as_of": None if moment is None else as_utc_iso(moment),
        "captured_at": row["captured_at"],
        "created_at": row["created_at"],
    }


def _mark(rows: list[dict[str, Any]]) -> str:
    text = "|".join(f"{row['sequence']}-{row['checksum']}" for row in rows)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
