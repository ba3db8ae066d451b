"""What of a reading is believed: a score that goes down waits until somebody confirms it. Called by ingest.

Guards against both faces of a source's mistake: a stale copy between good answers would make the score flicker, and a
correction that is never believed would freeze the mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from scraping.errors import PayloadRejected
from scraping.matches import served_events
from scraping.matches.reconcile import (
    SourceView,
    fill_gaps,
    goes_backwards,
    orient,
    shows_other_teams,
    standing,
    with_sides_exchanged,
)
from scraping.models import MatchRef
from scraping.names import Aliases
from scraping.payloads import Payload, checksum_of
from victoryline.lib.times import as_utc_iso

BELIEVED_AFTER = 3  # readings in a row, unless another source confirms it before


def take(ref: MatchRef, payload: Payload, others: Sequence[MatchRef], *, now: datetime) -> bool:
    """Make the payload the source's latest word. A score that goes down is provisional until it is confirmed."""
    state = payload.normalized()
    if payload.is_partial_state and ref.payload:
        if shows_other_teams(state, ref.payload):
            raise PayloadRejected(f"the page shows {state['title']}, the match is {ref.match.title}: not believed")
        state = fill_gaps(state, ref.payload)
    if ref.payload and goes_backwards(ref.payload, state) and not _is_confirmed(ref, state, others):
        _note_provisional(ref, state, now)
        return False
    if ref.match.provisional and not _has_doubts(ref.match.provisional, others, now):
        ref.match.provisional = {}
    if state["toss"] is None:  # only the page tells the toss; a reading that did not see it does not deny it
        state["toss"] = ref.payload.get("toss")
    ref.suspect_checksum, ref.gone_at = "", None
    ref.payload, ref.captured_at = state, payload.captured_at
    return True


def note_sides(ref: MatchRef, aliases: Aliases) -> None:
    """Which way round the source names the teams: they stay where the match has them, whoever is heard."""
    crossed = orient(ref.payload, ref.match.payload, aliases) if ref.match.payload else None
    if crossed is not None:
        ref.is_crossed = crossed


def _is_confirmed(ref: MatchRef, state: dict[str, Any], others: Sequence[MatchRef]) -> bool:
    """Does another source tell the same, or is this the third such reading in a row? If not it is counted.

    A match that moves on may never be read twice alike: every reading counts that is below what was known.
    """
    reading, _, suspect = ref.suspect_checksum.partition(":")
    told = standing(with_sides_exchanged(state) if ref.is_crossed else state)
    number = int(reading) + 1 if suspect else 1
    ref.suspect_checksum = f"{number}:{checksum_of(told)[:40]}"
    since = [other for other in others if _is_later(other, ref)]
    return number >= BELIEVED_AFTER or any(standing(_oriented(other)) == told for other in since)


def _is_later(other: MatchRef, ref: MatchRef) -> bool:
    """Read after the higher score was: who told the lower one before that was only late."""
    return other.captured_at is not None and (ref.captured_at is None or other.captured_at > ref.captured_at)


def _has_doubts(provisional: Mapping[str, Any], others: Sequence[MatchRef], now: datetime) -> bool:
    """Is the score that waits another source's, and is that source still being read?"""
    return any(
        other.source.key == provisional.get("source")
        and other.suspect_checksum
        and other.source.is_enabled
        and served_events.teller(other, now=now).is_heard
        for other in others
    )


def _note_provisional(ref: MatchRef, state: dict[str, Any], now: datetime) -> None:
    since = ref.match.provisional.get("since") or as_utc_iso(now)
    ref.match.provisional = {
        "source": ref.source.key,
        "since": since,
        "readings": int(ref.suspect_checksum.partition(":")[0]),
        "status": state.get("status"),
        "score": state.get("score"),
    }


def views_of(
    refs: Iterable[MatchRef], *, unmoved_seconds: float | None = None, moving: MatchRef | None = None
) -> list[SourceView]:
    """What these sources say, of those that have been read, as it is reconciled.

    `unmoved_seconds`: for how long none of them has told another play, but the one that is `moving`.
    """
    return [
        SourceView(
            ref.source.key,
            ref.source.precedence_weight,
            ref.captured_at,
            ref.payload,
            is_crossed=ref.is_crossed,
            unmoved_seconds=None if ref is moving else unmoved_seconds,
        )
        for ref in refs
        if ref.captured_at is not None
    ]


def _oriented(ref: MatchRef) -> dict[str, Any]:
    """What a source says, with the sides as the match has them."""
    return with_sides_exchanged(ref.payload) if ref.is_crossed else ref.payload
