"""The ball feed (getBallFeeds): balls, dismissals, over summaries and reviews, newest first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from scraping import event_keys
from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Event, LastEvent
from scraping.sources import parsing
from scraping.sources.base import Document
from scraping.sources.crex import codes, places, schemas, status
from scraping.sources.crex.schemas import BallItem, FeedAnswer, FeedItem, OtherItem, OverItem, WicketItem

Item = FeedItem
Detail = dict[str, str | int | float | bool | None]
_NAMES = {"dot": "No run", "four": "Four", "six": "Six", "wicket": "Wicket", "wide": "Wide"}
_OTHERS = {"ac": "review"}
_RETIRED = re.compile(r"\bret(?:ired|d)\b\.?\s*(?:-\s*)?(?:hurt|ill|not)|\babsent\b", re.IGNORECASE)


def feed_items(document: Document | None, match_key: str) -> list[Item] | None:
    """The items of a feed answer; None where there is no usable answer. PayloadRejected if it is another match's."""
    if document is None or document.status >= 400:
        return None
    try:
        data = document.json()
    except SchemaBreak:
        return None
    return items_in(data, match_key, url=document.url)


def items_in(data: Any, match_key: str, *, url: str = "") -> list[Item] | None:
    """None where this is no list at all; SchemaBreak where its items are not what we know."""
    if isinstance(data, dict):
        data = next((value for value in data.values() if isinstance(value, list)), None)
    if not isinstance(data, list):
        return None
    for item in parsing.rows(data):
        stated = parsing.text(item.get("mfkey"), 20)
        if stated and stated != match_key:
            raise PayloadRejected(f"the ball feed is about another match: {stated} instead of {match_key}", url=url)
    unique: dict[object, Item] = {}
    for one in parsing.validated(FeedAnswer, {"items": data}, schema=schemas.FEED, url=url).items:
        unique.setdefault(parsing.text(one.id, 120), one)  # an id that comes twice counts once
    if "" in unique:
        raise SchemaBreak(f"{schemas.FEED}: items[].id (empty)", url=url)
    return list(unique.values())


def events_of(items: Sequence[Item]) -> tuple[Event, ...]:
    """One event an item, in the feed's order."""
    balls = sorted((one for one in items if isinstance(one, BallItem)), key=_document_id)
    known = places.places_of(balls, [one for one in items if isinstance(one, OverItem)])
    return tuple(event_of(item, known) for item in items)


def event_of(item: Item, known: Mapping[str, int] | None = None) -> Event:
    """`known`: places of deliveries within their overs, by item id."""
    if isinstance(item, BallItem):
        return _ball(item, (known or {}).get(str(item.id)))
    if isinstance(item, WicketItem):
        return _wicket(item)
    if isinstance(item, OverItem):
        return _over(item)
    assert isinstance(item, OtherItem)
    return _other(item)


def _ball(item: BallItem, place: int | None) -> Event:
    code = parsing.text(item.b, 12)
    kind, runs, _ = codes.kind_of(code, "items[].b")
    over = places.over_of(item)
    said = {"score": item.s, "ball": code, "batter_key": item.pf, "bowler_key": item.bf}
    return Event(
        id=parsing.text(item.id, 120),
        kind=kind,
        innings=item.inning + 1,
        over=parsing.text(item.o, 10) or None,
        ordinal=item.delivery if item.delivery and item.delivery >= 1 else None,
        slot=event_keys.ball(item.inning + 1, over[1], place) if over and place else "",
        runs=runs,
        description=_said(item.c1, item.c2),
        happened_at=parsing.moment(item.id, per_second=1000),
        detail={name: short for name, value in said.items() if (short := parsing.text(value, 40))},
    )


def _wicket(item: WicketItem) -> Event:
    """A batter who only goes off hurt may come back: that is no dismissal."""
    player = parsing.text(item.player_fullname or item.player, 120)
    manner = parsing.plain(item.manner, 200)
    counts = not _RETIRED.search(manner)
    place = parsing.integer(item.wn)
    if counts and item.dismissal is not None and parsing.integer(item.dismissal) not in codes.DISMISSALS:
        parsing.note_unrecognized("items[].dismissal", item.dismissal)
    score = f"{parsing.text(item.r, 5)}({parsing.text(item.b, 5)})"
    return Event(
        id=parsing.text(item.id, 120),
        kind="dismissal" if counts else "retired",
        innings=item.inning + 1,
        over=parsing.text(item.o, 10) or None,
        slot=event_keys.wicket(item.inning + 1, place) if counts and place else "",
        is_critical=counts,
        description=" ".join(filter(None, (player, manner, score.replace("()", "")))),
        happened_at=parsing.moment(item.id, per_second=1000),
        detail={"player": player, "text": manner, "wicket": place if counts else None},
    )


def _over(item: OverItem) -> Event:
    over = places.over_ended(item)
    number, team, score = (parsing.text(value, 120) for value in (item.o, item.team, item.s))
    detail: Detail = {"score": score} if score else {}
    return Event(
        id=parsing.text(item.id, 120),
        kind="over_complete",
        innings=item.inning + 1,
        over=number[:10] or None,
        slot=event_keys.over_end(item.inning + 1, over[1]) if over else "",
        runs=parsing.integer(item.runs),
        is_critical=False,
        description=f"End of over {number}: {team} {score}",
        happened_at=parsing.moment(item.id, per_second=1000),
        detail=detail,
    )


def _other(item: OtherItem) -> Event:
    kind = _OTHERS.get(item.type or "", "other")
    if kind == "other":
        parsing.note_unrecognized("items[].type", item.type)
    return Event(
        id=parsing.text(item.id, 120),
        kind=kind,
        innings=None if item.inning is None else item.inning + 1,
        over=parsing.text(item.o, 10) or None,
        is_critical=False,
        description=_said(item.c1, item.c2),
        happened_at=parsing.moment(item.id, per_second=1000),
    )


def _said(*texts: Any) -> str:
    return parsing.text(" ".join(filter(None, map(_plain, texts))))


def _plain(value: Any) -> str:
    """Most comments hold no markup at all; a poll has twenty of them."""
    return (
        value
        if isinstance(value, str) and value.isascii() and value.replace(" ", "").isalnum()
        else parsing.plain(value)
    )


def last_event_of(events: Sequence[Event], ball: str) -> LastEvent | None:
    """The newest event of the feed; without a feed the last ball as the live answer has it."""
    newest = max(events, key=lambda event: _order(event.id), default=None)
    if newest is not None:
        return LastEvent(type=newest.kind, description=newest.description, timestamp=newest.happened_at)
    if not ball:
        return None
    phase = status.phase_in(ball)
    kind = phase.value if phase else codes.read(ball).kind
    return LastEvent(type=kind, description=_NAMES.get(kind, ball) if kind != "runs" else f"{ball} runs")


def oldest_id(items: Sequence[Item]) -> Any:
    """The feed's own spelling of its oldest document id."""
    return min(items, key=_document_id).id


def reaches_the_first_ball(items: Sequence[Item]) -> bool:
    return any(isinstance(item, BallItem) and item.delivery == 1 for item in items)


def _document_id(item: Item) -> tuple[int, str]:
    return _order(item.id)


def _order(identity: int | str) -> tuple[int, str]:
    return parsing.integer(identity) or 0, str(identity)
