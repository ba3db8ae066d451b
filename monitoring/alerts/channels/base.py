"""What every channel is: it takes a message to people, or says why it did not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol


class DeliveryError(Exception):
    """The message did not get through; the text is for people and holds no secret."""


class Refused(DeliveryError):  # noqa: N818 - reads as what it says at every `except`
    """And it never will: trying again would be refused again."""


class PutOff(DeliveryError):  # noqa: N818
    """It may get through later; not before `seconds` have passed, when the other side has said so."""

    def __init__(self, reason: str, *, seconds: float | None = None) -> None:
        super().__init__(reason)
        self.seconds = seconds


@dataclass(frozen=True)
class Outgoing:
    """A message in hand. `thread`: the ids of earlier documents about the same alerts, oldest first."""

    document: dict[str, Any]
    created_at: datetime
    thread: Sequence[str] = field(default=())

    @property
    def id(self) -> str:
        return str(self.document["id"])


class Sender(Protocol):
    def send(self, message: Outgoing) -> str:
        """Blocks, for seconds at most. What was done, in words. Raises Refused or PutOff."""
