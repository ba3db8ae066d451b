"""Reads what can be read of a response that does not match its schema, and notes the parts that are left out.

Guards against losing a whole reading for one part of it: a player without a name, a ball without runs, a toss of an
unknown type. Parts are removed from the response until the rest is valid: the invalid value first, then, where its
field is required, the object around it, up to the row of a list, or the list if it has no valid row. Fields that a
reading is worth nothing without are `needed`: neither they nor a row of them can be left out. A field is named by the
end of its path without brackets: "teams" is any field of this name, "linescores.runs" only that of a linescore.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from operator import getitem
from typing import Any, TypeVar

from pydantic import ValidationError

from scraping.payloads import BrokenPart

MAX_PASSES = 20  # each removes one level around a required field
MAX_PARTS = 40  # of one reading

_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,9})?", re.ASCII)
T = TypeVar("T")
Place = tuple[int | str, ...]
Invalid = tuple[Place, str]  # where, and what is expected there

_noted: ContextVar[Counter[tuple[str, str]] | None] = ContextVar("broken_parts", default=None)


class NeededPartError(Exception):
    """Something needed is invalid. `invalid`: each such value with its place."""

    def __init__(self, invalid: Sequence[Invalid]) -> None:
        super().__init__(invalid)
        self.invalid = invalid


def read_without(
    validate: Callable[[Any], T], data: Any, error: ValidationError, *, needed: Collection[str], path: str = ""
) -> T:
    """Returns the valid rest of a response (`data`, at `path`) and notes what is left out; raises NeededPartError."""
    first = invalid = _invalid_in(data, error)
    removed: set[Place] = set()  # without the numbers of rows, which change with the rows that are removed
    found: Counter[Invalid] = Counter()
    for _ in range(MAX_PASSES):
        for _, place, _ in invalid:
            if not place or _is_needed(place, needed):
                raise NeededPartError(_under(place, first) or [(one, said) for one, _, said in invalid])
        found.update((_general(stated), said) for stated, _, said in invalid if not _is_consequence(stated, removed))
        removed |= {_general(one) for stated, place, _ in invalid for one in (stated, place)}
        data = _without(data, {place for _, place, _ in invalid})
        try:
            valid = validate(data)
        except ValidationError as next_error:
            invalid = _invalid_in(data, next_error)
            continue
        for (place, said), count in found.items():
            note(path_of((path, *place) if path else place), said, count)
        return valid
    raise NeededPartError([(stated, said) for stated, _, said in first])


def with_types(data: Any, error: ValidationError) -> tuple[Any, list[Invalid]]:
    """Returns a copy with text such as "151" as the expected type, and the place and types of each such value."""
    found: dict[Place, Any] = {}
    for one in error.errors(include_url=False, include_context=False):
        place = tuple(part for part in _existing(data, one["loc"]) if part is not None)
        value = _as_type(one["type"], one["input"])
        if value is not None and reduce(getitem, place, data) is one["input"]:
            found.setdefault(place, value)
    types = {place: (type(reduce(getitem, place, data)), type(value)) for place, value in found.items()}
    stated = [(place, f"{old.__name__} in place of {new.__name__}") for place, (old, new) in types.items()]
    return (_replaced(data, found) if found else data), stated


def _as_type(expected: str, value: Any) -> Any:
    """Returns the value as the type that an error of pydantic expects, None where it says something else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip()
    if expected == "bool_type":
        return {"true": True, "false": False}.get(text.lower())
    if expected not in ("int_type", "float_type") or not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if expected == "float_type" else int(number) if number.is_integer() else None


def _replaced(data: Any, values: Mapping[Place, Any]) -> Any:
    if () in values:
        return values[()]
    below: dict[int | str, dict[Place, Any]] = defaultdict(dict)
    for (first, *rest), value in values.items():
        below[first][tuple(rest)] = value
    copy: Any = dict(data) if isinstance(data, dict) else list(data)
    for key, inner in below.items():
        copy[key] = _replaced(copy[key], inner)
    return copy


def _invalid_in(data: Any, error: ValidationError) -> list[tuple[Place, Place, str]]:
    """Returns each invalid value once: where it is or should be, the place to remove, and what is expected."""
    found: dict[Place, tuple[Place, Place, str]] = {}
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        location = one["loc"]
        existing = _existing(data, location)
        if one["type"] == "missing":
            stated, place = location, location[: (*existing[:-1], None).index(None)]
        else:
            last = max((number for number, part in enumerate(existing, start=1) if part is not None), default=0)
            stated, place = location[:last], tuple(part for part in existing if part is not None)
        said = one["msg"] if stated not in found else f"{found[stated][2]}; {one['msg'].lower()}"
        found[stated] = stated, place, said
    emptied = _emptied(data, [place for _, place, _ in found.values()])
    return [(stated, place[:-1] if place[:-1] in emptied else place, said) for stated, place, said in found.values()]


def _emptied(data: Any, places: Collection[Place]) -> set[Place]:
    """Returns the lists that have no valid row: such a list is unreadable, not empty."""
    rows = Counter(place[:-1] for place in set(places) if place and isinstance(place[-1], int))
    return {place for place, count in rows.items() if count == len(reduce(getitem, place, data))}


def _existing(data: Any, location: Place) -> list[int | str | None]:
    """Returns the parts of a location, None for one that is not there: a missing field, or a member of a union."""
    found: list[int | str | None] = []
    for part in location:
        is_row = isinstance(part, int) and isinstance(data, list) and 0 <= part < len(data)
        is_there = is_row or (isinstance(data, dict) and part in data)
        found.append(part if is_there else None)
        data = data[part] if is_there else data
    return found


def _is_needed(place: Place, needed: Collection[str]) -> bool:
    field = f".{'.'.join(map(str, _names(place)))}"
    return any(field.endswith(f".{one}") for one in needed)


def _is_consequence(place: Place, removed: Collection[Place]) -> bool:
    """Returns whether an error at this place follows from a removal: of the value, or of one around or below it."""
    general = _general(place)
    return any(one[: len(general)] == general or general[: len(one)] == one for one in removed)


def _under(place: Place, invalid: Sequence[tuple[Place, Place, str]]) -> list[Invalid]:
    names = _names(place)
    return [(stated, said) for stated, _, said in invalid if _names(stated)[: len(names)] == names]


def _names(place: Place) -> Place:
    return tuple(part for part in place if isinstance(part, str))


def _general(place: Place) -> Place:
    """Returns a place as that of all rows: ("players", 3, "id") is ("players", 0, "id")."""
    return tuple(0 if isinstance(part, int) else part for part in place)


def _without(data: Any, places: Collection[Place]) -> Any:
    """Returns a copy without these values; it shares what is not on their way."""
    below: dict[int | str, list[Place]] = defaultdict(list)
    for first, *rest in places:
        below[first].append(tuple(rest))
    items = data.items() if isinstance(data, dict) else enumerate(data)
    kept = [
        (key, _without(value, below[key]) if key in below else value)
        for key, value in items
        if () not in below.get(key, ())
    ]
    return dict(kept) if isinstance(data, dict) else [value for _, value in kept]


def path_of(place: Place) -> str:
    """Returns a place as the path of all values like it: ("players", 3, "id") is players[].id."""
    return "".join("[]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def note(path: str, expected: str, count: int = 1) -> None:
    """Records a part that has been left out of the current reading."""
    noted = _noted.get()
    if noted is not None:
        noted[path.replace("\x00", ""), expected.replace("\x00", "")] += count


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
