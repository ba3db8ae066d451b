"""The ball feed (getBallFeeds): balls, dismissals, over summaries and reviews, newest first.

The position of a delivery within its over, extras counted, is not its position in the list: a wide or no-ball repeats
the label of the next ball, a page of the feed ends within an over, and items may be missing. Positions follow from the
over's summary, which has the codes of all its deliveries, and from the running number of each delivery.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scraping import event_keys
from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Event, LastEvent
from scraping.sources import parsing
from scraping.sources.base import Document, Reading
from scraping.sources.crex import schemas, site, texts
from scraping.sources.crex.schemas import BallItem, FeedItem, FeedResponse, OtherItem, OverItem, WicketItem

Item = FeedItem
Detail = dict[str, str | int | float | bool | None]
_NAMES = {"dot": "No run", "four": "Four", "six": "Six", "wicket": "Wicket", "wide": "Wide"}
_OTHERS = {"ac": "review"}
_RETIRED = re.compile(r"\bret(?:ired|d)\b\.?\s*(?:-\s*)?(?:hurt|ill|not)|\babsent\b", re.IGNORECASE)
Over = tuple[int, int]  # innings and completed overs, both from 0


def feed_items(document: Document | None, match_key: str) -> list[Item] | None:
    """Returns the items of a feed response, or None without a usable one; PayloadRejected if it is another match's."""
    if document is None or document.status >= 400:
        return None
    try:
        data = document.json()
    except SchemaBreak:
        return None
    return items_in(data, match_key, url=document.url)


def items_in(data: Any, match_key: str, *, url: str = "") -> list[Item] | None:
    """Returns None where the data has no list; raises SchemaBreak where its items do not match the schema."""
    if isinstance(data, dict):
        data = next((value for value in data.values() if isinstance(value, list)), None)
    if not isinstance(data, list):
        return None
    for item in parsing.rows(data):
        stated = parsing.text(item.get("mfkey"), 20)
        if stated and stated != match_key:
            raise PayloadRejected(f"the ball feed is about another match: {stated} instead of {match_key}", url=url)
    unique: dict[object, Item] = {}
    for one in parsing.validated(FeedResponse, {"items": data}, schema=schemas.FEED, url=url).items:
        unique.setdefault(parsing.text(one.id, 120), one)  # an id that comes twice counts once
    if "" in unique:
        raise SchemaBreak(f"{schemas.FEED}: items[].id (empty)", url=url)
    return list(unique.values())


def events_of(items: Sequence[Item]) -> tuple[Event, ...]:
    """Returns one event for each item, in the feed's order."""
    balls = sorted((one for one in items if isinstance(one, BallItem)), key=_document_id)
    known = positions_in_overs(balls, [one for one in items if isinstance(one, OverItem)])
    return tuple(event_of(item, known) for item in items)


def event_of(item: Item, known: Mapping[str, int] | None = None) -> Event:
    """`known`: positions of deliveries within their overs, by item id."""
    if isinstance(item, BallItem):
        return _ball(item, (known or {}).get(str(item.id)))
    if isinstance(item, WicketItem):
        return _wicket(item)
    if isinstance(item, OverItem):
        return _over_summary(item)
    assert isinstance(item, OtherItem)
    return _other(item)


def _ball(item: BallItem, place: int | None) -> Event:
    code = parsing.text(item.b, 12)
    kind, runs, _ = texts.recognized_code(code, "items[].b")
    over = over_of_ball(item)
    said = {"score": item.s, "ball": code, "batter_key": item.pf, "bowler_key": item.bf}
    return Event(
        id=parsing.text(item.id, 120),
        kind=kind,
        innings=item.inning + 1,
        over=parsing.text(item.o, 10) or None,
        ordinal=item.delivery if item.delivery and item.delivery >= 1 else None,
        slot=event_keys.ball(item.inning + 1, over[1], place) if over and place else "",
        runs=runs,
        description=_joined_texts(item.c1, item.c2),
        happened_at=parsing.moment(item.id, per_second=1000),
        detail={name: short for name, value in said.items() if (short := parsing.text(value, 40))},
    )


def _wicket(item: WicketItem) -> Event:
    """A batter who retires hurt may come back: that is no dismissal."""
    player = parsing.text(item.player_fullname or item.player, 120)
    manner = parsing.plain(item.manner, 200)
    counts = not _RETIRED.search(manner)
    place = parsing.integer(item.wn)
    if counts and item.dismissal is not None and parsing.integer(item.dismissal) not in texts.DISMISSALS:
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


def _over_summary(item: OverItem) -> Event:
    over = over_ended(item)
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
        description=_joined_texts(item.c1, item.c2),
        happened_at=parsing.moment(item.id, per_second=1000),
    )


def _joined_texts(*texts: Any) -> str:
    return parsing.text(" ".join(filter(None, map(_plain_text, texts))))


def _plain_text(value: Any) -> str:
    """Skips the removal of markup for most comments, which have none; a poll has twenty of them."""
    return (
        value
        if isinstance(value, str) and value.isascii() and value.replace(" ", "").isalnum()
        else parsing.plain(value)
    )


def last_event_of(events: Sequence[Event], ball: str) -> LastEvent | None:
    """Returns the newest event of the feed; without a feed the last ball of the live response."""
    newest = max(events, key=lambda event: _order(event.id), default=None)
    if newest is not None:
        return LastEvent(type=newest.kind, description=newest.description, timestamp=newest.happened_at)
    if not ball:
        return None
    phase = texts.phase_in(ball)
    kind = phase.value if phase else texts.read_code(ball).kind
    return LastEvent(type=kind, description=_NAMES.get(kind, ball) if kind != "runs" else f"{ball} runs")


def oldest_id(items: Sequence[Item]) -> Any:
    """Returns the oldest document id as the feed has it, number or text."""
    return min(items, key=_document_id).id


def reaches_the_first_ball(items: Sequence[Item]) -> bool:
    return any(isinstance(item, BallItem) and item.delivery == 1 for item in items)


def _document_id(item: Item) -> tuple[int, str]:
    return _order(item.id)


def _order(identity: int | str) -> tuple[int, str]:
    return parsing.integer(identity) or 0, str(identity)


def over_of_ball(ball: BallItem) -> Over | None:
    done, dot, _ = ball.o.partition(".")
    return (ball.inning, int(done)) if dot and done.isascii() and done.isdigit() else None


def over_ended(item: OverItem) -> Over | None:
    """Returns the over of a summary, which counts from 1."""
    number = str(item.o)
    return (item.inning, int(number) - 1) if number.isascii() and number.isdigit() and int(number) else None


def positions_in_overs(balls: Sequence[BallItem], summaries: Sequence[OverItem]) -> dict[str, int]:
    """Returns the known positions of deliveries by item id; `balls` are oldest first."""
    over_codes = {over: item.rb.split(".") for item in summaries if item.rb and (over := over_ended(item)) is not None}
    by_over: dict[Over, list[BallItem]] = defaultdict(list)
    for ball in balls:
        over = over_of_ball(ball)
        if over is not None:
            by_over[over].append(ball)
    numbers = {ball.delivery: over_of_ball(ball) for ball in balls if ball.delivery}
    ended = set(over_codes) | {over for item in summaries if (over := over_ended(item)) is not None}
    places: dict[str, int] = {}
    for over, own in by_over.items():
        first = _first_number(own, over_codes.get(over, ()), numbers)
        if first is not None:
            places |= {str(ball.id): ball.delivery - first + 1 for ball in own if ball.delivery}
        elif not any(ball.delivery for ball in own):
            places |= _counted_positions(
                over, own, over_codes.get(over, ()), is_whole=_has_over_start(over, by_over, ended)
            )
    return places


def _first_number(own: Sequence[BallItem], over_codes: Sequence[str], numbers: Mapping[int, Over | None]) -> int | None:
    """Returns the running number of the over's first delivery."""
    lowest = min((ball.delivery for ball in own if ball.delivery), default=0)
    if not lowest:
        return None
    if lowest == 1 or numbers.get(lowest - 1, over_of_ball(own[0])) != over_of_ball(own[0]):
        return lowest  # the delivery before it belongs to another over
    starts = list(_matching_starts(own, over_codes))
    return starts[0] if len(starts) == 1 else None


def _matching_starts(own: Sequence[BallItem], over_codes: Sequence[str]) -> Iterator[int]:
    """Yields the running numbers with which the over may have begun, so that label and code of each delivery agree."""
    labels = _labels(over_codes)
    numbered = [(ball.delivery, ball.o.partition(".")[2], _lower_code(ball.b)) for ball in own if ball.delivery]
    highest, lowest = max(one[0] for one in numbered), min(one[0] for one in numbered)
    for start in range(max(highest - len(over_codes) + 1, 1), lowest + 1):
        at = [(labels[number - start], _lower_code(over_codes[number - start])) for number, _, _ in numbered]
        if all(place == (label, code) for place, (_, label, code) in zip(at, numbered, strict=True)):
            yield start


def _counted_positions(
    over: Over, own: Sequence[BallItem], over_codes: Sequence[str], *, is_whole: bool
) -> dict[str, int]:
    """Returns positions without running numbers: the list's order, if it has the over from its beginning."""
    if over_codes and len(own) != len(over_codes):
        return {}
    if not over_codes and not is_whole:
        return {}
    return {str(ball.id): place for place, ball in enumerate(own, start=1)}


def _has_over_start(over: Over, by_over: Mapping[Over, object], ended: set[Over]) -> bool:
    """Returns whether the list goes back beyond the over's first delivery."""
    innings, done = over
    if done == 0:
        return innings == 0 or any(earlier < innings for earlier, _ in (*by_over, *ended))
    return (innings, done - 1) in by_over or (innings, done - 1) in ended


def _labels(over_codes: Sequence[str]) -> list[str]:
    """Returns the ball numbers of deliveries with these codes."""
    labels, bowled = [], 0
    for code in over_codes:
        labels.append(str(bowled + 1))
        bowled += texts.is_legal_ball(code)
    return labels


def _lower_code(code: str | int) -> str:
    return str(code).strip().lower()


def items_of(reading: Reading) -> list[Item] | None:
    """Returns the items of the feed response, else of the copy in the page of the same visit."""
    key, page = reading.ref.source_event_id, reading.document("page")
    broken: SchemaBreak | None = None
    try:
        items = feed_items(reading.document("feed"), key)
    except SchemaBreak as failure:
        items, broken = None, failure
    if items is None and page is not None:
        state = site.page_state(page.text())
        items = items_in(site.embedded_response(state, site.FEED), key) if state is not None else None
    if items is None and broken is not None:
        raise broken
    return items
