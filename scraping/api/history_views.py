"""The history of a match over HTTP: as of a time or a sequence, delta, snapshots."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter

from scraping.api import history_problems, params, reads
from scraping.api.bodies import FullMetadata, MatchDocument, PastMetadata, Values
from scraping.api.fresh_view import (
    CACHE_SECONDS,
    ID,
    Answer,
    Asked,
    FreshView,
    MatchReadView,
    address,
    describe_read,
    unsequenced_version,
)
from scraping.api.history_bodies import MatchDelta, SnapshotDocument, SnapshotList
from scraping.documents import queries
from scraping.documents.cached_match import SHOWN, CachedMatch
from scraping.documents.freshness import DataState, Freshness
from scraping.payloads import MatchState, Status
from victoryline.lib.http.problems import ApiProblem, BadParameter, DatabaseAway
from victoryline.lib.http.views import MakeBody
from victoryline.lib.times import as_utc_iso

PAST_CACHE_SECONDS = 86_400  # an earlier state never changes
WITHOUT_HISTORY = tuple(name for name in SHOWN if name not in MatchState.model_fields)  # null in a read of the past


@describe_read(
    "read_delta",
    "Read the changes of a match",
    "The difference between an earlier state (`since`: its sequence) and the present one. Replace the fields in "
    "`changed` in your document and delete those in `removed`: the result is the state of `to_sequence`. If the "
    "earlier state is no longer kept, the answer is 410 `delta-overflow`: read the whole match, and continue from its "
    "sequence.",
    MatchDelta,
    ID,
    params.DeltaParams,
    tag="history",
    problems=(409, 410),
)
class MatchDeltaView(MatchReadView):
    params = params.DeltaParams

    def read(self, match: CachedMatch, freshness: Freshness, asked: Asked) -> tuple[str, MakeBody]:
        since, limit = asked["since"], asked["limit"]
        if since:
            history_problems.refuse_former_id(match, self.kwargs["match_id"], "delta")
        delta = delta_of(match, since, limit=limit, freshness=freshness)
        return f'"{match.id}-{since}-{match.sequence}-{match.status}-{limit}-delta"', delta


def delta_of(match: CachedMatch, since: int, *, limit: int, freshness: Freshness) -> Callable[[], Values]:
    """Returns the function that renders the delta since a sequence. Raises a problem if there can be none.

    `limit`: of its events; 0: none of them are in it, `next_since` says that they begin at the start of the feed.
    """
    found = _difference(match, since)
    events, has_more = _events_since(match, since, limit) if limit else ([], True)
    return lambda: MatchDelta.render(
        id=match.id,
        _diff_type="none" if since == match.sequence else "update" if since else "initial",
        _sequence_delta=match.sequence - since,
        from_sequence=since,
        to_sequence=match.sequence,
        changed=found.changed,
        removed=found.removed,
        events=events,
        has_more=has_more,
        next_since=(events[-1]["id"] if events else 0) if has_more else None,
        _metadata=FullMetadata.of(match, freshness),
    )


def _difference(match: CachedMatch, since: int) -> queries.Difference:
    if since > match.sequence:
        raise history_problems.ahead(match, since)
    if since == match.sequence:
        return queries.Difference({}, [])
    if not since:
        return queries.Difference(reads.state_of(match), [])
    row = reads.at_sequence(match, since)
    if row is None:
        raise history_problems.overflow(match, since, reads.oldest(match))
    before = reads.as_it_was(match, row)
    had = reads.state_of(before)
    if not before.payload.get("start_time") and before.start_time is not None:
        # The match keeps the last known start, which may differ from the one served then: it is sent again.
        had.pop("start_time", None)
    return queries.difference(had, reads.state_of(match))


def _events_since(match: CachedMatch, since: int, limit: int) -> tuple[list[dict[str, Any]], bool]:
    if since == match.sequence:
        return [], False
    feed = reads.events(match, since=0, since_sequence=since, limit=limit)
    if feed.sequence < match.sequence:  # the rows in between would be in no later delta either
        raise DatabaseAway("The events since then are not cached. ")
    rows = [row for row in feed.rows if row["sequence"] <= match.sequence]
    return rows, feed.has_more and len(rows) == len(feed.rows)  # later rows belong to the next delta


@describe_read(
    "list_snapshots",
    "List earlier states of a match",
    "The states that are still kept, newest first, each with the fields that changed.",
    SnapshotList,
    ID,
    params.SnapshotParams,
    tag="history",
)
class MatchSnapshotsView(MatchReadView):
    params = params.SnapshotParams

    def read(self, match: CachedMatch, freshness: Freshness, asked: Asked) -> tuple[str, MakeBody]:
        rows, has_more = reads.snapshots(match, before=asked.get("before"), limit=asked["limit"])
        next_page = self.link(
            first=address(self.request, before=None),
            next=address(self.request, before=rows[-1]["sequence"]) if has_more else "",
        )
        text = "|".join(f"{row['sequence']}-{row['checksum']}" for row in rows)
        mark = hashlib.sha256(text.encode()).hexdigest()[:16]
        etag = f'"{match.id}-{match.status}-{mark}{"+" if has_more else ""}"'
        return etag, lambda: SnapshotList.render(
            snapshots=rows, next=next_page, _metadata=FullMetadata.of(match, freshness)
        )


@describe_read(
    "read_snapshot",
    "Read an earlier state of a match",
    "The stored state, with its checksum and the source of each field. It never changes. If it is no longer kept, the "
    "answer is 410 `too-old`, with the oldest state that is.",
    SnapshotDocument,
    ID,
    OpenApiParameter(
        "sequence",
        {"type": "integer", "minimum": 1, "maximum": params.MAX_SEQUENCE},
        OpenApiParameter.PATH,
        description="The sequence of the state.",
    ),
    params.MaxAgeParams,
    tag="history",
    problems=(410,),
)
class MatchSnapshotView(FreshView):
    def find(self, asked: Asked) -> Answer:
        match, sequence = self.match(), self.kwargs["sequence"]
        row = _at_sequence(match, sequence, self.kwargs["match_id"])
        if row["sequence"] != sequence:
            raise history_problems.too_old(match, reads.oldest(match))
        was = reads.as_it_was(match, row)
        freshness = _freshness_then(was, timezone.now())
        return Answer(
            freshness=freshness,
            etag=f'"{match.id}-{sequence}-snapshot"',
            cache_seconds=PAST_CACHE_SECONDS,
            changed_at=was.changed_at,
            body=lambda: {**row, "_metadata": _metadata_then(was, row, freshness, None)},
        )


def past(match: CachedMatch, asked: Asked, *, name: str, now: datetime) -> Answer:
    """Returns the match as it was at a time (`as_of`) or a sequence. `name`: how it was requested."""
    moment: datetime | None = asked.get("as_of")
    _refuse_contradictions(asked, now)
    row = _at_sequence(match, asked["sequence"], name) if moment is None else reads.at_time(match, moment)
    if row is None:
        raise history_problems.too_old(match, reads.oldest(match))
    was = reads.as_it_was(match, row)
    freshness = _freshness_then(was, now)
    more = {"provenance": row["provenance"]} if "provenance" in asked.get("include", "") else {}
    is_closed = moment is None or row["sequence"] < match.sequence
    version = unsequenced_version(was, without=WITHOUT_HISTORY)
    return Answer(
        freshness=freshness,
        etag=f'"{match.id}-{row["sequence"]}-as-of-{version}{"-provenance" if more else ""}"',
        cache_seconds=PAST_CACHE_SECONDS if is_closed else CACHE_SECONDS[Status(match.status)],
        changed_at=was.changed_at,
        body=lambda: MatchDocument.render(
            was,
            **dict.fromkeys(WITHOUT_HISTORY),
            **more,
            _metadata=_metadata_then(was, row, freshness, moment),
        ),
    )


def _refuse_contradictions(asked: Asked, now: datetime) -> None:
    if {"as_of", "sequence"} <= asked.keys():
        raise BadParameter("as_of", "`as_of` and `sequence` both select a state: leave one out.")
    if "provisional" in asked.get("include", ""):
        named = "as_of" if "as_of" in asked else "sequence"
        raise BadParameter(
            named,
            f"`{named}` cannot be combined with `include=provisional`: only the present state has provisional scores.",
        )
    if "as_of" in asked and asked["as_of"] > now:
        raise BadParameter("as_of", "`as_of` is in the future. Leave it out to read the present state.")


def _at_sequence(match: CachedMatch, sequence: int, name: str) -> dict[str, Any]:
    history_problems.refuse_former_id(match, name, "state")
    if sequence > match.sequence or not sequence:
        raise ApiProblem(
            "not-found",
            f"The match has not reached sequence {sequence} yet: it is at {match.sequence}.",
            newest_sequence=match.sequence,
        )
    row = reads.at_sequence(match, sequence)
    if row is None:
        raise history_problems.too_old(match, reads.oldest(match))
    return row


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
        served_at=row["served_at"],
        integrity=None,
    )
