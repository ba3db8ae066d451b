"""The watch over matches as operators see it: stalest or paused ones first, the next poll, the last recovery step."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Prefetch, QuerySet

from scraping.models import Match, MatchLifecycle, MatchRef
from scraping.policies.ladder import Rung

MOST = 1000


def silence_text(match: Match, now: datetime) -> str:
    """Returns the last recovery step of a silent match, and when; empty where it is not silent."""
    if match.silence_rung == Rung.GROUND:
        return ""
    tried = Rung(match.silence_rung).operator_text
    since = match.frozen_at if match.silence_rung == Rung.FROZEN else match.silence_rung_at
    if since is None:
        return f"silent: {tried}"
    seconds = max(0.0, (now - since).total_seconds())
    ago = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    return f"silent: {tried} {ago} ago"


def stalest_first(**conditions: Any) -> list[Match]:
    """Returns the matches that are still read and meet the conditions; those that were never read come first."""
    matches = Match.objects.watched().filter(merged_into=None, **conditions)
    return _with_refs(matches.stalest_first()[:MOST])


def paused() -> list[Match]:
    """Returns the paused matches, the first to go on first."""
    return _with_refs(Match.objects.watched().paused().filter(merged_into=None).order_by("pause_until", "pk"))


def _with_refs(matches: QuerySet[Match]) -> list[Match]:
    """Loads their refs, the most trusted first."""
    refs = MatchRef.objects.select_related("source").defer("payload", "source__metadata", "source__selectors")
    by_weight = refs.order_by("-source__precedence_weight", "pk")
    return list(matches.defer("payload", "provenance").prefetch_related(Prefetch("refs", queryset=by_weight)))


def next_poll(match: Match) -> tuple[MatchRef | None, datetime | None]:
    """Returns the ref that is polled next, and when; a paused match is polled at the end of its pause."""
    polled = [(ref.next_poll_at, ref) for ref in match.refs.all() if ref.is_watched and ref.next_poll_at is not None]
    at, ref = min(polled, key=lambda pair: pair[0], default=(None, None))
    return ref, match.pause_until if match.lifecycle == MatchLifecycle.PAUSED else at
