"""Publishes the documents of /health and /status: built ahead by one thread, read by every request.

Guards the database and the probes against the cost of a document (tens of milliseconds with 300 scrapers): requests
read the published bytes. The thread publishes documents that were requested within the last minute, all of them from
one evaluation, every second; it ends when no requests come. Without it, or when it hangs, a request builds the document
itself, once for all requests that wait.

Web processes that share a Redis share the documents for five seconds. A document that was built while the database was
away is not shared, because another process may still reach it.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import close_old_connections, connections
from django.utils import timezone

from monitoring.health.evaluation import Evaluation
from scraping.documents import redis_store
from victoryline.lib import availability

logger = logging.getLogger(__name__)

FRESH_SECONDS = 1.0  # younger documents are served and shared without rebuilding
MAX_AGE_SECONDS = 4.0  # older documents are never served
SHARED_SECONDS = 5  # lifetime in Redis
REQUESTED_SECONDS = 60.0  # a document is published for so long after its last request
BUG_PAUSE_SECONDS = 2.0
STOP_SECONDS = 1.0


@dataclass(frozen=True)
class Published:
    """A response body, its status code, and the time of its figures."""

    body: bytes
    status_code: int
    evaluated_at: datetime

    @property
    def age_seconds(self) -> float:
        """By the wall clock; another host's clock may be a little ahead of ours."""
        return max(0.0, (timezone.now() - self.evaluated_at).total_seconds())

    def encode(self) -> bytes:
        return b"%d %d\n%b" % (round(self.evaluated_at.timestamp() * 1000), self.status_code, self.body)

    @classmethod
    def decode(cls, data: bytes) -> Published | None:
        """Returns None for data of an unknown format, such as that of another version."""
        head, _, body = data.partition(b"\n")
        try:
            evaluated_at, code = head.split(b" ")
            return cls(body, int(code), datetime.fromtimestamp(int(evaluated_at) / 1000, UTC))
        except (ValueError, OverflowError, OSError):
            return None


class HealthPublisher:
    """The thread of a process. Disabled until `enable`, because not every process serves requests."""

    def __init__(self, *, requested_seconds: float = REQUESTED_SECONDS) -> None:
        self._requested_seconds = requested_seconds
        self._requested_at: dict[PublishedDocument, float] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.is_enabled = False

    def enable(self) -> None:
        self._stopping.clear()
        self.is_enabled = True
        atexit.register(self.stop)

    def stop(self) -> None:
        self.is_enabled = False
        self._stopping.set()
        thread = self._thread
        if thread is not None:
            thread.join(STOP_SECONDS)

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    def request(self, document: PublishedDocument) -> None:
        """Records a request for the document, and starts the thread if none runs."""
        if not self.is_enabled:
            return
        with self._lock:
            self._requested_at[document] = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        try:
            while documents := self._requested():
                if not self._stopping.wait(min(each.fresh_seconds for each in documents)):
                    self._publish(documents)
        finally:
            connections.close_all()

    def _requested(self) -> list[PublishedDocument]:
        """Returns the documents to publish; none means that the thread ends."""
        with self._lock:
            limit = time.monotonic() - self._requested_seconds
            self._requested_at = {document: at for document, at in self._requested_at.items() if at > limit}
            if not self._requested_at or self._stopping.is_set():
                self._thread = None
                return []
            return list(self._requested_at)

    def _publish(self, documents: list[PublishedDocument]) -> None:
        """A bug in a document must not end the thread; requests meet it too, and report it."""
        close_old_connections()
        try:
            evaluation = Evaluation(timezone.now())
            for document in documents:
                document.refresh(evaluation)
        except Exception:
            logger.exception("A document could not be published", extra={"action": "health_publish_failed"})
            self._stopping.wait(BUG_PAUSE_SECONDS)
        finally:
            close_old_connections()


publisher = HealthPublisher()


class PublishedDocument:
    """One document of a process, made of an evaluation by `build`. `key`: its name in Redis; empty: not shared."""

    def __init__(
        self,
        key: str,
        build: Callable[[Evaluation], Published],
        *,
        fresh_seconds: float = FRESH_SECONDS,
        max_age_seconds: float = MAX_AGE_SECONDS,
        publisher: HealthPublisher = publisher,
    ) -> None:
        self.fresh_seconds = fresh_seconds
        self._key = key
        self._build = build
        self._max_age_seconds = max_age_seconds
        self._publisher = publisher
        self._lock = threading.Lock()
        self._held: tuple[float, Published] | None = None

    def get(self) -> Published:
        """Returns the published document; builds it if there is none, or if it is too old."""
        self._publisher.request(self)
        if (held := self._younger_than(self.fresh_seconds)) is not None:
            return held
        is_being_built = self._publisher.is_running or self._lock.locked()
        if is_being_built and (held := self._younger_than(self._max_age_seconds)) is not None:
            return held
        with self._lock:
            return self._younger_than(self.fresh_seconds) or self._renew(Evaluation(timezone.now()))

    def refresh(self, evaluation: Evaluation) -> None:
        with self._lock:
            if self._younger_than(self.fresh_seconds) is None:
                self._renew(evaluation)

    def build_shared(self, evaluation: Evaluation) -> Published:
        """Returns another process's document if it is fresh; else builds one and shares it."""
        data = redis_store.get_text(self._key)
        found = Published.decode(data) if data else None
        if found is not None and found.age_seconds < FRESH_SECONDS:
            return found
        built = self._build(evaluation)
        if not availability.database.is_away():
            redis_store.put_text(self._key, built.encode(), seconds=SHARED_SECONDS)
        return built

    def forget(self) -> None:
        self._held = None

    @property
    def _is_shared(self) -> bool:
        return bool(self._key) and self._publisher.is_enabled

    def _renew(self, evaluation: Evaluation) -> Published:
        published = self.build_shared(evaluation) if self._is_shared else self._build(evaluation)
        self._held = (time.monotonic() - published.age_seconds, published)
        return published

    def _younger_than(self, seconds: float) -> Published | None:
        held = self._held
        return held[1] if held is not None and time.monotonic() - held[0] < seconds else None
