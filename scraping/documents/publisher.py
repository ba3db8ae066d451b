"""Tells the web processes of every match that was committed and puts it into the shared cache, behind the worker's
back.

Guards a poll against its rendering: the thread that commits only notes the match (about a microsecond). A thread of
this module's own renders what was noted within some milliseconds, from the objects that ingest had in its hands, and
tells and stores all of it in two round trips. Once in SWEEP_SECONDS one worker of all stores every match from the
database, so that a Redis that was emptied is full again soon, and pauses, archived matches and new ones show. What
can't be stored is dropped: the next poll of the match brings it again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from django.db import close_old_connections, transaction
from django.db.utils import Error
from prometheus_client import Counter

from scraping.documents import channel, queries, shared
from scraping.documents.channel import Word
from scraping.documents.known import Known, KnownRef
from scraping.models import Match, MatchRef
from scraping.signals import match_paused, match_resumed, match_updated, matches_joined

logger = logging.getLogger(__name__)

GATHER_SECONDS = 0.015  # what is committed at almost the same time goes out together
IDLE_SECONDS = 5.0
SWEEP_SECONDS = 30.0
SWEPT_AT_MOST = 5_000
MAX_NOTED = 10_000
MAX_RENDERED = 2_000
REFS_KEPT_SECONDS = 60.0
NO_REFS: tuple[float, tuple[KnownRef, ...]] = (float("-inf"), ())
published_total = Counter("victoryline_matches_published_total", "Matches put into the shared cache.")


class Publisher:
    def __init__(self) -> None:
        self._noted: dict[int, MatchRef | None] = {}
        self._refs: dict[int, tuple[float, tuple[KnownRef, ...]]] = {}
        self._rendered: dict[int, Known] = {}  # what a reading without news only makes younger
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Once in a process that commits matches. Without a shared cache there is nothing to do."""
        if self._thread is None and shared.is_shared():
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
            self._thread.start()

    def stop(self, *, timeout_seconds: float = 2.0) -> None:
        """Stores what is noted and ends."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stopping.set()
            self._wake.set()
            thread.join(timeout_seconds)

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    def note(self, match_id: int, ref: MatchRef | None = None) -> None:
        """The match was read or has changed. `ref` has it in its hands; without one it is looked up in its turn."""
        with self._lock:
            if match_id in self._noted:
                self._noted[match_id] = _later(self._noted[match_id], ref)
            elif len(self._noted) < MAX_NOTED:
                self._noted[match_id] = ref
        self._wake.set()

    def publish(self) -> int:
        """Store what was noted; how many matches that were."""
        with self._lock:
            noted, self._noted = self._noted, {}
        if not noted:
            return 0
        held = [ref for ref in noted.values() if ref is not None and self._can_render(ref)]
        read = noted.keys() - {ref.match_id for ref in held}
        self._know_refs([ref.match_id for ref in held])
        news = {ref.match_id for ref in held if "payload" not in ref.match.get_deferred_fields()} | read
        known = [*(self._render(ref) for ref in held), *(_read(list(read)) if read else ())]
        channel.tell([Word(whole=each) if each.id in news else Word(bare=each) for each in known])
        self._keep(known)
        stored = shared.put(known)
        published_total.inc(stored)
        return stored

    def _keep(self, known: Iterable[Known]) -> None:
        """Whole matches take room: those that were not read for the longest time go first."""
        for each in known:
            self._rendered.pop(each.id, None)
            self._rendered[each.id] = each
        while len(self._rendered) > MAX_RENDERED:
            del self._rendered[next(iter(self._rendered))]

    def sweep(self) -> int:
        """Store every match that isn't archived, and the index of them."""
        rows = queries.known_matches(limit=SWEPT_AT_MOST)
        known = [Known.of(match) for match in rows]
        stored = shared.put(known)
        names = {key: each.id for each in known for key in each.keys}
        shared.put_index(shared.Index(tuple(each.id for each in known), names, len(known) < SWEPT_AT_MOST))
        at = time.monotonic()
        self._refs = {each.id: (at, each.refs) for each in known}
        return stored

    def _can_render(self, ref: MatchRef) -> bool:
        """Is all of the match in our hands? A reading without news comes without its payload, nor does it know by which
        way its state came in."""
        if hasattr(ref.match, "data_source"):
            return True
        known = self._rendered.get(ref.match_id)
        return known is not None and known.sequence == ref.match.sequence

    def _render(self, ref: MatchRef) -> Known:
        """Its own reference is what ingest has just written; the others are as they were a while ago at most."""
        mine = KnownRef.of(ref)
        refs = list(self._refs.get(ref.match_id, NO_REFS)[1])
        place = next((number for number, each in enumerate(refs) if each.is_same(mine)), None)
        if place is None:
            refs.append(mine)
        else:
            refs[place] = replace(refs[place], next_poll_at=mine.next_poll_at, held_until=None)
        if "payload" in ref.match.get_deferred_fields():
            return self._younger(ref.match, tuple(refs))
        if hasattr(ref.match, "data_source"):
            return Known.of(ref.match, tuple(refs))
        return replace(Known.of(ref.match, tuple(refs)), data_source=self._rendered[ref.match_id].data_source)

    def _younger(self, match: Match, refs: tuple[KnownRef, ...]) -> Known:
        """As it was rendered last, for what was read again; a pause may have come or gone since."""
        return replace(
            self._rendered[match.pk],
            scraped_at=match.last_scraper_update,
            lifecycle=match.lifecycle,
            pause_until=match.pause_until,
            frozen_at=match.frozen_at,
            refs=refs,
        )

    def _know_refs(self, match_ids: Iterable[int]) -> None:
        at = time.monotonic()
        wanted = [match_id for match_id in match_ids if at - self._refs.get(match_id, NO_REFS)[0] > REFS_KEPT_SECONDS]
        if not wanted:
            return
        found: dict[int, list[KnownRef]] = {match_id: [] for match_id in wanted}
        for ref in queries.refs_of(wanted):
            found[ref.match_id].append(KnownRef.of(ref))
        for match_id, refs in found.items():
            self._refs[match_id] = (at, tuple(refs))
        if len(self._refs) > MAX_NOTED:
            self._refs = {match_id: self._refs[match_id] for match_id in found}

    def _run(self) -> None:
        swept_at = 0.0
        while not self._stopping.is_set():
            if self._wake.wait(IDLE_SECONDS):
                self._stopping.wait(GATHER_SECONDS)
                self._wake.clear()
                self._do(self.publish)
            if time.monotonic() - swept_at >= SWEEP_SECONDS / 3:
                swept_at = time.monotonic()
                if shared.take_turn("sweep", SWEEP_SECONDS):
                    self._do(self.sweep)
        self._do(self.publish)

    def _do(self, work: Callable[[], int]) -> None:
        """A database that is away, or a bug here, must not end the thread."""
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
    """Of two words on one match the one that knows all of it; None: it has to be looked up.

    A source whose reading had no news may be written after another one's that had, and still hold the match as it was.
    """
    if noted is None or ref is None or ref.match.sequence < noted.match.sequence:
        return None
    return ref


def _read(match_ids: list[int]) -> list[Known]:
    return [Known.of(match) for match in queries.known_matches(ids=match_ids)]


publisher = Publisher()


def _note_reading(sender: object, match_id: int, ref: MatchRef | None = None, **_: object) -> None:
    """The engine pauses a match in the transaction of its last failure: who looks before that is over sees no pause."""
    if publisher.is_running:
        transaction.on_commit(partial(publisher.note, match_id, ref), robust=True)


def _note_joining(sender: object, match_id: int, gone_id: int, **_: object) -> None:
    """A person joins them in a web process, where no publisher runs; and no sweep finds what is archived."""
    if not publisher.is_running and shared.is_shared():
        transaction.on_commit(lambda: shared.put(_read([match_id, gone_id])), robust=True)


def connect() -> None:
    """Listen to what is committed; called once, when the app is ready."""
    for signal in (match_updated, match_paused, match_resumed):
        signal.connect(_note_reading, sender=Match, dispatch_uid="scraping.documents.publisher")
    matches_joined.connect(_note_joining, sender=Match, dispatch_uid="scraping.documents.publisher")
