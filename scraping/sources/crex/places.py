"""The place of each delivery within its over, extras counted, however much of the list is missing.

A wide or no-ball repeats the label of the ball to come, a page of the feed ends in the middle of an over, and a site
may leave items out: counting the list would give wrong places. Two things do tell: the over's summary, which has the
codes of all its deliveries, and the running number, which shows how far two deliveries lie apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from scraping.sources.crex import codes
from scraping.sources.crex.schemas import BallItem, OverItem

Over = tuple[int, int]  # innings and completed overs, both from 0


def over_of(ball: BallItem) -> Over | None:
    done, dot, _ = ball.o.partition(".")
    return (ball.inning, int(done)) if dot and done.isascii() and done.isdigit() else None


def over_ended(item: OverItem) -> Over | None:
    """A summary's own over; it counts from 1."""
    number = str(item.o)
    return (item.inning, int(number) - 1) if number.isascii() and number.isdigit() and int(number) else None


def places_of(balls: Sequence[BallItem], summaries: Sequence[OverItem]) -> dict[str, int]:
    """The index of each delivery by item id, oldest first in `balls`; what cannot be told is left out."""
    told = {over: item.rb.split(".") for item in summaries if item.rb and (over := over_ended(item)) is not None}
    by_over: dict[Over, list[BallItem]] = defaultdict(list)
    for ball in balls:
        over = over_of(ball)
        if over is not None:
            by_over[over].append(ball)
    numbers = {ball.delivery: over_of(ball) for ball in balls if ball.delivery}
    ended = set(told) | {over for item in summaries if (over := over_ended(item)) is not None}
    places: dict[str, int] = {}
    for over, own in by_over.items():
        first = _first_number(own, told.get(over, ()), numbers)
        if first is not None:
            places |= {str(ball.id): ball.delivery - first + 1 for ball in own if ball.delivery}
        elif not any(ball.delivery for ball in own):
            places |= _counted(over, own, told.get(over, ()), is_whole=_is_whole(over, by_over, ended))
    return places


def _first_number(own: Sequence[BallItem], told: Sequence[str], numbers: Mapping[int, Over | None]) -> int | None:
    """The running number of the over's first delivery."""
    lowest = min((ball.delivery for ball in own if ball.delivery), default=0)
    if not lowest:
        return None
    if lowest == 1 or numbers.get(lowest - 1, over_of(own[0])) != over_of(own[0]):
        return lowest  # the delivery before it belongs to another over
    starts = list(_matching_starts(own, told))
    return starts[0] if len(starts) == 1 else None


def _matching_starts(own: Sequence[BallItem], told: Sequence[str]) -> Iterator[int]:
    """The numbers at which the over may have begun, so that each delivery has its code at its place."""
    labels = _labels(told)
    numbered = [(ball.delivery, ball.o.partition(".")[2], _plain(ball.b)) for ball in own if ball.delivery]
    highest, lowest = max(one[0] for one in numbered), min(one[0] for one in numbered)
    for start in range(max(highest - len(told) + 1, 1), lowest + 1):
        at = [(labels[number - start], _plain(told[number - start])) for number, _, _ in numbered]
        if all(place == (label, code) for place, (_, label, code) in zip(at, numbered, strict=True)):
            yield start


def _counted(over: Over, own: Sequence[BallItem], told: Sequence[str], *, is_whole: bool) -> dict[str, int]:
    """Places without running numbers: the list's order, if it has the over from its beginning."""
    if told and len(own) != len(told):
        return {}
    if not told and not is_whole:
        return {}
    return {str(ball.id): place for place, ball in enumerate(own, start=1)}


def _is_whole(over: Over, by_over: Mapping[Over, object], ended: set[Over]) -> bool:
    """Whether the list goes back beyond the over's first delivery."""
    innings, done = over
    if done == 0:
        return innings == 0 or any(earlier < innings for earlier, _ in (*by_over, *ended))
    return (innings, done - 1) in by_over or (innings, done - 1) in ended


def _labels(told: Sequence[str]) -> list[str]:
    """The ball numbers that deliveries with these codes bear."""
    labels, bowled = [], 0
    for code in told:
        labels.append(str(bowled + 1))
        bowled += codes.is_legal(code)
    return labels


def _plain(code: str | int) -> str:
    return str(code).strip().lower()
