"""Lists of matches, as old as the matches that we read ourselves.

Matches that only a partner submits show their own age: one silent partner must not make every list stale.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from scraping.api.bodies import (
    ItemFreshness,
    ListMetadata,
    MatchItem,
    MatchList,
    list_text,
    render_fields,
    render_match,
)
from scraping.api.fresh_view import (
    CACHE_SECONDS,
    Answer,
    Asked,
    FreshView,
    address,
    describe_read,
    header,
    match_version,
    refuse_stale,
)
from scraping.api.params import ListParams, make_cursor, match_filter, read_cursor
from scraping.documents.cached_match import CachedMatch
from scraping.documents.freshness import DataState, Freshness
from scraping.payloads import Status
from victoryline.lib.times import as_utc_iso

EMPTY = Freshness(state=DataState.UNKNOWN, scraped_at=None, age_seconds=None, next_update_in=None)


@describe_read(
    "list_matches",
    "List matches",
    "Newest first, or as `sort` says. The headers speak for the oldest live match in the answer among those that we "
    "read ourselves.",
    MatchList,
    ListParams,
    header("Link", 'The addresses of the first and the next page: `<...>; rel="next"` (RFC 8288).'),
)
class MatchListView(FreshView):
    params = ListParams

    def find(self, asked: Asked) -> Answer:
        now, wanted = timezone.now(), match_filter(asked)
        after = read_cursor(asked.get("cursor"), wanted)
        page = self.page(wanted, after=after, limit=asked["limit"])
        cursor = make_cursor(wanted.sort.place(page.matches[-1]), wanted) if page.has_more else ""
        chosen = asked.get("fields", "")
        first = address(self.request, cursor=None)
        next_page = self.link(first=first, next=cursor and address(self.request, cursor=cursor))

        def item(match: CachedMatch, freshness: Freshness) -> bytes:
            shown = ItemFreshness.render(freshness)
            if chosen:
                return render_fields(match, chosen.split(","), freshness=shown)
            return render_match(MatchItem, match, freshness=shown)

        mark = f"{cursor}|{chosen}"
        return list_answer(page.matches, asked.get("max_age"), now, mark=mark, item=item, next=next_page)


def list_answer(
    found: Sequence[CachedMatch],
    max_age: int | None,
    now: datetime,
    *,
    mark: str,
    item: Callable[[CachedMatch, Freshness], bytes],
    **added: Any,
) -> Answer:
    """Answers a list. `mark` is a part of its ETag, `added` are values of its body. Raises `too-stale`."""
    matches, left_out = _without_stale_submissions(found, max_age, now)
    listed = age_of_list(matches, max_age, now)

    def body() -> bytes:
        metadata = ListMetadata.render(
            listed.freshness, generated_at=as_utc_iso(now), count=len(matches), left_out=left_out
        )
        items = [item(match, age) for match, age in zip(matches, listed.ages, strict=True)]
        return list_text(items, **added, _metadata=metadata)

    parts = "|".join(map(match_version, matches))
    return Answer(
        freshness=listed.freshness,
        good_for=listed.good_for,
        etag=f'"{hashlib.sha256(f"{parts}|{mark}|{left_out}".encode()).hexdigest()[:32]}"',
        cache_seconds=min((CACHE_SECONDS[Status(match.status)] for match in matches), default=1),
        changed_at=max((match.changed_at for match in matches if match.changed_at is not None), default=None),
        body=body,
    )


@dataclass(frozen=True)
class ListAge:
    """The age of a list, the ages of its matches, and for how long it is younger than the caller accepts."""

    freshness: Freshness
    ages: Sequence[Freshness]
    good_for: float | None


def age_of_list(matches: Sequence[CachedMatch], max_age: int | None, now: datetime) -> ListAge:
    """Raises `too-stale` for the age of those that we read ourselves."""
    ages = [match.freshness(now) for match in matches]
    ours = [(match, age) for match, age in zip(matches, ages, strict=True) if not match.is_submitted]
    oldest = _oldest(ours)
    good_for = refuse_stale(oldest, max_age if ours else None)
    if max_age is not None:  # a submitted match that becomes too old is left out of the next answer
        submitted = (age for match, age in zip(matches, ages, strict=True) if match.is_submitted)
        spare = [max_age - (age.age_seconds or 0.0) for age in submitted if age.state != DataState.FINAL]
        good_for = min([*spare, *([] if good_for is None else [good_for])], default=None)
    return ListAge(replace(oldest, next_update_in=_next_update_in(matches, now)), ages, good_for)


def _without_stale_submissions(
    found: Sequence[CachedMatch], max_age: int | None, now: datetime
) -> tuple[Sequence[CachedMatch], int]:
    """Leaves out submitted matches older than the caller accepts; returns the rest and how many were left out."""
    if max_age is None:
        return found, 0
    kept = [match for match in found if not (match.is_submitted and match.freshness(now).is_older_than(max_age))]
    return kept, len(found) - len(kept)


def _oldest(ours: Sequence[tuple[CachedMatch, Freshness]]) -> Freshness:
    """A list is as old as its oldest live match; without one, as the oldest upcoming match that was read."""
    live = [age for match, age in ours if match.status == Status.LIVE]
    upcoming = [age for match, age in ours if match.status == Status.UPCOMING and match.scraped_at]
    chosen = live or upcoming or [age for _, age in ours]
    return max(chosen, key=lambda age: age.age_seconds or 0.0, default=EMPTY)


def _next_update_in(matches: Sequence[CachedMatch], now: datetime) -> float | None:
    """Returns the seconds until the first of the matches is read again; paused matches are left out."""
    unfinished = (match for match in matches if match.status in {Status.LIVE, Status.UPCOMING})
    planned = [at for match in unfinished if (at := match.next_update_at) is not None]
    return max(0.0, (min(planned) - now).total_seconds()) if planned else None
