"""Which matches a job need not read: those that are over, and of which nothing is missing."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Count, Q

from scraping.models import EventAction, MatchEvent, MatchRef
from scraping.payloads import Status

GOALS = ("goal", "own_goal", "penalty_goal")


def complete_ones(refs: Sequence[MatchRef]) -> dict[int, str]:
    """Why there is nothing to do, by ref."""
    ended = [ref for ref in refs if _is_over(ref)]
    listed = _events_of(ended)
    return {
        ref.pk: f"complete already: {ref.payload['result']}"[:200]
        for ref in ended
        if _has_all_events(ref, *listed.get((ref.match_id, ref.source_id), (0, 0)))
    }


def _is_over(ref: MatchRef) -> bool:
    """Both the match and what this source says of it: another source's word is not this one's."""
    return (
        ref.match.status == Status.COMPLETED
        and ref.payload.get("status") == Status.COMPLETED
        and bool(ref.payload.get("result"))
        and not ref.has_gap
    )


def _has_all_events(ref: MatchRef, total: int, goals: int) -> bool:
    """Numbered ones have no hole (that was asked before). Others must at least tell of every goal."""
    if ref.events_seen:
        return True
    sides = (ref.payload.get("score") or {}).values()
    return total > 0 and goals >= sum((side or {}).get("goals") or 0 for side in sides)


def _events_of(refs: Sequence[MatchRef]) -> dict[tuple[int, int], tuple[int, int]]:
    """How many events are stored, and how many of them are goals, by match and source."""
    rows = MatchEvent.objects.filter(match_id__in=[ref.match_id for ref in refs], is_current=True)
    counted = (
        rows.exclude(action=EventAction.RETRACT)
        .order_by()
        .values_list("match_id", "source_id")
        .annotate(total=Count("pk"), goals=Count("pk", filter=Q(kind__in=GOALS)))
    )
    return {(match_id, source_id): (total, goals) for match_id, source_id, total, goals in counted}
