"""Wickets that a list of deliveries does not name: two on one ball, where the source has room for one of them.

The score tells that there were two. The one that is named keeps the number that the score gives it, whatever part of
the list was read; the other gets the number before it, so that the count of wickets has no hole.
"""

from __future__ import annotations

from collections.abc import Iterable

from scraping import event_keys
from scraping.payloads import Event

UNNAMED = "another wicket fell with this ball; the source names one"


def with_unnamed(events: Iterable[Event]) -> list[Event]:
    """Oldest first, each dismissal after its ball. Added only where the ball before is known to be the one before."""
    found: list[Event] = []
    ball = before = None
    for event in events:
        if event.slot.startswith("b:"):
            before, ball = ball, event
        elif event.kind == "dismissal" and ball is not None:
            found += _unnamed(event, _fallen(ball, before) - 1)
        found.append(event)
    return found


def _unnamed(told: Event, count: int) -> list[Event]:
    number = told.detail.get("wicket")
    if not isinstance(number, int) or told.innings is None:
        return []
    return [
        told.model_copy(
            update={
                "id": f"{told.id}{place + 1}"[:120],
                "slot": event_keys.wicket(told.innings, number - place),
                "description": UNNAMED,
                "detail": {"player": "", "text": UNNAMED, "wicket": number - place},
            }
        )
        for place in range(min(count, number - 1), 0, -1)
    ]


def _fallen(ball: Event, before: Event | None) -> int:
    """How many wickets the ball brought, by the scores; none where that cannot be told."""
    now = _wickets(ball)
    if now is None:
        return 0
    if ball.ordinal is not None and ball.ordinal == event_keys.position(ball.innings or 0, 0, 1):
        return now
    then = _wickets(before) if before is not None and _follows(ball, before) else None
    return 0 if then is None else now - then


def _follows(ball: Event, before: Event) -> bool:
    """Is it surely the very next ball? Over the end of an over only where that was its sixth that counts."""
    if ball.ordinal is None or before.ordinal is None or ball.innings != before.innings:
        return False
    if ball.ordinal == before.ordinal + 1:
        return True
    is_last = (before.over or "").endswith(".6") and before.kind not in ("wide", "no_ball")
    return is_last and ball.ordinal in event_keys.successors(before.ordinal)


def _wickets(ball: Event) -> int | None:
    _, _, wickets = str(ball.detail.get("score") or "").partition("/")
    return int(wickets) if wickets.isdecimal() else None
