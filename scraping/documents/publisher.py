"""Writes every committed match to Redis, in a thread of its own.

Guards a poll against its rendering: the thread that commits only notes the match. The thread of this module renders
the noted matches from the objects that ingest has in memory, and stores them in one round trip. Once in SWEEP_SECONDS
one of all workers stores every listed match, so that an emptied Redis is full again soon.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from cachetools import LRUCache, TTLCache
from django.db import close_old_connections, transaction
from django.db.models.signals import post_save
from django.db.utils import Error
from prometheus_client import Counter

from scraping.documents import queries, redis_store
from scraping.documents.cache import documents
from scraping.documents.cached_match import COMPARED, CachedMatch, CachedRef
from scraping.models import Match, MatchRef
from scraping.signals import match_paused, match_resumed, match_updated, matches_joined, watch_began, watch_ended

logger = logging.getLogger(__name__)

GATHER_SECONDS = 0.015  # matches committed at almost the same time are stored together
IDLE_SECONDS = 5.0
SWEEP_SECONDS = 30.0
SWEPT_AT_MOST = 5_000
MAX_NOTED = 10_000
MAX_RENDERED = 2_000
REFS_KEPT_SECONDS = 60.0
published_total = Counter("victoryline_matches_published_total", "Matches put into the shared cache.")


class Publisher:
    def __init__(self) -> None:
        self._noted: dict[int, MatchRef | None] = {}
        self._refs: TTLCache[int, tuple[CachedRef, ...]] = TTLCache(MAX_NOTED, REFS_KEPT_SECONDS)
        self._rendered: LRUCache[int, CachedMatch] = LRUCache(MAX_RENDERED)  # a poll without news changes only times
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread in a process that commits matches; does nothing without Redis."""
        if self._thread is None and redis_store.is_configured():
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
            self._thread.start()

    def stop(self, *, timeout_seconds: float = 2.0) -> None:
        """Stores the noted matches and ends the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stopping.set()
            self._wake.set()
            thread.join(timeout_seconds)

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    def note(self, match_id: int, ref: MatchRef | None = None) -> None:
        """Notes a match that was polled or changed. `ref` holds it in memory; without it the database is read."""
        with self._lock:
            if match_id in self._noted:
                self._noted[match_id] = _later(self._noted[match_id], ref)
            elif len(self._noted) < MAX_NOTED:
                self._noted[match_id] = ref
        self._wake.set()

    def publish(self) -> int:
        """Stores the noted matches; returns how many."""
        with self._lock:
            noted, self._noted = self._noted, {}
        if not noted:
            return 0
        held = [ref for ref in noted.values() if ref is not None and self._can_render(ref)]
        read = noted.keys() - {ref.match_id for ref in held}
        if unread := [ref.match_id for ref in held if ref.match_id not in self._refs]:
            self._refs.update({match_id: tuple(refs) for match_id, refs in queries.cached_refs(unread).items()})
        matches = [self._render(ref) for ref in held]
        matches += queries.cached_matches(ids=list(read)) if read else []
        for match in matches:
            self._rendered[match.id] = match
        stored = redis_store.put(matches, reload=read)
        published_total.inc(stored)
        return stored

    def sweep(self) -> int:
        """Stores every listed match, and the index of them."""
        matches = queries.cached_matches(limit=SWEPT_AT_MOST)
        stored = redis_store.put(matches, announce=False)
        redis_store.put_index([each.id for each in matches], is_complete=len(matches) < SWEPT_AT_MOST)
        self._refs.update({each.id: each.refs for each in matches})
        return stored

    def _can_render(self, ref: MatchRef) -> bool:
        """True if all of the match is in memory. A poll without news has neither its payload nor its data source."""
        if hasattr(ref.match, "data_source"):
            return True
        rendered = self._rendered.get(ref.match_id)
        return rendered is not None and rendered.sequence == ref.match.sequence

    def _render(self, ref: MatchRef) -> CachedMatch:
        """Renders the match with the reference that ingest has written; the others are up to a minute old."""
        mine = CachedRef.from_row(ref)
        refs = {each.key: each for each in self._refs.get(ref.match_id, ())}
        known = refs.get(mine.key)
        refs[mine.key] = replace(known, planned_at=mine.planned_at, held_until=None) if known else mine
        row = ref.match
        match = CachedMatch.from_row(row, tuple(refs.values()))
        if hasattr(row, "data_source"):
            return match
        last = self._rendered[row.pk]
        if "payload" not in row.get_deferred_fields():
            return replace(match, data_source=last.data_source)
        # A poll without news: times are new, and a column such as the lifecycle may have changed since.
        return replace(last, **{name: getattr(match, name) for name in (*COMPARED, "refs")})

    def _run(self) -> None:
        swept_at = 0.0
        while not self._stopping.is_set():
            if self._wake.wait(IDLE_SECONDS):
                self._stopping.wait(GATHER_SECONDS)
                self._wake.clear()
                self._do(self.publish)
            if time.monotonic() - swept_at >= SWEEP_SECONDS / 3:
                swept_at = time.monotonic()
                if redis_store.take_turn("sweep", SWEEP_SECONDS):
                    self._do(self.sweep)
        self._do(self.publish)

    def _do(self, work: Callable[[], int]) -> None:
        """Logs errors: a database that is away, or a bug here, must not end the thread."""
        try:
            close_old_connections()
            work()
        except Error as error:
            logger.debug("Matches could not be rendered: %s", error, extra={"action": "publish_failed"})
        except Exception:
            logger.exception("Matches could not be rendered", extra={"action": "publish_failed"})
        finally:
            close_old_connections()


def _later(noted: MatchRef | None, ref: MatchRef | None) -> MatchRef | None:
    """Returns the later of two notes on one match; None if the database must be read: one holds an earlier state."""
    if noted is None or ref is None or ref.match.sequence < noted.match.sequence:
        return None
    return ref


publisher = Publisher()


def _on_change(sender: object, match_id: int = 0, gone_id: int = 0, ref: MatchRef | None = None, **_: object) -> None:
    """Publishes after the transaction: a read before its end would see the earlier state."""
    ids = [each for each in (match_id, gone_id) if each]
    transaction.on_commit(lambda: _publish(ids, ref), robust=True)


def _publish(ids: list[int], ref: MatchRef | None) -> None:
    if documents.is_filled:  # in a process that serves reads: its next answer shows the change
        documents.invalidate(ids)
    if publisher.is_running:
        for match_id in ids:
            publisher.note(match_id, ref)
    elif ref is None and redis_store.is_configured():
        redis_store.put(queries.cached_matches(ids=ids), reload=ids)


def _on_creation(sender: object, *, created: bool, **_: object) -> None:
    if created:
        transaction.on_commit(documents.expire, robust=True)


def connect() -> None:
    """Connects the signals of committed changes; called once, when the app is ready."""
    for signal in (match_updated, match_paused, match_resumed, matches_joined, watch_began, watch_ended):
        signal.connect(_on_change, sender=Match, dispatch_uid="scraping.documents.publisher")
    for model in (Match, MatchRef):
        post_save.connect(_on_creation, sender=model, dispatch_uid=f"scraping.documents.publisher.{model.__name__}")
