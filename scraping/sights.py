"""What an attempt saw, carried by the error that ended it, so that the failure can keep it as evidence.

Carried, and not remembered somewhere: an error that nobody keeps takes it along when it goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from scraping.readings import STATIC_PAGE, Document, Reading

_ATTRIBUTE = "_victoryline_sight"


@dataclass(frozen=True)
class Sight:
    """Raw, as it came: whoever keeps it makes it fit to be kept."""

    documents: tuple[Document, ...] = ()
    screenshot: bytes = field(default=b"", repr=False)

    def __bool__(self) -> bool:
        return bool(self.documents or self.screenshot)


def carried_by(error: BaseException) -> Sight:
    sight = getattr(error, _ATTRIBUTE, None)
    return sight if isinstance(sight, Sight) else Sight()


def give(error: BaseException, sight: Sight) -> None:
    """What the error has already stays: the first who saw something stood closest to it."""
    known = carried_by(error)
    setattr(
        error,
        _ATTRIBUTE,
        replace(known, documents=known.documents or sight.documents, screenshot=known.screenshot or sight.screenshot),
    )


@contextmanager
def shown(reading: Reading) -> Iterator[None]:
    """An error in the body carries the reading that it is about."""
    try:
        yield
    except Exception as error:
        # A page kept from an earlier visit is not what this attempt saw.
        seen = tuple(one for name, one in reading.documents.items() if name != STATIC_PAGE)
        give(error, Sight(seen, reading.screenshot))
        raise
