"""Errors of apiauth. Nothing was changed; the message gives the reason and the next step.

RefusedError
└── NotFoundError       no consumer or key of this name; the message names the nearest ones
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from victoryline.lib.operators import OperationRefused


class RefusedError(OperationRefused):
    """`field` names the input that is refused, where there is one."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class NotFoundError(RefusedError):
    @classmethod
    def of(cls, what: str, name: str, known: Iterable[str]) -> NotFoundError:
        near = get_close_matches(name, list(known), n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else " manage.py api_keys list --all lists all of them."
        return cls(f"There is no {what} {name!r}.{hint}")
