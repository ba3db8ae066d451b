"""What apiauth raises when it can't do what a person asked of it.

RefusedError            nothing was changed; the message says why, and what to do instead
├── UnknownScopeError
└── NotFoundError       no consumer or key of this name; the message names the nearest ones
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class RefusedError(ValueError):
    """`field`: which of the things that were asked for it is about, where it is about one."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class UnknownScopeError(RefusedError):
    """A key can't be given a scope that doesn't exist."""


class NotFoundError(RefusedError):
    @classmethod
    def of(cls, what: str, name: str, known: Iterable[str]) -> NotFoundError:
        near = get_close_matches(name, list(known), n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else " manage.py list_api_keys --all shows what there is."
        return cls(f"There is no {what} {name!r}.{hint}")
