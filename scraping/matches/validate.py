"""Decides whether a reading may be served: identity, completeness, and scores that go down.

Guards against data that is worse than the data it would replace. A score that goes down waits for confirmation: a stale
copy between good readings would make the score flicker, and a correction that is never accepted would freeze a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from scraping.errors import PayloadRejected
from scraping.matches import served_events
from scraping.matches.reconcile.states import (
    fill_gaps,
    goes_backwards,
    oriented,
    progress_summary,
    shows_other_teams,
)
from scraping.models import MatchRef
from scraping.payloads import Figures, Lineups, Payload, Status, checksum_of
from victoryline.lib.times import as_utc_iso

MAX_NULL_RATE = 0.6
CONFIRMING_READINGS = 3  # in a row, unless another source confirms the lower score before


def check(payload: Payload, *, expected_id: str, sport: str) -> None:
    """Raises PayloadRejected for a payload that must not be served."""
    check_same_match(payload, expected_id=expected_id)
    if payload.state.sport != sport:
        raise PayloadRejected(f"a {sport} match was described as {payload.state.sport.value}: not served")
    if payload.integrity.null_field_rate > MAX_NULL_RATE and not payload.is_partial_state:
        missing = ", ".join(payload.integrity.missing_fields)
        raise PayloadRejected(f"too many fields are missing: {missing}")
    if payload.state.sport == "cricket" and payload.state.status is Status.LIVE:
        for innings in payload.state.innings:
            if int(innings.overs.partition(".")[2] or 0) > 9:  # an over has sometimes more than six balls
                raise PayloadRejected(f"{innings.overs} is not a number of overs")


def check_same_match(found: Payload | Lineups | Figures, *, expected_id: str) -> None:
    """Raises PayloadRejected for a reading of another match."""
    if found.source_event_id != expected_id:
        raise PayloadRejected(f"requested {expected_id} and received {found.source_event_id}: not served")


def accept(ref: MatchRef, payload: Payload, others: Sequence[MatchRef], *, now: datetime) -> bool:
    """Makes the payload the latest state of its source. Returns False for a lower score that is not confirmed yet."""
    state = payload.normalized()
    if payload.is_partial_state and ref.payload:
        if shows_other_teams(state, ref.payload):
            raise PayloadRejected(f"the page shows {state['title']}, the match is {ref.match.title}: rejected")
        state = fill_gaps(state, ref.payload)
    if ref.payload and goes_backwards(ref.payload, state) and not _is_confirmed(ref, state, others):
        ref.match.provisional = {
            "source": ref.source.key,
            "since": ref.match.provisional.get("since") or as_utc_iso(now),
            "readings": int(ref.suspect_checksum.partition(":")[0]),
            "status": state.get("status"),
            "score": state.get("score"),
        }
        return False
    if ref.match.provisional and not _is_still_provisional(ref.match.provisional, others, now):
        ref.match.provisional = {}
    if state["toss"] is None:  # only the page has the toss; a reading without it does not remove it
        state["toss"] = ref.payload.get("toss")
    ref.suspect_checksum, ref.gone_at = "", None
    ref.payload, ref.captured_at = state, payload.captured_at
    ref.payload_schema, ref.integrity = payload.payload_schema, payload.integrity.model_dump(mode="json")
    return True


def _is_confirmed(ref: MatchRef, state: dict[str, Any], others: Sequence[MatchRef]) -> bool:
    """Counts the reading; returns whether another source has the same score or this is the third one in a row."""
    reading, _, suspect = ref.suspect_checksum.partition(":")
    summary = progress_summary(oriented(state, is_crossed=ref.is_crossed))
    number = int(reading) + 1 if suspect else 1
    ref.suspect_checksum = f"{number}:{checksum_of(summary)[:40]}"
    return number >= CONFIRMING_READINGS or any(
        progress_summary(oriented(other.payload, is_crossed=other.is_crossed)) == summary
        for other in others
        # A lower score that was read before the higher one was only late.
        if other.captured_at is not None and (ref.captured_at is None or other.captured_at > ref.captured_at)
    )


def _is_still_provisional(provisional: Mapping[str, Any], others: Sequence[MatchRef], now: datetime) -> bool:
    """Returns whether the lower score is another source's, and that source is still being read."""
    return any(
        other.source.key == provisional.get("source")
        and other.suspect_checksum
        and other.source.is_enabled
        and served_events.is_recent(other, now=now)
        for other in others
    )
