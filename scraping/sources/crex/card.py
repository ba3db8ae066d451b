"""The scorecard (getSC4): an array of innings, its players by key, their figures as strings with dots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from scraping.errors import SchemaBreak
from scraping.payloads import PlayerFigure, Side
from scraping.sources import parsing
from scraping.sources.crex import schemas
from scraping.sources.crex.innings import BALLS, SIDES, known_on_card
from scraping.sources.crex.schemas import InningsCard

_BATTING = ("runs", "balls", "fours", "sixes")
_BOWLING = ("runs", "balls", "maidens", "wickets")
Values = dict[str, str | int | float | bool | None]


def figures_of(
    card: Sequence[InningsCard], keys: tuple[str, str], people: Mapping[str, str]
) -> tuple[PlayerFigure, ...]:
    """What every player did, innings by innings. PayloadRejected where it is another match's card."""
    known = known_on_card(card, keys)
    return tuple(
        figure
        for number, innings in enumerate(card, start=1)
        for figure in _innings(innings, number, known[number].side, people)
    )


def _innings(innings: InningsCard, number: int, batting: Side, people: Mapping[str, str]) -> Iterator[PlayerFigure]:
    bowling = SIDES[1 - SIDES.index(batting)]
    for place, line in enumerate(innings.b):
        key, values = _line(line, _BATTING, f"[{number - 1}].b[{place}]")
        rate = round(values["runs"] * 100 / values["balls"], 2) if values["balls"] else 0.0
        told: Values = {**values, "strike_rate": rate}
        yield PlayerFigure(
            side=batting, role="batting", innings=number, player_id=key, name=name_of(key, people), values=told
        )
    for place, line in enumerate(innings.a):
        key, values = _line(line, _BOWLING, f"[{number - 1}].a[{place}]")
        told = {**values, "overs": f"{values['balls'] // BALLS}.{values['balls'] % BALLS}"}
        yield PlayerFigure(
            side=bowling, role="bowling", innings=number, player_id=key, name=name_of(key, people), values=told
        )


def _line(line: str, names: tuple[str, ...], path: str) -> tuple[str, dict[str, int]]:
    """ "KEY.runs.balls.4s.6s" and more that we do not read."""
    key, *numbers = line.partition("/")[0].split(".")
    values = [value for number in numbers[: len(names)] if (value := parsing.integer(number)) is not None]
    if not key or len(key) > 40 or len(values) < len(names):
        raise SchemaBreak(f"{schemas.SCORECARD}: {path} (not {'.'.join(('KEY', *names))}: {line[:60]!r})")
    return key, dict(zip(names, values, strict=True))


def name_of(key: str, people: Mapping[str, str]) -> str:
    """The player's name; where the mapping has none the key stands in, and that is counted."""
    name = people.get(key, "")
    if not name:
        parsing.note_unrecognized("p[].f_key", key)
    return name or key
