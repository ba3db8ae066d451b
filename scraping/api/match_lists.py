"""Lists of matches: how old a list is, and what is left out of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from scraping.api.bodies import ItemFreshness, ListMetadata, MatchItem, MatchList, list_text, render_match
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
    "Newest first. The headers speak for the oldest live match in the answer.",
    MatchList,
    ListParams,
    header("Link", 'Where the first and the next page are: `<...>; rel="next"` (RFC 8288).'),
)
class MatchListView(FreshView):
    params = ListParams

    def find(self, asked: Asked) -> Answer:
        now, wanted = timezone.now(), match_filter(asked)
        before = read_cursor(asked.get("cursor"), wanted)
        page = self.page(wanted, before_id=before, limit=asked["limit"])
        cursor = make_cursor(page.matches[-1].id, wanted) if page.has_more else ""
        first = address(self.request, cursor=None)
        next_page = self.link(first=first, next=cursor and address(self.request, cursor=cursor))

        def item(match: CachedMatch, freshness: Freshness) -> bytes:
            return render_match(MatchItem, match, freshness=ItemFreshness.render(freshness))

        return list_answer(page.matches, asked.get("max_age"), now, mark=cursor, item=item, next=next_page)


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
    ages = [match.freshness(now) for match in matches]
    oldest = _oldest(matches, ages)
    good_for = refuse_stale(oldest, max_age if matches else None)
    freshness = replace(oldest, next_update_in=_next_update_in(matches, now))

    def body() -> bytes:
        metadata = ListMetadata.render(freshness, generated_at=as_utc_iso(now), count=len(matches), left_out=left_out)
        items = [item(match, age) for match, age in zip(matches, ages, strict=True)]
        return list_text(items, **added, _metadata=metadata)

    parts = "|".join(map(match_version, matches))
    return Answer(
        freshness=freshness,
        good_for=good_for,
        etag=f'"{hashlib.sha256(f"{parts}|{mark}|{left_out}".encode()).hexdigest()[:32]}"',
        cache_seconds=min((CACHE_SECONDS[Status(match.status)] for match in matches), default=1),
        changed_at=max((match.changed_at for match in matches if match.changed_at is not None), default=None),
        body=body,
    )


def _without_stale_submissions(
    found: Sequence[CachedMatch], max_age: int | None, now: datetime
) -> tuple[Sequence[CachedMatch], int]:
    """Leaves out submitted matches that are older than the caller accepts; returns the rest and how many were left out.

    A consumer that stops submitting would otherwise fail every list with `max_age`. Stale readings of our own fail it.
    """
    if max_age is None:
        return found, 0
    kept = [match for match in found if not (match.is_submitted and match.freshness(now).is_older_than(max_age))]
    return kept, len(found) - len(kept)


def _oldest(matches: Sequence[CachedMatch], ages: Sequence[Freshness]) -> Freshness:
    """A list is as old as its oldest live match; without one, as the oldest upcoming match that was read."""
    pairs = list(zip(matches, ages, strict=True))
    live = [age for match, age in pairs if match.status == Status.LIVE]
    chosen = live or [age for match, age in pairs if match.status == Status.UPCOMING and match.scraped_at] or ages
    return max(chosen, key=lambda age: age.age_seconds or 0.0, default=EMPTY)


def _next_update_in(matches: Sequence[CachedMatch], now: datetime) -> float | None:
    """A list has news when any of its matches is read again; a match that is paused for a day is no reason to wait."""
    unfinished = (match for match in matches if match.status in {Status.LIVE, Status.UPCOMING})
    planned = [at for match in unfinished if (at := match.next_update_at) is not None]
    return max(0.0, (min(planned) - now).total_seconds()) if planned else None
