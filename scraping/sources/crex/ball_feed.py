"""The ball feed (getBallFeeds): balls, dismissals, over summaries and reviews, newest first.

The position of a delivery within its over, extras counted, is not its position in the list: a wide or no-ball repeats
the label of the next ball, a page of the feed ends within an over, and items may be missing. Positions follow from the
over's summary, which has the codes of all its deliveries, and from the running number of each delivery.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import ValidationError

from scraping import event_keys
from scraping.payloads import Event, LastEvent
from scraping.sources import broken_parts, cricket, parsing
from scraping.sources.base import Reading
from scraping.sources.broken_parts import is_broken
from scraping.sources.crex import schemas, site, texts
from scraping.sources.crex.schemas import AnyItem, BallItem, FeedItem, OtherItem, OverItem, WicketItem

_NAMES = {"dot": "No run", "four": "Four", "six": "Six", "wicket": "Wicket", "wide": "Wide"}
_RETIRED = re.compile(r"\bret(?:ired|d)\b\.?\s*(?:-\s*)?(?:hurt|ill|not)|\babsent\b", re.IGNORECASE)
Over = tuple[int, int]  # innings and completed overs, both from 0
Numbered = list[tuple[int, BallItem]]  # deliveries with their running numbers


def items_of(reading: Reading) -> list[FeedItem] | None:
    parse = partial(items_in, match_key=reading.ref.source_event_id)
    return site.first_parsed(reading.document("feed"), reading.document("page"), site.FEED, parse)


def items_in(data: Any, match_key: str) -> list[FeedItem] | None:
    """Returns the readable items, None where there are none; raises PayloadRejected for the feed of another match."""
    if data is None:
        return None
    if isinstance(data, dict):
        data = next((value for value in data.values() if isinstance(value, list)), None)
    for item in parsing.rows(data):
        parsing.refuse_another("the ball feed is", parsing.text(item.get("mfkey"), 20) or None, match_key)
    items = parsing.readable(list[AnyItem], data, schema=schemas.FEED, path="items")
    if items is None:
        return None
    unique: dict[str, FeedItem] = {}
    for one in items:
        unique.setdefault(parsing.text(one.id, 120), one)  # an id that comes twice counts once
    if unique.pop("", None):
        broken_parts.note("items[].id", "A text that is not empty")
    return list(unique.values()) if unique or not items else None


def events_of(items: Sequence[FeedItem]) -> tuple[Event, ...]:
    """Returns one event for each item, in the feed's order, without those that have an impossible value."""
    places = positions_in_overs(items)
    events: list[Event] = []
    for item in items:
        try:
            events.append(_event_of(item, places.get(str(item.id))))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            broken_parts.note("items[]", f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
    return tuple(events)


def _event_of(item: FeedItem, place: int | None) -> Event:
    """`place`: the position of a delivery within its over."""
    if isinstance(item, BallItem):
        return _ball(item, place)
    if isinstance(item, WicketItem):
        return _wicket(item)
    if isinstance(item, OverItem):
        over = over_ended(item)
        number, team, score = (parsing.text(value, 120) for value in (item.o, item.team, item.s))
        return _event(
            item,
            "over_complete",
            slot=event_keys.over_end(item.inning + 1, over[1]) if over else "",
            runs=parsing.integer(item.runs),
            is_critical=False,
            description=f"End of over {number}: {team} {score}",
            detail={"score": score} if score else {},
        )
    assert isinstance(item, OtherItem)
    if item.type != "ac":
        parsing.note_unrecognized("items[].type", item.type)
    kind = "review" if item.type == "ac" else "other"
    return _event(item, kind, is_critical=False, description=_joined_texts(item.c1, item.c2))


def _event(item: FeedItem, kind: str, **fields: Any) -> Event:
    return Event(
        id=parsing.text(item.id, 120),
        kind=kind,
        innings=None if item.inning is None else item.inning + 1,
        over=parsing.text(item.o, 10) or None,
        happened_at=parsing.moment(item.id, per_second=1000),
        **fields,
    )


def _ball(item: BallItem, place: int | None) -> Event:
    code = parsing.text(item.b, 12)
    kind, runs, _ = texts.recognized_code(code, "items[].b")
    over = over_of_ball(item)
    said = {"score": item.s, "ball": code, "batter_key": item.pf, "bowler_key": item.bf}
    return _event(
        item,
        kind,
        ordinal=item.delivery if item.delivery and item.delivery >= 1 else None,
        slot=event_keys.ball(item.inning + 1, over[1], place) if over and place else "",
        runs=runs,
        description=_joined_texts(item.c1, item.c2),
        detail={name: short for name, value in said.items() if (short := parsing.text(value, 40))},
    )


def _wicket(item: WicketItem) -> Event:
    """A batter who retires hurt may come back: that is no dismissal."""
    player = parsing.text(item.player_fullname or item.player, 120)
    manner = parsing.plain(item.manner, 200)
    counts = not _RETIRED.search(manner)
    number = parsing.integer(item.wn)
    if counts and item.dismissal is not None and parsing.integer(item.dismissal) not in texts.DISMISSALS:
        parsing.note_unrecognized("items[].dismissal", item.dismissal)
    score = f"{parsing.text(item.r, 5)}({parsing.text(item.b, 5)})"
    return _event(
        item,
        "dismissal" if counts else "retired",
        slot=event_keys.wicket(item.inning + 1, number) if counts and number else "",
        is_critical=counts,
        description=" ".join(filter(None, (player, manner, score.replace("()", "")))),
        detail={"player": player, "text": manner, "wicket": number if counts else None},
    )


def _joined_texts(*values: Any) -> str:
    """Joins comments. Skips the removal of markup for most of them, which have none; a poll has twenty of them."""
    plain = (
        one if isinstance(one, str) and one.isascii() and one.replace(" ", "").isalnum() else parsing.plain(one)
        for one in values
    )
    return parsing.text(" ".join(filter(None, plain)))


def last_event_of(events: Sequence[Event], ball: str) -> LastEvent | None:
    """Returns the newest event of the feed; without a feed the last ball of the live response."""
    newest = max(events, key=lambda event: _order(event.id), default=None)
    if newest is not None:
        return newest.as_last_event()
    if not ball:
        return None
    phase = cricket.phase_in(ball)
    kind = phase.value if phase else texts.read_code(ball).kind
    return LastEvent(type=kind, description=_NAMES.get(kind, ball) if kind != "runs" else f"{ball} runs")


def oldest_id(items: Sequence[FeedItem]) -> Any:
    return min(items, key=lambda item: _order(item.id)).id


def reaches_the_first_ball(items: Sequence[FeedItem]) -> bool:
    return any(isinstance(item, BallItem) and item.delivery == 1 for item in items)


def _order(identity: int | str) -> tuple[int, str]:
    return parsing.integer(identity) or 0, str(identity)


def over_of_ball(ball: BallItem) -> Over | None:
    done, dot, _ = ball.o.partition(".")
    number = parsing.integer(done) if dot and parsing.is_number(done) else None
    return None if number is None else (ball.inning, number)


def over_ended(item: OverItem) -> Over | None:
    """Returns the over of a summary, which counts from 1."""
    number = parsing.integer(item.o)
    return (item.inning, number - 1) if number and number > 0 else None


def positions_in_overs(items: Sequence[FeedItem]) -> dict[str, int]:
    """Returns the known positions of deliveries by item id. Without running numbers the list's order counts."""
    balls = sorted((one for one in items if isinstance(one, BallItem)), key=lambda ball: _order(ball.id))
    has_numbers = any(ball.delivery for ball in balls)
    if not has_numbers and is_broken("items"):
        return {}  # a delivery between them may be missing
    by_over: dict[Over, Numbered] = defaultdict(list)
    for place, ball in enumerate(balls, start=2):  # 1 is the first ball of a match
        over, number = over_of_ball(ball), (ball.delivery or 0) if has_numbers else place
        if over is not None and number >= 1:
            by_over[over].append((number, ball))
    over_by_number = {number: over for over, own in by_over.items() for number, _ in own}
    codes = {
        over: item.rb.lower().split(".")
        for item in items
        if isinstance(item, OverItem) and item.rb and (over := over_ended(item)) is not None
    }
    places: dict[str, int] = {}
    for over, own in by_over.items():
        lowest = min(number for number, _ in own)
        if lowest == 1 or over_by_number.get(lowest - 1, over) != over:
            starts = [lowest]  # the delivery before it belongs to another over
        else:
            starts = _matching_starts(own, codes.get(over, ()))
        if len(starts) == 1:
            places |= {str(ball.id): number - starts[0] + 1 for number, ball in own}
    return places


def _matching_starts(own: Numbered, codes: Sequence[str]) -> list[int]:
    """Returns the running numbers with which the over may have begun, so that label and code of each ball agree."""
    summary: list[tuple[str, str]] = []  # labels and codes
    bowled = 0
    for code in codes:
        summary.append((str(bowled + 1), code.strip()))
        bowled += texts.is_legal_ball(code)
    lowest, highest = min(number for number, _ in own), max(number for number, _ in own)
    return [
        start
        for start in range(max(highest - len(codes) + 1, 1), lowest + 1)
        if all(
            summary[number - start] == (ball.o.partition(".")[2], str(ball.b).strip().lower()) for number, ball in own
        )
    ]
