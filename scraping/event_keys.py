"""Keys of events: slots, which are the same at every source, and ordinals, the places in one source's list.

A slot identifies an event: the third delivery of over 12 of the first innings, the home side's second goal. Two sources
that list the same event, each under an id of its own, give it the same slot; so it is served once.

An ordinal is an event's place in one source's list. Either the source numbers its events without gaps ("dense"), or
the place is made of innings, over and delivery ("positional", from FIRST_POSITION up). Both grow with the match, and
both show gaps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

FIRST_POSITION = 100_000
_OVER = 100


def ball(innings: int, over: int, index: int) -> str:
    """Returns the slot of a delivery. `over`: completed overs before it; `index`: from 1, with wides and no-balls."""
    return f"b:{innings}:{over}:{index}"


def ball_after(before: str, innings: int, label: str) -> str:
    """Returns the slot of a delivery from the slot before it and its label "11.5"; empty if they are not enough."""
    kind, *numbers = before.split(":")
    over_text = label.partition(".")[0]
    if kind != "b" or len(numbers) != 3 or not (over_text.isascii() and over_text.isdecimal()):
        return ""
    last_innings, last_over, last_index = map(int, numbers)
    over = int(over_text)
    if (innings, over) == (last_innings, last_over):
        return ball(innings, over, last_index + 1)
    return ball(innings, over, 1)


def wicket(innings: int, number: int) -> str:
    """Returns the slot of the n-th wicket of an innings."""
    return f"w:{innings}:{number}"


def over_end(innings: int, over: int) -> str:
    """Returns the slot of the end of an over. `over`: completed overs before it, 0 for the first."""
    return f"o:{innings}:{over}"


def goal(side: str, number: int) -> str:
    """Returns the slot of the n-th goal that counts for a side; own goals count for the side that gains."""
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
    """Returns the letters and digits of a name in lower case: sources differ in spaces and punctuation."""
    return "".join(char for char in text.casefold() if char.isalnum())[:40]


def position(innings: int, over: int, index: int) -> int:
    """Returns the positional ordinal of a delivery; arguments as in `ball`."""
    return innings * FIRST_POSITION + over * _OVER + index


def is_position(ordinal: int) -> bool:
    return ordinal >= FIRST_POSITION


def successors(ordinal: int) -> tuple[int, ...]:
    """Returns the ordinals that may come next: one in a dense list; in a positional one an over or innings may end."""
    if not is_position(ordinal):
        return (ordinal + 1,)
    innings, rest = divmod(ordinal, FIRST_POSITION)
    return ordinal + 1, position(innings, rest // _OVER + 1, 1), position(innings + 1, 0, 1)


def through(ordinals: Collection[int], start: int) -> int:
    """Returns the last ordinal that is reached from `start` without a gap."""
    here = start
    while following := [place for place in successors(here) if place in ordinals]:
        here = following[0]
    return here


def is_first(ordinal: int) -> bool:
    """Returns whether it is the first ordinal of a match."""
    return ordinal == 1 or ordinal == position(1, 0, 1)


def indexes(places: Iterable[tuple[int, int]], *, begins_with_the_over: bool) -> list[int | None]:
    """Returns the index within its over of each delivery, given (innings, over) of all, oldest first.

    In a list that is cut off the first over may be incomplete: its deliveries have None.
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
