"""Problems of reads of the past: states that are no longer kept, or do not exist yet."""

from __future__ import annotations

from typing import Any

from scraping.documents.cached_match import CachedMatch
from scraping.models.snapshot import KEPT_HOURS
from victoryline.lib.http.problems import ApiProblem

Oldest = tuple[int, str] | None  # sequence and time of the oldest kept state


def too_old(match: CachedMatch, oldest: Oldest) -> ApiProblem:
    advice = f"Request one of those, or read the present state: /api/v1/matches/{match.id}."
    return ApiProblem("too-old", f"{_kept(oldest)} {advice}", **_limits(match, oldest))


def overflow(match: CachedMatch, since: int, oldest: Oldest) -> ApiProblem:
    advice = f"Read the whole match, /api/v1/matches/{match.id}, and continue from its sequence."
    return ApiProblem(
        "delta-overflow",
        f"The state {since} of the match is no longer kept. {_kept(oldest)} {advice}",
        **_limits(match, oldest),
    )


def _kept(oldest: Oldest) -> str:
    if oldest is None:
        return f"No earlier state of this match is kept (we keep them for {KEPT_HOURS} hours)."
    return f"We keep states for {KEPT_HOURS} hours; the oldest of this match is {oldest[0]}, of {oldest[1]}."


def _limits(match: CachedMatch, oldest: Oldest) -> dict[str, Any]:
    sequence, written_at = oldest or (None, None)
    return {"oldest_sequence": sequence, "oldest_at": written_at, "newest_sequence": match.sequence}


# Requested by the former id of a merged match, whose sequences and row ids have another meaning in the merged one.
MERGED_MATCH = {
    "state": (
        "too-old",
        "has sequences of its own. Request one of those, /api/v1/matches/{id}/snapshots, or read /api/v1/matches/{id}.",
    ),
    "delta": (
        "delta-overflow",
        "has sequences of its own. Read the whole match, /api/v1/matches/{id}, and continue from its sequence.",
    ),
    "feed": (
        "delta-overflow",
        "has a feed of its own. Read that feed from its start, /api/v1/matches/{id}/events.",
    ),
}


def refuse_former_id(match: CachedMatch, name: str, wanted: str) -> None:
    """Raises if `name` is the former id of the match. `wanted`: a key of MERGED_MATCH."""
    if match.is_former_id(name):
        kind, advice = MERGED_MATCH[wanted]
        detail = f"Match {name} was merged into match {match.id}, which {advice.format(id=match.id)}"
        raise ApiProblem(kind, detail, match_id=match.id, newest_sequence=match.sequence)


def ahead(match: CachedMatch, since: int) -> ApiProblem:
    """Not a 400: for a moment another process may have seen a commit that this one has not."""
    return ApiProblem(
        "conflict",
        f"The match is at sequence {match.sequence}, and the request has {since}. Try again in a second; if the error "
        f"persists, read the whole match, /api/v1/matches/{match.id}, and continue from its sequence.",
        retry_after=1,
        newest_sequence=match.sequence,
    )


def ahead_in_feed(match: CachedMatch, since: int) -> ApiProblem:
    """Rows that were served are missing: the database was restored, and new rows have other ids."""
    return ApiProblem(
        "conflict",
        f"No row of this match has an id as high as {since}. Try again in a second; if the error persists, rows that "
        f"were served before are lost on the server: start again with `since=0`.",
        retry_after=1,
        newest_sequence=match.sequence,
    )
