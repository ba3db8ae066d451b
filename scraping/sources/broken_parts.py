"""Reads what can be read of a response that does not match its schema, and notes the parts that are left out.

Guards against losing a whole reading for one part of it: a player without a name, a ball without runs, a toss of an
unknown type. Parts are removed from the response until the rest is valid: the invalid value first, then, where its
field is required, the object around it, up to the row of a list. Fields that a reading is worth nothing without are
`needed`: neither they nor a row of them can be left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from typing import Any, TypeVar

from pydantic import ValidationError

from scraping.payloads import BrokenPart

MAX_PASSES = 20  # each removes one level around a required field
MAX_PARTS = 40  # of one reading

T = TypeVar("T")
Place = tuple[int | str, ...]

_noted: ContextVar[Counter[tuple[str, str]] | None] = ContextVar("broken_parts", default=None)


def read_without(
    validate: Callable[[Any], T], data: Any, error: ValidationError, *, needed: Collection[str], path: str = ""
) -> T | None:
    """Returns the valid rest of a response, and notes what is left out; None where something needed is invalid.

    `error`: of the whole response. `path`: the place of `data` in the response.
    """
    rest = deepcopy(data)  # documents are cached
    found: Counter[tuple[str, str]] = Counter()
    removed: set[str] = set()
    for _ in range(MAX_PASSES):
        places = set()
        for one in error.errors(include_url=False):
            place = _removable(rest, one["loc"], is_missing=one["type"] == "missing")
            if not place or _field_of(place) in needed:
                return None
            places.add(place)
            general = general_path(one["loc"])
            if one["type"] != "missing" or general not in removed:  # otherwise a consequence of an earlier pass
                found[general, one["msg"]] += 1
        removed |= {general_path(place) for place in places}
        _remove(rest, places)
        try:
            valid = validate(rest)
        except ValidationError as next_error:
            error = next_error
            continue
        _note(found, path)
        return valid
    return None


def _removable(data: Any, location: Place, *, is_missing: bool) -> Place:
    """Returns the place of the value at a location, or of the object that lacks it; of what exists there."""
    for depth, part in enumerate(location[:-1] if is_missing else location):
        if not _has(data, part):
            return location[:depth]
        data = data[part]
    return location[:-1] if is_missing else location


def _has(data: Any, part: int | str) -> bool:
    if isinstance(part, int):
        return isinstance(data, list) and 0 <= part < len(data)
    return isinstance(data, dict) and part in data


def _field_of(place: Place) -> str:
    """Returns the field that a place is the value or a row of."""
    return next((part for part in reversed(place) if isinstance(part, str)), "")


def _remove(data: Any, places: Collection[Place]) -> None:
    for place in sorted(places, key=_order, reverse=True):  # the last row of a list first: the others keep their places
        if any(place[:depth] in places for depth in range(1, len(place))):
            continue
        container = data
        for part in place[:-1]:
            container = container[part]
        del container[place[-1]]


def _order(place: Place) -> list[tuple[bool, int | str]]:
    return [(isinstance(part, str), part) for part in place]


def general_path(location: Place) -> str:
    """Returns a location as the path of all values like it: ("players", 3, "id") is players[].id."""
    return "".join("[]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def _note(found: Counter[tuple[str, str]], path: str) -> None:
    noted = _noted.get()
    if noted is not None:
        for (place, message), count in found.items():
            noted[f"{path}.{place}".removeprefix(".") if path else place, message] += count


@contextmanager
def noting() -> Iterator[list[BrokenPart]]:
    """Collects the parts that are left out in its body; the list is filled at its end."""
    counts: Counter[tuple[str, str]] = Counter()
    parts: list[BrokenPart] = []
    token = _noted.set(counts)
    try:
        yield parts
    finally:
        _noted.reset(token)
        for (place, message), count in sorted(counts.items())[:MAX_PARTS]:
            parts.append(BrokenPart(path=place[:120], expected=message[:120], count=count))


def is_broken(field: str) -> bool:
    """Returns whether a part of this field has been left out in the current reading."""
    return any(field in place.replace("[]", "").split(".") for place, _ in _noted.get() or ())
