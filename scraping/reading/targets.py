"""Values of a read: its target, its plan, its result in a batch; and the protocols by which it is run and observed."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from scraping.payloads import Payload
from scraping.reading.caches import VisitRecord
from scraping.readings import Reading, RefInfo, Request, Site
from scraping.sources.base import Adapter

T = TypeVar("T")


@dataclass(frozen=True)
class Target:
    """A match at a source that is to be read."""

    ref_id: int
    site: Site
    ref: RefInfo
    adapter: Adapter
    is_suspect: bool = False  # its task has failed before: a visit takes a screenshot
    is_fresh: bool = False  # a new scraper: cached visits are not used
    is_quiet: bool = False  # no change for a while: the page is fetched more often, it may show the result
    timeout_factor: float = 1.0
    visits_from: datetime | None = None  # the source's traffic budget is spent: no page is opened before then


@dataclass(frozen=True)
class ReadPlan:
    """The mode of a read: learned requests, an open page, the adapter's own requests, or a visit."""

    visit_reason: str = ""
    record: VisitRecord | None = None
    is_attached: bool = False
    requests: tuple[Request, ...] = ()  # those that the adapter knows without any visit
    can_wait: bool = False  # the visit of another match may make its own unnecessary


@dataclass(frozen=True)
class BatchResult:
    """Result for one target of a batch: a reading with its payload, or an error."""

    number: int
    reading: Reading | None
    payload: Payload | None
    error: Exception | None


class RunOnLoop(Protocol):
    """Runs a coroutine on the loop thread and waits for it."""

    def __call__(self, coroutine: Coroutine[Any, Any, T]) -> T: ...


class Observer(Protocol):
    """Receives the cost of every reading and the completeness of every payload. Called on any thread."""

    def reading(self, source: str, reading: Reading) -> None: ...
    def payload(self, source: str, payload: Payload) -> None: ...
