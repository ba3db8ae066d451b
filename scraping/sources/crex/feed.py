"""The ball feed (getBallFeeds): balls, dismissals, over summaries and reviews, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Event, LastEvent
from scraping.sources import loose
from scraping.sources.balls import ball_kind
from scraping.sources.base import Document
from scraping.sources.crex import status

Item = Mapping[str, Any]
_NAMES = {"dot": "No run", "four": "Four", "six": "Six", "wicket": "Wicket", "runs": "Runs", "wide": "Wide"}
_NOT_CRITICAL = frozenset({"over_complete", "review", "other"})


def feed_items(document: Document | None, match_key: str) -> list[Item] | None:
    """The items of a feed answer; None where there is no usable answer. PayloadRejected if it is another match's."""
    if document is None or document.status >= 400:
        return None
    try:
        data = document.json()
    except SchemaBreak:
        return None
    return items_in(data, match_key)


def items_in(data: Any, match_key: str) -> list[Item] | None:
    if isinstance(data, dict):
        data = next((value for value in data.values() if isinstance(value, list)), None)
    if not isinstance(data, list):
        return None
    items = [item for item in loose.rows(data) if loose.text(item.get("id"), 120)]
    for item in items:
        stated = loose.text(item.get("mfkey"), 20)
        if stated and stated != match_key:
            raise PayloadRejected(f"the ball feed is about another match: {stated} instead of {match_key}")
    return items if items or not data else None  # a list of things without ids is not a feed that we know


def events_of(items: list[Item]) -> tuple[Event, ...]:
    """One event an item; an id that comes twice counts once."""
    unique: dict[str, Item] = {}
    for item in items:
        unique.setdefault(loose.text(item.get("id"), 120), item)
    return tuple(event_of(item) for item in unique.values())


def event_of(item: Item) -> Event:
    kind, runs = _kind(item)
    inning, delivery = loose.integer(item.get("inning")), loose.integer(item.get("delivery"))
    return Event(
        id=loose.text(item.get("id"), 120),
        kind=kind,
        innings=None if inning is None else inning + 1,
        over=loose.text(item.get("o"), 10) or None,
        ordinal=delivery if delivery is not None and delivery >= 1 else None,
        runs=runs,
        is_critical=kind not in _NOT_CRITICAL,
        description=_description(item, kind),
        happened_at=loose.moment(item.get("id"), per_second=1000),
        detail=_detail(item, kind),
    )


def last_event_of(items: list[Item], ball: str) -> LastEvent | None:
    """The newest item of the feed; without a feed the last ball as the live answer has it."""
    newest = max(items, key=_document_id, default=None)
    if newest is not None:
        event = event_of(newest)
        return LastEvent(type=event.kind, description=event.description, timestamp=event.happened_at)
    if not ball:
        return None
    phase = status.phase_in(ball)
    kind = phase.value if phase else ball_kind(ball)[0]
    return LastEvent(type=kind, description=_NAMES.get(kind, ball) if kind != "runs" else f"{ball} runs")


def oldest_id(items: list[Item]) -> Any:
    """The feed's own spelling of its oldest document id."""
    return min(items, key=_document_id)["id"]


def reaches_the_first_ball(items: list[Item]) -> bool:
    return any(loose.integer(item.get("delivery")) == 1 for item in items)


def _kind(item: Item) -> tuple[str, int | None]:
    """The item's `type` letter decides; its `fv` number stands in where the letter is missing."""
    letter, flag = loose.text(item.get("type"), 4), loose.integer(item.get("fv"))
    if letter == "w" or (not letter and flag == 64):
        return "dismissal", None
    if letter == "o" or (not letter and flag == 32):
        return "over_complete", loose.integer(item.get("runs"))
    if letter == "ac" or (not letter and flag == 4096):
        return "review", None
    if letter == "b" or (not letter and flag in (2, 4, 8)):
        return ball_kind(loose.text(item.get("b"), 12))
    return "other", None


def _description(item: Item, kind: str) -> str:
    if kind == "dismissal":
        player = loose.text(item.get("player_fullname") or item.get("player"), 120)
        score = f"{loose.text(item.get('r'), 5)}({loose.text(item.get('b'), 5)})"
        return " ".join(filter(None, (player, loose.plain(item.get("wicketDesc"), 200), score.replace("()", ""))))
    if kind == "over_complete":
        over, team, score = (loose.text(item.get(name), 120) for name in ("o", "team", "s"))
        return f"End of over {over}: {team} {score}"
    return loose.text(" ".join(filter(None, (loose.plain(item.get("c1")), loose.plain(item.get("c2"))))))


def _detail(item: Item, kind: str) -> dict[str, str | int | float | bool | None]:
    if kind == "dismissal":
        return {
            "player": loose.text(item.get("player_fullname") or item.get("player"), 120),
            "text": loose.plain(item.get("wicketDesc"), 200),
            "wicket": loose.integer(item.get("wn")),
        }
    wanted = {"score": "s", "ball": "b", "batter_key": "pf", "bowler_key": "bf"}
    return {
        ours: loose.text(item.get(theirs), 40) for ours, theirs in wanted.items() if loose.text(item.get(theirs), 40)
    }


def _document_id(item: Item) -> tuple[int, str]:
    return loose.integer(item.get("id")) or 0, loose.text(item.get("id"), 120)
