"""Names for what happens in a match that are the same at every source, and places in a source's list of events.

A slot names a happening: the third delivery of over 12 of the first innings, the home side's second goal. Two sources
that tell the same happening, each under an id of its own, give it the same slot; that is how it is served once.

An ordinal is an event's place in one source's list. Either the source numbers its events without holes ("dense"), or
the place is made of innings, over and delivery ("positional", from FIRST_POSITION up). Both grow with the match, and
both show where something is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

FIRST_POSITION = 100_000
_OVER = 100


def ball(innings: int, over: int, index: int) -> str:
    """A delivery. `over`: completed overs before it; `index`: from 1, wides and no-balls counted like any other."""
    return f"b:{innings}:{over}:{index}"


def ball_after(before: str, innings: int, label: str) -> str:
    """The slot of a delivery, given that of the one before it and its own label "11.5"; empty if that does not tell."""
    kind, *numbers = before.split(":")
    over_text = label.partition(".")[0]
    if kind != "b" or len(numbers) != 3 or not over_text.isdecimal():
        return ""
    last_innings, last_over, last_index = map(int, numbers)
    over = int(over_text)
    if (innings, over) == (last_innings, last_over):
        return ball(innings, over, last_index + 1)
    return ball(innings, over, 1)


def wicket(innings: int, number: int) -> str:
    """The fall of the n-th wicket of an innings."""
    return f"w:{innings}:{number}"


def over_end(innings: int, over: int) -> str:
    """The end of an over. `over`: completed overs before it, so the first one's is 0."""
    return f"o:{innings}:{over}"


def goal(side: str, number: int) -> str:
    """The n-th goal that counts for a side; own goals count for the side that gains."""
    return f"g:{side}:{number}"


def shootout_kick(side: str, number: int) -> str:
    return f"k:{side}:{number}"


def card(side: str, colour: str, player: str) -> str:
    return f"c:{side}:{colour}:{squeezed(player)}"


def substitution(side: str, player_out: str) -> str:
    return f"s:{side}:{squeezed(player_out)}"


def period(name: str) -> str:
    return f"p:{squeezed(name)}"


def squeezed(text: str) -> str:
    """Letters and figures of a name, small: sources differ in blanks, dots and accents' marks."""
    return "".join(char for char in text.casefold() if char.isalnum())[:40]


def position(innings: int, over: int, index: int) -> int:
    """The positional ordinal of a delivery; arguments as in `ball`."""
    return innings * FIRST_POSITION + over * _OVER + index


def is_position(ordinal: int) -> bool:
    return ordinal >= FIRST_POSITION


def successors(ordinal: int) -> tuple[int, ...]:
    """The places that may come next: one in a list without holes; in positions the over or the innings may be over."""
    if not is_position(ordinal):
        return (ordinal + 1,)
    innings, rest = divmod(ordinal, FIRST_POSITION)
    return ordinal + 1, position(innings, rest // _OVER + 1, 1), position(innings + 1, 0, 1)


def through(ordinals: Collection[int], start: int) -> int:
    """The last place that is reached from `start` without a hole."""
    here = start
    while following := [place for place in successors(here) if place in ordinals]:
        here = following[0]
    return here


def is_first(ordinal: int) -> bool:
    """Nothing comes before it in the match."""
    return ordinal == 1 or ordinal == position(1, 0, 1)


def indexes(places: Iterable[tuple[int, int]], *, begins_with_the_over: bool) -> list[int | None]:
    """The index within its over of each delivery, given (innings, over) of all, oldest first.

    A list that is cut off somewhere does not tell where the first over on it began: None for its deliveries then.
    """
    found: list[int | None] = []
    current: tuple[int, int] | None = None
    count: int | None = None
    for place in places:
        if place != current:
            count = 0 if current is not None or begins_with_the_over else None
            current = place
        count = None if count is None else count + 1
        found.append(count)
    return found
