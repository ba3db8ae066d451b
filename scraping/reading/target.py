"""What is to be read, which way, and what became of it; and how the reading side meets its loop."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from scraping.payloads import Payload
from scraping.reading.memory import Visited
from scraping.readings import Reading, RefInfo, Request, Site
from scraping.sources.base import Adapter

T = TypeVar("T")


@dataclass(frozen=True)
class Target:
    """What is to be read: a match at a source."""

    ref_id: int
    site: Site
    ref: RefInfo
    adapter: Adapter
    is_suspect: bool = False  # its task has failed before: a visit brings a picture along
    is_fresh: bool = False  # begins anew: what earlier visits taught does not count
    is_quiet: bool = False  # nothing has moved for a while; the page may say what the endpoints do not: the result
    timeout_factor: float = 1.0
    visits_from: datetime | None = None  # the source's traffic of today is used up: no page is opened before then


@dataclass(frozen=True)
class Plan:
    """How a match is read now: as it was visited before, off its open page, or (neither) by a visit, and why."""

    visited: Visited | None
    reason: str
    is_attached: bool = False
    can_wait: bool = False  # another match's visit may spare it its own
    outright: tuple[Request, ...] = ()  # what its adapter knows to ask without any visit


@dataclass
class Way:
    """Which way a reading took in the end: a short one that fails may be made good by a visit, a visit may not."""

    is_short: bool = False


@dataclass(frozen=True)
class Brought:
    """What became of one of many targets: a reading with its payload, or an error."""

    number: int
    reading: Reading | None
    payload: Payload | None
    error: Exception | None


class RunOnLoop(Protocol):
    """Runs a coroutine on the loop thread and waits for it."""

    def __call__(self, coroutine: Coroutine[Any, Any, T]) -> T: ...


class StartOnLoop(Protocol):
    """Starts a coroutine on the loop thread and does not wait for it."""

    def __call__(self, coroutine: Coroutine[Any, Any, None]) -> object: ...


class Observer(Protocol):
    """Is told what every reading cost and how complete it was, whatever becomes of it. Called on any thread."""

    def reading(self, source: str, reading: Reading) -> None: ...
    def payload(self, source: str, payload: Payload) -> None: ...
