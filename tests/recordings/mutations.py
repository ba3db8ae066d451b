"""Seeded mutations of recorded documents: what a source may send after a change, a fault or an attack."""

from __future__ import annotations

import functools
import json
import operator
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

Path = tuple[str | int, ...]
Change = Callable[[Any, random.Random], Any]

_SCRIPT = re.compile(rb"<(script|pre)[^>]*>(\s*[\[{].*?)</\1>", re.DOTALL)
_PART = re.compile(r"<[^>]*>|[^<]+")
FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")  # noqa: RUF001
ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
OTHERS: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2.5, "", "x", "0", "-1", [], {}, [[]], [None], {"a": 1}, [{}]),
    *("999/99(999.9", "10.10.10", "2026-13-45T99:99Z", "0001-01-01T00:00:00+14:00", "//[", "&q;", "<b>", "%00", "{"),
)
HUGE: tuple[Any, ...] = (2**53, -(2**63), 2**64 - 1, 1e300, -1e300, 10**18, 5e-324, "9" * 400, 253_402_300_800)
MAX_CHARACTERS = 5_000  # of a value that is made longer
CONTROLS = ("\x00", "\x1b[2J", "\u202e", "\ufeff", "\r\n", "\u2028", "\U0001f3cf", "\ufffd")


def paths(value: Any, here: Path = ()) -> Iterator[Path]:
    """Yields the paths of all values in a document."""
    if here:
        yield here
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in parts:
        yield from paths(inner, (*here, key))


def other(value: Any, chance: random.Random) -> Any:
    return chance.choice(OTHERS)


def null(value: Any, chance: random.Random) -> Any:
    return None


def nested(value: Any, chance: random.Random) -> Any:
    for _ in range(chance.choice((1, 2, 60))):
        value = [value] if chance.random() < 0.5 else {"data": value}
    return value


def huge(value: Any, chance: random.Random) -> Any:
    return chance.choice(HUGE)


def other_digits(value: Any, chance: random.Random) -> Any:
    return str(value).translate(chance.choice((FULL_WIDTH, ARABIC))) if isinstance(value, str | int | float) else value


def controls(value: Any, chance: random.Random) -> Any:
    text = str(value) if isinstance(value, str | int) else ""
    place = chance.randint(0, len(text))
    return text[:place] + chance.choice(CONTROLS) + text[place:]


def longer(value: Any, chance: random.Random) -> Any:
    """Doubles a list, or makes a text very long; both only once."""
    if isinstance(value, str | list) and len(str(value)) > MAX_CHARACTERS:
        return value
    if isinstance(value, list):
        return value + value if chance.random() < 0.8 else value[:1] * 300
    return str(value) * 400 if isinstance(value, str) else value


def shorter(value: Any, chance: random.Random) -> Any:
    if isinstance(value, list):
        return value[: chance.randint(0, max(len(value) - 1, 0))] if chance.random() < 0.7 else value[::-1]
    return value[: len(value) // 2] if isinstance(value, str) else value


def similar(value: Any, chance: random.Random) -> Any:
    """Returns a value of the same type: another number, or the text of a number."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return chance.choice((value + 1, -value, value * 10, str(value), float(value)))
    return int(value) if isinstance(value, str) and value.isdigit() else other(value, chance)


CHANGES: tuple[Change, ...] = (
    other, other, null, nested, huge, other_digits, controls, longer, longer, shorter, similar, similar,
)  # fmt: skip


def _change(document: Any, places: list[Path], chance: random.Random) -> None:
    """Changes, drops or renames one value."""
    *way, last = chance.choice(places)
    holder = document
    try:
        for step in way:
            holder = holder[step]
        draw = chance.random()
        if draw < 0.2:
            del holder[last]
        elif draw < 0.25 and isinstance(holder, dict):
            holder[f"{last}X"] = holder.pop(last)
        else:
            holder[last] = chance.choice(CHANGES)(holder[last], chance)
    except (KeyError, IndexError, TypeError):
        return  # an earlier change has removed it


def _bytes(body: bytes, chance: random.Random) -> bytes:
    """Returns a body that is cut, in another encoding, or damaged."""
    place = chance.randint(0, len(body))
    match chance.randint(0, 7):
        case 0 | 1:
            return body[:place]
        case 2:
            return body.decode("utf-8", "replace").encode(chance.choice(("utf-16", "utf-7", "cp037", "utf-32-le")))
        case 3:
            return body[:place] + bytes(chance.randrange(256) for _ in range(8)) + body[place:]
        case 4:
            return b"\xef\xbb\xbf" + body
        case 5:
            return chance.choice(
                (b"", b"null", b"[]", b"{}", b'""', b"0", b"[" * 20_000, b'{"a":' * 5_000, b"<", b"\x00")
            )
        case 6:
            return body * 2
        case _:
            return body.replace(*chance.choice(((b":", b"="), (b'"', b"'"), (b"<", b"&lt;"), (b"0", b"\xd9\xa0"))))


def _markup(text: str, chance: random.Random) -> str:
    """Returns a page with elements or texts dropped, doubled, moved or changed."""
    parts = _PART.findall(text)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(parts))
        match chance.randint(0, 5):
            case 0:
                parts[place] = ""
            case 1 if len(parts[place]) < MAX_CHARACTERS:
                parts[place] *= chance.choice((2, 200))
            case 2:
                parts.append(parts[place])
            case 3:
                parts[place] = parts[place].translate(FULL_WIDTH)
            case 4:
                parts[place] = re.sub(r"[A-Za-z]{3,}", lambda found: found[0][::-1], parts[place], count=1)
            case _:
                parts[place] = controls(parts[place], chance)
    return "".join(parts)


class Mutator:
    """The mutations of one document, by number: the same number gives the same one."""

    def __init__(self, body: bytes, seed: str) -> None:
        self._body, self._seed = body, seed
        found = _SCRIPT.search(body) if body.lstrip()[:1] == b"<" else None
        self._span = found.span(2) if found else (0, len(body))
        self._json = found[2] if found else body
        try:
            self._places = list(paths(orjson.loads(self._json)))
        except orjson.JSONDecodeError:
            self._places = []

    def with_huge_numbers(self) -> Iterator[bytes]:
        """Yields the document with each of its numbers, one at a time, so large that nothing may count up to it."""
        for path in self._places:
            document = orjson.loads(self._json)
            *way, last = path
            holder = functools.reduce(operator.getitem, way, document)
            if isinstance(holder[last], int) and not isinstance(holder[last], bool):
                holder[last] = 10**15
                yield self._written(document)

    def mutation(self, number: int) -> bytes:
        chance = random.Random(f"{self._seed}:{number}")
        if chance.random() < 0.12:
            return _bytes(self._body, chance)
        if not self._places:
            return _markup(self._body.decode(), chance).encode("utf-8", "replace")
        document = orjson.loads(self._json)
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            _change(document, self._places, chance)
        return self._written(document)

    def _written(self, document: Any) -> bytes:
        first, last = self._span
        return self._body[:first] + json.dumps(document).encode() + self._body[last:]
