"""How many connections a process may have, and for how long."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    maximum: int
    """Never more than this, lent and idle together."""
    kept: int
    """So many idle ones wait for the next burst; the others are closed as soon as they come back."""
    minimum: int
    """So many stay, however long they have been idle."""
    wait_seconds: float
    idle_seconds: float
    lifetime_seconds: float
    ping_seconds: float = 2.0
    """A server that does not answer SELECT 1 within this time is of no use."""
    trust_seconds: float = 0.5
    """A connection that was in use just now is lent again without a question."""
    retry_seconds: float = 1.0
    """While the server is away, one caller tries this often; the others are told at once."""
