"""Strict, versioned schemas of what sources answer.

A schema has the fields that we rely on and nothing else: a field that is missing or of another type is a break, told
with its path and never guessed around; a field that we do not know is none of our business. A *value* that we do not
know, in a field that we rely on (a status nobody has seen), is not dropped in silence: `note` counts it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from scraping.errors import SchemaBreak
from scraping.payloads import UnrecognizedValue

MAX_NOTED = 40  # of one reading
_noted: ContextVar[list[UnrecognizedValue] | None] = ContextVar("noted", default=None)


class Answer(BaseModel):
    """A part of a source's answer."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, populate_by_name=True)


A = TypeVar("A", bound=Answer)


def validated(model: type[A], data: Any, *, schema: str, url: str = "") -> A:
    """The answer, or SchemaBreak with every field that broke: `sofascore.event.v1: event.status.type (missing)`."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        broken = [f"{path_of(one['loc'])} ({one['msg'].lower()})" for one in error.errors()[:5]]
        raise SchemaBreak(f"{schema}: {'; '.join(broken)}", url=url, evidence=str(data)[:2000]) from error


def path_of(location: tuple[int | str, ...]) -> str:
    """("event", "players", 3, "id") is event.players[3].id."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".") or "the whole answer"


@contextmanager
def noting() -> Iterator[list[UnrecognizedValue]]:
    """Collects what `note` is told within."""
    words: list[UnrecognizedValue] = []
    token = _noted.set(words)
    try:
        yield words
    finally:
        _noted.reset(token)


def note(path: str, value: object) -> None:
    """A value that is not in our tables. Each counts once a reading."""
    words = _noted.get()
    word = UnrecognizedValue(path=path[:120], value=str(value)[:120])
    if words is not None and len(words) < MAX_NOTED and word not in words:
        words.append(word)
