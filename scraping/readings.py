"""Values that cross the stages of a poll: site, requests, raw reading, and the evidence of a failed attempt."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

import orjson

from scraping.errors import SchemaBreak, ScrapingError
from scraping.payloads import Integrity

PAGE = "page"  # the name of the document that holds the page's HTML
FIELDS = "fields"  # the name of the document with the values that the selectors found on an open page
MAX_RETRY_AFTER_SECONDS = 900.0
WAIT_REPORT_SECONDS = 5.0
JSON_TYPES = frozenset({"application/json", "text/json", "application/x-json"})
STATIC_PAGE = "static_page"  # the page of an earlier visit: good for names and places, too old for scores


class ReadMode(StrEnum):
    VISIT = "visit"
    DIRECT = "direct"
    IN_PAGE = "in_page"
    ATTACHED = "attached"

    @property
    def is_requested(self) -> bool:
        """Whether we make the requests ourselves, with or without a browser, and not the scripts of a page."""
        return self in (ReadMode.DIRECT, ReadMode.IN_PAGE)


@dataclass(frozen=True)
class Site:
    """The facts about a source that reading needs: its hosts and how to reach them. Needs no database."""

    key: str
    base_url: str = ""
    adapter_key: str = ""  # empty: the key
    api_hosts: tuple[str, ...] = ()  # in addition to that of base_url
    allows_private: bool = False
    read_way: str = "auto"  # auto, direct, in_page, visit, attached
    robots_policy: str = "obey"
    uses_proxy: bool = True
    token_url: str = ""
    selectors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def hosts(self) -> frozenset[str]:
        own = urlsplit(self.base_url).hostname or ""
        return frozenset(host for host in (own, *(split_host(entry)[0] for entry in self.api_hosts)) if host)


def split_host(entry: str) -> tuple[str, int | None]:
    if entry.count(":") > 1 and not entry.startswith("["):  # an IPv6 address
        return entry.lower(), None
    parts = urlsplit(f"//{entry}")
    return parts.hostname or "", parts.port


@dataclass(frozen=True)
class RefInfo:
    """The facts about a match at a source that an adapter needs."""

    source_event_id: str
    url: str


@dataclass(frozen=True)
class Endpoint:
    """A JSON endpoint of the page that is intercepted and requested directly."""

    name: str
    pattern: re.Pattern[str]  # searched in path and query
    is_required: bool = True
    method: str = "GET"
    content_types: tuple[str, ...] = ()  # empty: every kind of JSON

    def accepts(self, content_type: str) -> bool:
        if self.content_types:
            return content_type in self.content_types
        return content_type in JSON_TYPES or content_type.endswith("+json")


@dataclass(frozen=True)
class Request:
    name: str
    url: str
    method: str = "GET"
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def retry_after_seconds(value: str | None, *, now: datetime) -> float | None:
    """Returns the seconds of a Retry-After header (a number or a date), bounded by the maximum; None without one."""
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return float(min(int(value[:9]), MAX_RETRY_AFTER_SECONDS))
    try:
        seconds = (parsedate_to_datetime(value) - now).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


@dataclass(frozen=True)
class Document:
    """One response: the page's HTML (name "page") or an endpoint's body."""

    name: str
    url: str
    status: int
    content_type: str
    body: bytes
    retry_after_seconds: float | None = None
    wire_bytes: int = 0  # on the network, headers and redirects included; 0: unknown

    @classmethod
    def from_response(
        cls, name: str, url: str, status: int, headers: Mapping[str, str], body: bytes, *, wire_bytes: int = 0
    ) -> Document:
        """Builds the document of an HTTP response; the names of `headers` are in lower case."""
        wait = retry_after_seconds(headers.get("retry-after"), now=datetime.now(UTC))
        return cls(name, url, status, headers.get("content-type", ""), body, wait, wire_bytes)

    def json(self) -> Any:
        """Returns the body as JSON; raises SchemaBreak if it is not."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise SchemaBreak(f"{self.name} is not JSON: {error}", url=self.url, evidence=self.text()[:2000]) from error

    def text(self) -> str:
        return self.body.decode("utf-8", errors="replace")


@dataclass(frozen=True)
class Extractor:
    """A script that is run in an open page: a function of its argument that returns JSON."""

    script: str
    argument: Mapping[str, Any]
    pulse: str  # the field that changes while the page receives updates


@dataclass(frozen=True)
class Reading:
    ref: RefInfo
    mode: ReadMode
    captured_at: datetime
    documents: Mapping[str, Document]
    requests: Mapping[str, Request] = field(default_factory=dict)  # by endpoint, for later direct reads
    bytes_in: int = 0
    requests_made: int = 0
    requests_blocked: int = 0
    requests_by_type: Mapping[str, int] = field(default_factory=dict)  # by the browser's resource type; visits only
    blocked_by_type: Mapping[str, int] = field(default_factory=dict)
    duration_ms: int = 0
    reason: str = ""  # of a visit, and of requests in a page; empty for other modes
    screenshot: bytes = field(default=b"", repr=False)  # only of a visit that seems to have failed
    session_id: str = ""
    selectors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # the source's own, by field

    def document(self, name: str) -> Document | None:
        return self.documents.get(name)

    def joined(self, later: Reading) -> Reading:
        """Returns both readings of one match as one, which is as old as the first."""
        return replace(
            self.with_costs_of(later),
            documents={**self.documents, **later.documents},
            requests={**self.requests, **later.requests},
        )

    def with_costs_of(self, other: Reading | None) -> Reading:
        """Returns this reading with the traffic and time of another one of the same attempt added."""
        if other is None:
            return self
        return replace(
            self,
            bytes_in=self.bytes_in + other.bytes_in,
            requests_made=self.requests_made + other.requests_made,
            duration_ms=self.duration_ms + other.duration_ms,
        )


_EVIDENCE_ATTRIBUTE = "_victoryline_attempt_evidence"


@dataclass(frozen=True)
class AttemptEvidence:
    """Raw documents and screenshot of a failed attempt. The error carries them until `journal.evidence` stores them."""

    documents: tuple[Document, ...] = ()
    screenshot: bytes = field(default=b"", repr=False)

    def __bool__(self) -> bool:
        return bool(self.documents or self.screenshot)


def evidence_of(error: BaseException) -> AttemptEvidence:
    return getattr(error, _EVIDENCE_ATTRIBUTE, AttemptEvidence())


def attach_evidence(error: BaseException, evidence: AttemptEvidence) -> None:
    """Adds evidence to the error. Evidence that was attached earlier, closer to the failure, is kept."""
    known = evidence_of(error)
    merged = AttemptEvidence(known.documents or evidence.documents, known.screenshot or evidence.screenshot)
    setattr(error, _EVIDENCE_ATTRIBUTE, merged)


@contextmanager
def evidence_from(reading: Reading) -> Iterator[None]:
    """Attaches the reading's documents and screenshot to any error that the body raises."""
    try:
        yield
    except Exception as error:
        # A page kept from an earlier visit is not part of this attempt.
        documents = tuple(document for name, document in reading.documents.items() if name != STATIC_PAGE)
        attach_evidence(error, AttemptEvidence(documents, reading.screenshot))
        raise


@dataclass(frozen=True)
class SessionFacts:
    session_id: str
    proxy_pool: str = ""  # "gateway" or "list"; empty: no proxy
    geo: str = ""
    ip_hash: str = ""


MAX_REQUESTS = 40  # of an attempt that are kept; a visit shows the page and its endpoints


class RequestFacts(NamedTuple):
    """One request of an attempt and its response; `error`: why there is none."""

    method: str
    url: str
    milliseconds: int
    status: int | None = None
    size: int = 0
    error: str = ""


@dataclass
class AttemptFacts:
    """The readings and costs of an attempt so far, for its log line. Sessions and the reader add to it."""

    began: float = field(default_factory=time.monotonic)
    source: str = ""  # empty where nothing is read
    session: SessionFacts | None = None
    mode: str = ""
    http_status: int | None = None
    bytes_in: int = 0
    requests_made: int = 0
    requests_blocked: int = 0
    captured: int = 0  # documents of endpoints
    schema_version: str = ""
    integrity: Integrity | None = None
    outcome: str = "read"  # in a few words
    scraper_id: UUID | None = None
    is_shown: bool = True  # False: an unchanged poll that the log leaves out
    requests: list[RequestFacts] = field(default_factory=list)

    def add(self, reading: Reading) -> None:
        self.mode = reading.mode.value
        self.bytes_in += reading.bytes_in
        self.requests_made += reading.requests_made
        self.requests_blocked += reading.requests_blocked
        self.captured += len(reading.documents) - (PAGE in reading.documents)
        self.http_status = max((one.status for one in reading.documents.values()), default=None)


attempt_facts: ContextVar[AttemptFacts | None] = ContextVar("attempt_facts", default=None)


def note_source(key: str) -> None:
    if (facts := attempt_facts.get()) is not None:
        facts.source = key


def note_request(method: str, url: str, outcome: Document | ScrapingError, seconds: float) -> None:
    """Keeps a request of the current attempt, for the row of its failure."""
    facts = attempt_facts.get()
    if facts is None or len(facts.requests) >= MAX_REQUESTS:
        return
    ms = round(seconds * 1000)
    if isinstance(outcome, Document):
        facts.requests.append(RequestFacts(method, url, ms, outcome.status, outcome.wire_bytes or len(outcome.body)))
    else:
        error = f"{type(outcome).__name__}: {outcome}"
        facts.requests.append(RequestFacts(method, url, ms, outcome.http_status, error=error))


def note_outcome(outcome: str, *, scraper_id: UUID | None = None, is_shown: bool = True) -> None:
    """Records what the current attempt has found, for its log line."""
    if (facts := attempt_facts.get()) is not None:
        facts.outcome, facts.scraper_id, facts.is_shown = outcome, scraper_id, is_shown


def note_content(schema: str, integrity: Integrity | None = None) -> None:
    """Records how complete the content of the current attempt is, for its log line."""
    if (facts := attempt_facts.get()) is not None:
        facts.schema_version, facts.integrity = schema, integrity


stage_listener: ContextVar[Callable[[str], None] | None] = ContextVar("stage_listener", default=None)


def report_stage(stage: str = "") -> None:
    """Reports the stage that the attempt has reached, or a step in it. The context has the listener, in tasks too."""
    listener = stage_listener.get()
    if listener is not None:
        listener(stage)


@asynccontextmanager
async def reporting_wait(lock: asyncio.Lock | asyncio.Semaphore) -> AsyncIterator[None]:
    """Holds the lock. Reports a stage while it waits, so that the watchdog does not take the task for hung."""
    while True:
        try:
            await asyncio.wait_for(lock.acquire(), WAIT_REPORT_SECONDS)
            break
        except TimeoutError:
            report_stage("INIT")
    try:
        yield
    finally:
        lock.release()
