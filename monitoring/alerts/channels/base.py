"""The interface of a channel, its message and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol


class DeliveryError(Exception):
    """A message was not delivered; the text is for operators and contains no secret."""


class DeliveryRejected(DeliveryError):  # noqa: N818 - reads as a state at every `except`
    """A retry would be rejected again."""


class DeliveryDeferred(DeliveryError):  # noqa: N818
    """A retry may succeed; not before `seconds` have passed, if the server sent Retry-After."""

    def __init__(self, reason: str, *, seconds: float | None = None) -> None:
        super().__init__(reason)
        self.seconds = seconds


@dataclass(frozen=True)
class OutgoingMessage:
    """A claimed message. `thread`: ids of earlier documents about the same alerts, oldest first."""

    document: dict[str, Any]
    created_at: datetime
    thread: Sequence[str] = field(default=())

    @property
    def id(self) -> str:
        return str(self.document["id"])


class Sender(Protocol):
    def send(self, message: OutgoingMessage) -> str:
        """Blocks for seconds at most and returns a description. Raises DeliveryRejected or DeliveryDeferred."""
