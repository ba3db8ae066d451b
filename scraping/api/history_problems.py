"""Problems of reads of the past: states that are no longer kept, or do not exist yet."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from scraping.documents.cached_match import CachedMatch
from victoryline.lib.http.problems import ApiProblem

Oldest = tuple[int, str] | None  # sequence and time of the oldest kept state


def too_old(match: CachedMatch, oldest: Oldest) -> ApiProblem:
    advice = f"Ask for one of those, or read the match as it is: /api/v1/matches/{match.id}."
    return ApiProblem("too-old", f"{_kept(oldest)} {advice}", **_limits(match, oldest))


def overflow(match: CachedMatch, since: int, oldest: Oldest) -> ApiProblem:
    advice = f"Read the match whole, /api/v1/matches/{match.id}, and go on from its sequence."
    return ApiProblem(
        "delta-overflow",
        f"The match as it was at {since} is gone. {_kept(oldest)} {advice}",
        **_limits(match, oldest),
    )


def _kept(oldest: Oldest) -> str:
    hours = settings.CONFIG.keep_snapshots_hours
    if oldest is None:
        return f"No earlier state of this match is kept (we keep them for {hours} hours)."
    return f"We keep states for {hours} hours; the oldest of this match is {oldest[0]}, of {oldest[1]}."


def _limits(match: CachedMatch, oldest: Oldest) -> dict[str, Any]:
    sequence, written_at = oldest or (None, None)
    return {"oldest_sequence": sequence, "oldest_at": written_at, "newest_sequence": match.sequence}


# Requested by the number of a match that turned out to be another one: the numbers of its states and rows mean other
# things there.
OF_ANOTHER_MATCH = {
    "state": (
        "too-old",
        "counts its own states. Ask for one of those, /api/v1/matches/{id}/snapshots, or read /api/v1/matches/{id}.",
    ),
    "delta": (
        "delta-overflow",
        "counts its own states. Read that one whole, /api/v1/matches/{id}, and go on from its sequence.",
    ),
    "feed": (
        "delta-overflow",
        "has a feed of its own. Begin with that one from the start, /api/v1/matches/{id}/events.",
    ),
}


def refuse_former_id(match: CachedMatch, name: str, wanted: str) -> None:
    """Raises if `name` is the former id of the match. `wanted`: a key of OF_ANOTHER_MATCH."""
    if match.is_former_id(name):
        kind, advice = OF_ANOTHER_MATCH[wanted]
        detail = f"Match {name} turned out to be match {match.id}, which {advice.format(id=match.id)}"
        raise ApiProblem(kind, detail, match_id=match.id, newest_sequence=match.sequence)


def ahead(match: CachedMatch, since: int) -> ApiProblem:
    """Not a 400: for a moment another process may have seen a commit that this one has not."""
    return ApiProblem(
        "conflict",
        f"The match is at {match.sequence}, you say that you have {since}. Ask again in a second; if it stays so, read "
        f"the match whole, /api/v1/matches/{match.id}, and go on from its sequence.",
        retry_after=1,
        newest_sequence=match.sequence,
    )


def ahead_in_feed(match: CachedMatch, since: int) -> ApiProblem:
    """Rows that were served and are not there: the database was restored, and new rows have other numbers."""
    return ApiProblem(
        "conflict",
        f"No row of this match has a number as high as {since}. Ask again in a second; if it stays so, what you had "
        "from us is lost here: begin anew with `since=0`.",
        retry_after=1,
        newest_sequence=match.sequence,
    )
