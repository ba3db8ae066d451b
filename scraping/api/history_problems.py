"""Problems of reads of the past: states that are no longer kept, or do not exist yet."""

from __future__ import annotations

from typing import Any, TypeVar

from django.conf import settings
from rest_framework import status

from scraping.documents.cached_match import CachedMatch
from victoryline.lib.http.problems import ApiProblem, BadParameter, Conflict

GONE = status.HTTP_410_GONE


class TooOld(ApiProblem):
    status_code = GONE
    kind = "too-old"


class DeltaOverflow(ApiProblem):
    status_code = GONE
    kind = "delta-overflow"


class NoSuchSequence(ApiProblem):
    status_code = status.HTTP_404_NOT_FOUND


Oldest = tuple[int, str] | None
Problem = TypeVar("Problem", bound=ApiProblem)


def too_old(match: CachedMatch, oldest: Oldest) -> TooOld:
    return TooOld(
        f"{_kept_words(oldest)} Ask for one of those, or read the match as it is: /api/v1/matches/{match.id}.",
        **_limits(match, oldest),
    )


def counts_its_own(match: CachedMatch, name: str) -> TooOld:
    """The state that had this number under the old one is another than the one that has it here."""
    return _of_another(
        TooOld,
        match,
        name,
        f"counts its own states. Ask for one of those, /api/v1/matches/{match.id}/snapshots, or read the match as it "
        f"is: /api/v1/matches/{match.id}.",
    )


def overflow(match: CachedMatch, since: int, oldest: Oldest) -> DeltaOverflow:
    return DeltaOverflow(
        f"The match as it was at {since} is gone. {_kept_words(oldest)} Read the match whole, "
        f"/api/v1/matches/{match.id}, and go on from its sequence.",
        **_limits(match, oldest),
    )


def became_another(match: CachedMatch, name: str) -> DeltaOverflow:
    return _of_another(
        DeltaOverflow,
        match,
        name,
        f"counts its own states. Read that one whole, /api/v1/matches/{match.id}, and go on from its sequence.",
    )


def has_another_feed(match: CachedMatch, name: str) -> DeltaOverflow:
    """What both of them told has another id there: whoever went on would have it twice, and lack what came before."""
    return _of_another(
        DeltaOverflow,
        match,
        name,
        f"has a feed of its own. Begin with that one from the start, /api/v1/matches/{match.id}/events.",
    )


def not_yet(match: CachedMatch, sequence: int) -> NoSuchSequence:
    return NoSuchSequence(
        f"The match has not come to {sequence} yet: it is at {match.sequence}.", newest_sequence=match.sequence
    )


def ahead(match: CachedMatch, since: int) -> Conflict:
    """Not a 400: for a moment another process may have seen a commit that this one has not."""
    return Conflict(
        f"The match is at {match.sequence}, you say that you have {since}. Ask again in a second; if it stays so, read "
        f"the match whole, /api/v1/matches/{match.id}, and go on from its sequence.",
        retry_after=1,
        newest_sequence=match.sequence,
    )


def ahead_in_feed(match: CachedMatch, since: int) -> Conflict:
    """Rows that were given out and are not there: the database was restored, and what is new has other numbers."""
    return Conflict(
        f"No row of this match has a number as high as {since}. Ask again in a second; if it stays so, what you had "
        "from us is lost here: begin anew with `since=0`.",
        retry_after=1,
        newest_sequence=match.sequence,
    )


def in_the_future() -> BadParameter:
    return BadParameter("as_of", "`as_of` is in the future. Leave it out for the match as it is now.")


def _of_another(problem: type[Problem], match: CachedMatch, name: str, words: str) -> Problem:
    """Asked for by the number of a match that turned out to be this one. `words`: which ..., and what to do."""
    return problem(
        f"Match {name} turned out to be match {match.id}, which {words}",
        match_id=match.id,
        newest_sequence=match.sequence,
    )


def _kept_words(oldest: Oldest) -> str:
    hours = settings.CONFIG.keep_snapshots_hours
    if oldest is None:
        return f"No earlier state of this match is kept (we keep them for {hours} hours)."
    return f"We keep states for {hours} hours; the oldest of this match is {oldest[0]}, of {oldest[1]}."


def _limits(match: CachedMatch, oldest: Oldest) -> dict[str, Any]:
    return {
        "oldest_sequence": oldest[0] if oldest else None,
        "oldest_at": oldest[1] if oldest else None,
        "newest_sequence": match.sequence,
    }
