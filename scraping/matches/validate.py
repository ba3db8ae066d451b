"""CHECK: a success that carries rubbish is a failure. Good data is never overwritten by worse."""

from __future__ import annotations

from scraping.errors import PayloadRejected
from scraping.payloads import Figures, Lineups, Payload, Status

MAX_NULL_RATE = 0.6


def check(payload: Payload, *, expected_id: str, sport: str) -> None:
    """Raise PayloadRejected for a payload that must not be served."""
    check_same_match(payload, expected_id=expected_id)
    if payload.state.sport != sport:
        raise PayloadRejected(f"a {sport} match was described as {payload.state.sport.value}: not served")
    if payload.integrity.null_field_rate > MAX_NULL_RATE and not payload.is_partial_state:
        missing = ", ".join(payload.integrity.missing_fields)
        raise PayloadRejected(f"too little of the match was there to be believed; missing: {missing}")
    if payload.state.sport == "cricket" and payload.state.status is Status.LIVE:
        _check_overs(payload)


def _check_overs(payload: Payload) -> None:
    for innings in payload.state.innings:
        balls = int(innings.overs.partition(".")[2] or 0)
        if balls > 9:  # an over may run past six balls, never past nine
            raise PayloadRejected(f"{innings.overs} is not a number of overs")


def check_same_match(found: Payload | Lineups | Figures, *, expected_id: str) -> None:
    """Raise PayloadRejected for what was read of another match."""
    if found.source_event_id != expected_id:
        raise PayloadRejected(f"asked for {expected_id} and was given {found.source_event_id}: not served")
