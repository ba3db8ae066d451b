"""Cricket helpers that several sources share: ball codes, and wickets that a list of deliveries does not name.

Two wickets may fall with one ball where the source has room for one. The score shows that there were two. The named one
keeps the number that the score gives it, whatever part of the list was read; the other gets the number before it, so
that the count of wickets has no gap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from scraping import event_keys
from scraping.payloads import Event

_NUMBER = re.compile(r"\d{1,2}", re.ASCII)
_EXTRAS = (("wd", "wide"), ("nb", "no_ball"), ("lb", "leg_bye"))
UNNAMED_WICKET = "another wicket fell with this ball; the source names one"


def ball_kind(code: str) -> tuple[str, int | None]:
    """Returns kind and runs of a ball's code: "4", "1nb" (feed) or "nb1" (recent overs), "W", "^2" (caught)."""
    token = code.strip().lower()
    numbers = [int(number) for number in _NUMBER.findall(token)]
    if token.startswith("^"):
        return "wicket", 0
    for mark, kind in _EXTRAS:
        if mark in token and "w" not in token.replace("wd", ""):
            return kind, sum(numbers) if numbers else 1
    if "w" in token and len(token) <= 6:
        return "wicket", sum(numbers)
    if re.fullmatch(r"\d{0,2}b\d{1,2}|\d{1,2}b", token):
        return "bye", sum(numbers)
    if re.fullmatch(r"\d{1,2}", token):
        return {0: "dot", 4: "four", 6: "six"}.get(numbers[0], "runs"), numbers[0]
    return "other", None


def with_unnamed_wickets(events: Iterable[Event]) -> list[Event]:
    """Adds unnamed wickets where the previous ball is known. `events` are oldest first, a dismissal after its ball."""
    found: list[Event] = []
    ball = before = None
    for event in events:
        if event.slot.startswith("b:"):
            before, ball = ball, event
        elif event.kind == "dismissal" and ball is not None:
            found += _unnamed_wickets(event, _wickets_of_ball(ball, before) - 1)
        found.append(event)
    return found


def _unnamed_wickets(named: Event, count: int) -> list[Event]:
    number = named.detail.get("wicket")
    if not isinstance(number, int) or named.innings is None:
        return []
    return [
        named.model_copy(
            update={
                "id": f"{named.id}{place + 1}"[:120],
                "slot": event_keys.wicket(named.innings, number - place),
                "description": UNNAMED_WICKET,
                "detail": {"player": "", "text": UNNAMED_WICKET, "wicket": number - place},
            }
        )
        for place in range(min(count, number - 1), 0, -1)
    ]


def _wickets_of_ball(ball: Event, before: Event | None) -> int:
    """Returns the number of wickets of the ball by the scores; 0 where it is unknown."""
    now = _wickets_after(ball)
    if now is None:
        return 0
    if ball.ordinal is not None and ball.ordinal == event_keys.position(ball.innings or 0, 0, 1):
        return now
    then = _wickets_after(before) if before is not None and _follows(ball, before) else None
    return 0 if then is None else now - then


def _follows(ball: Event, before: Event) -> bool:
    """Returns whether `ball` follows `before` directly; across overs only after the sixth legal ball."""
    if ball.ordinal is None or before.ordinal is None or ball.innings != before.innings:
        return False
    if ball.ordinal == before.ordinal + 1:
        return True
    is_last = (before.over or "").endswith(".6") and before.kind not in ("wide", "no_ball")
    return is_last and ball.ordinal in event_keys.successors(before.ordinal)


def _wickets_after(ball: Event) -> int | None:
    _, _, wickets = str(ball.detail.get("score") or "").partition("/")
    return int(wickets) if wickets.isdecimal() else None
