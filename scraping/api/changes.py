"""A delta over many matches: GET /api/v1/delta returns what changed in all matches that the filters accept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime

from django.utils import timezone

from scraping.api import known_sequences
from scraping.api.bodies import ListMetadata, Values
from scraping.api.fresh_view import Answer, Asked, FreshView, describe_read, needing_cache
from scraping.api.history_bodies import MatchDeltas
from scraping.api.history_views import delta_of
from scraping.api.match_lists import age_of_list
from scraping.api.params import DeltasParams, match_filter
from scraping.documents.cached_match import CachedMatch
from scraping.documents.freshness import Freshness
from victoryline.lib.http.problems import ApiProblem, BadParameter
from victoryline.lib.times import as_utc_iso

MAX_EVENTS = 50  # of one match; more are in its feed
LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


@describe_read(
    "read_deltas",
    "Read what has changed in many matches",
    "Without `since`: the whole state of every match that the filters accept. With `since`, the `next_since` of the "
    "answer before: what has changed in them, each in the form of a delta of one match. At most "
    f"{known_sequences.MAX_FOLLOWED} matches are followed. `has_more`: go on at once. A match that does not fit the "
    "filters any more is delivered once more, if it has changed, and named in `left`.",
    MatchDeltas,
    DeltasParams,
    tag="history",
)
class ChangesView(FreshView):
    params = DeltasParams

    def find(self, asked: Asked) -> Answer:
        now, wanted, limit = timezone.now(), match_filter(asked), asked["limit"]
        known = known_sequences.read(asked.get("since"), wanted)
        page = self.page(wanted, limit=known_sequences.MAX_FOLLOWED)
        if page.has_more:
            raise _too_many()
        followed = {match.id: match for match in page.matches}
        former = {match_id: self._former(match_id) for match_id in known if match_id not in followed}
        everyone = [*page.matches, *(match for match in former.values() if match is not None)]
        changed = [match for match in everyone if match.sequence > known.get(match.id, 0)]
        changed.sort(key=lambda match: (match.changed_at or LONG_AGO, match.id))  # the longest waiting first
        shown, waiting = changed[:limit], {match.id for match in changed[limit:]}
        left = sorted(former.keys() - waiting)
        ahead = sorted(match.id for match in everyone if match.sequence < known.get(match.id, 0))
        has = {**known, **{match.id: match.sequence for match in shown}}
        cursor = known_sequences.write({match_id: has[match_id] for match_id in has.keys() - set(left)}, wanted)
        listed = age_of_list(page.matches, asked.get("max_age"), now)
        parts = [(match.id, known.get(match.id, 0), match.sequence, match.status) for match in shown]

        def body() -> Values:
            metadata = ListMetadata.render(listed.freshness, generated_at=as_utc_iso(now), count=len(shown), left_out=0)
            return MatchDeltas.render(
                matches=[_delta(match, known.get(match.id, 0), match.freshness(now)) for match in shown],
                left=left,
                ahead=ahead,
                next_since=cursor,
                has_more=len(changed) > limit,
                _metadata=metadata,
            )

        return Answer(
            freshness=listed.freshness,
            good_for=listed.good_for,
            etag=f'"{hashlib.sha256(repr((parts, left, ahead, cursor)).encode()).hexdigest()[:32]}"',
            cache_seconds=1,
            changed_at=_last_change(page.matches),
            body=needing_cache(body),
        )

    def _former(self, match_id: int) -> CachedMatch | None:
        """Returns a match that the filters do not accept any more; None if it is gone or part of another one."""
        found = self.find_match(str(match_id))
        return found if found is not None and found.id == match_id else None


def _delta(match: CachedMatch, since: int, freshness: Freshness) -> Values:
    """Returns the delta of one match; its whole state where the state that the consumer has is not kept any more."""
    try:
        return delta_of(match, since, limit=MAX_EVENTS if since else 0, freshness=freshness)()
    except ApiProblem as problem:
        if problem.kind != "delta-overflow":
            raise
        return delta_of(match, 0, limit=0, freshness=freshness)()


def _last_change(matches: Iterable[CachedMatch]) -> datetime | None:
    return max((match.changed_at for match in matches if match.changed_at is not None), default=None)


def _too_many() -> BadParameter:
    return BadParameter(
        "status",
        f"A delta follows at most {known_sequences.MAX_FOLLOWED} matches, and these filters accept more. Narrow them, "
        "for example with `status=live,upcoming`.",
    )
