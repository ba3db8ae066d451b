"""The thread that takes over when the database is away: polls what the worker holds, and mends when it is back.

Two threads, because they must not wait for each other: `keeper` reads matches at their intervals; `mender` asks the
database, with a growing pause between two questions, and replays the spool when it answers.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Protocol

from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone

from scraping import journal
from scraping.configuration.policies import Policies
from scraping.errors import Gone, ScrapingError
from scraping.matches.validate import check
from scraping.models import Worker
from scraping.outage import metrics, replay
from scraping.outage.holdings import Held, Holdings
from scraping.outage.importance import Importance
from scraping.outage.spool import HeldMatch, Spool, Update
from scraping.payloads import Payload
from scraping.reading.reader import Reader, Target
from scraping.readings import RefInfo
from scraping.signals import store_returned
from scraping.sources import adapter_for
from victoryline.lib.database_errors import first_line

logger = logging.getLogger(__name__)

PROBE_SECONDS = (1.0, 2.0, 4.0, 8.0)
BATCH = 25
HASTE_ABOVE, HASTY_BATCH = 500, 500
TELL_EVERY_SECONDS = 60.0
ADOPT_EVERY_SECONDS = 10.0
LOOK_SECONDS = 0.1
WORKER_IS_LIVE_SECONDS = 30.0


class InHand(Protocol):
    """Which tasks a worker has in its hands."""

    def __call__(self) -> list[int]: ...


class OutageKeeper(threading.Thread):
    def __init__(
        self, *, worker_id: str, reader: Reader, policies: Policies, spool: Spool, threads: int, in_hand: InHand
    ) -> None:
        super().__init__(name="outage-keeper", daemon=True)
        self.holdings = Holdings()
        self.spool = spool
        self._worker_id = worker_id
        self._reader = reader
        self._policies = policies
        self._in_hand = in_hand
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._reading: set[int] = set()
        self._lock = threading.Lock()
        self._away = threading.Event()
        self._stopping = threading.Event()
        self._lost_at: datetime | None = None
        self._reason = ""
        self._workers = 1
        self._tell_at = self._adopt_at = 0.0
        metrics.watch(self)

    # What the rest of the worker calls

    @property
    def is_away(self) -> bool:
        return self._away.is_set()

    def stored(self, match: HeldMatch, payload: Payload, *, interval_seconds: float) -> None:
        """This reading is in the database: from here on only what differs from it is news."""
        self.holdings.stored(match, payload, interval_seconds=interval_seconds, now=time.monotonic())

    def not_stored(self, match: HeldMatch, payload: Payload) -> None:
        """The database did not take this reading. It is kept, and written when it can be."""
        held = self.holdings.get(match.ref_id)
        if held is None:
            self.holdings.restore([match], interval_seconds=self._policies.pace.baseline_seconds, now=time.monotonic())
            held = self.holdings.get(match.ref_id)
        assert held is not None
        self._keep(held, payload)

    def lost(self, error: Exception) -> None:
        """Somebody in this worker could not reach the database. It is asked at once whether that was all."""
        self._begin(first_line(error))

    def _begin(self, reason: str) -> None:
        """Away from now on; the mender says when that is over."""
        with self._lock:
            if self._away.is_set() or self._stopping.is_set():
                return
            self._lost_at, self._reason = timezone.now(), reason
            self._tell_at = time.monotonic() + TELL_EVERY_SECONDS
            self._away.set()
        self._start_mender()

    def _start_mender(self) -> None:
        threading.Thread(target=self._mend, name="outage-mender", daemon=True).start()

    def stop(self) -> None:
        """Write what can be written; the rest waits on disk for the next worker."""
        self._stopping.set()
        self.join(timeout=2)
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        if len(self.spool):
            try:
                self._replay_all()
            except Exception as error:  # noqa: BLE001 - it is on disk, and found at the next start
                logger.warning(
                    "%d updates wait on disk for the next worker: %s",
                    len(self.spool),
                    error,
                    extra={"action": "spool_kept", "updates": len(self.spool)},
                )
        self.spool.close()

    # The keeper's thread

    def run(self) -> None:
        self._adopt()
        while not self._stopping.is_set():
            try:
                if self._away.is_set():
                    self._poll_due()
                    self._tell()
                else:
                    self._between_outages()
            except Exception:
                logger.exception("The outage keeper stumbled and goes on", extra={"action": "keeper_failed"})
            self._stopping.wait(LOOK_SECONDS if self._away.is_set() else 0.5)

    def _between_outages(self) -> None:
        now = time.monotonic()
        if len(self.spool) and not self._reading:  # a reading that was under way when the database came back
            self._begin("a reading came in late")
        if now < self._adopt_at:
            return
        self._adopt_at = now + ADOPT_EVERY_SECONDS
        self.holdings.forget_old(now)
        self._adopt()
        self._count_workers()

    def _adopt(self) -> None:
        """Updates of workers that died in an outage are ours to write."""
        held = self.spool.adopt()
        self.holdings.restore(held, interval_seconds=self._policies.pace.baseline_seconds, now=time.monotonic())
        if len(self.spool):
            self._begin("updates of an earlier outage wait")  # nothing new is read before the old is written

    def _count_workers(self) -> None:
        """How many share the matches: in an outage each polls so many times more slowly, all together as before."""
        try:
            since = timezone.now() - timedelta(seconds=WORKER_IS_LIVE_SECONDS)
            live = Worker.objects.filter(heartbeat_at__gt=since, stopped_at__isnull=True).count()
            self._workers = max(1, live)
        except (DatabaseError, InterfaceError) as error:
            self.lost(error)
        finally:
            connection.close()  # back into the pool: this thread asks once in a while, and may end without asking again

    def _poll_due(self) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="outage-read")
        for held in self.holdings.due(time.monotonic()):
            if len(self._reading) >= self._threads:
                return
            if held.match.ref_id not in self._reading:
                self._reading.add(held.match.ref_id)
                self._pool.submit(self._poll, held)

    def _poll(self, held: Held) -> None:
        """Read one match. Raises nothing: a failure only makes the next reading later."""
        try:
            match = held.match
            info = RefInfo(match.source_event_id, match.url)
            target = Target(match.ref_id, match.site, info, adapter_for(match.site.adapter_key or match.site.key))
            _, payload = self._reader.scorecard(target)
            check(payload, expected_id=match.source_event_id, sport=match.sport)
            self._keep(held, payload)
            pause = max(held.interval_seconds, match.min_interval_seconds) * self._workers
            # Workers that share a match must not come in step.
            held.due_at = time.monotonic() + pause * random.uniform(0.9, 1.1)  # noqa: S311
        except Exception as error:  # noqa: BLE001 - there is no journal now to write it to
            wait = error.retry_after_seconds if isinstance(error, ScrapingError) else None
            held.note_failure(time.monotonic(), retry_after_seconds=wait)
            level = logging.DEBUG if isinstance(error, Gone) else logging.WARNING
            logger.log(
                level,
                "Reading %s while the database is away failed: %s",
                held.match.key,
                error,
                extra={"action": "outage_read_failed", "match_id": held.match.key},
            )
        finally:
            self._reading.discard(held.match.ref_id)

    def _keep(self, held: Held, payload: Payload) -> None:
        weight = held.note(payload, time.monotonic())
        if weight is Importance.NOTHING_NEW:
            return
        update = Update(
            update_id=uuid.uuid4(),
            ref_id=held.match.ref_id,
            key=held.match.key,
            worker_id=self._worker_id,
            is_critical=weight is Importance.CRITICAL,
            payload=payload,
        )
        self.spool.put(update)

    def _tell(self) -> None:
        if time.monotonic() < self._tell_at:
            return
        self._tell_at = time.monotonic() + TELL_EVERY_SECONDS
        logger.warning(
            "The database is still away: %d updates wait, %.1f MB in memory, %.1f MB on disk, %d dropped",
            len(self.spool),
            self.spool.memory_bytes / 1e6,
            self.spool.disk_bytes / 1e6,
            self.spool.dropped,
            extra={"action": "spool_waits", "updates": len(self.spool), "dropped": self.spool.dropped},
        )

    # The mender's thread

    def _mend(self) -> None:
        """Ask until the database answers, then write what has waited, then let the worker go on."""
        began, questions, written = time.monotonic(), 0, 0
        while not self._stopping.is_set():
            try:
                self._probe()
                written += self._replay_all()
                self._release_strays()
            except Exception as error:  # noqa: BLE001 - whatever it is, the database does not work yet
                if questions == 0:
                    self._tell_loss()
                pause = PROBE_SECONDS[min(questions, len(PROBE_SECONDS) - 1)]
                questions += 1
                logger.info(
                    "The database does not answer yet (%s); asked again in %.0f s",
                    first_line(error),
                    pause,
                    extra={"action": "store_probed"},
                )
                self._stopping.wait(pause)
            else:
                self._away.clear()
                if questions or written:  # else it was one broken connection, not the database
                    self._tell_return(time.monotonic() - began, written)
                break
        connection.close()

    def _tell_loss(self) -> None:
        metrics.outages.inc()
        self.spool.hold(self.holdings.matches())
        logger.error(
            "The database is away: %s. %d matches are polled on; what they show is kept on disk and written later",
            self._reason,
            len(self.holdings),
            extra={"action": "store_lost", "matches": len(self.holdings)},
        )

    def _probe(self) -> None:
        """A database that answers but takes nothing (read-only, full) is away all the same."""
        connection.close()
        Worker.objects.filter(worker_id=self._worker_id).update(heartbeat_at=timezone.now())

    def _replay_all(self) -> int:
        written = 0
        in_haste = len(self.spool) > HASTE_ABOVE
        while updates := self.spool.batch(HASTY_BATCH if in_haste else BATCH):
            now = timezone.now()
            written += replay.replay(updates, pace=self._policies.pace, now=now, in_haste=in_haste)
            self.spool.done(updates)
        return written

    def _release_strays(self) -> None:
        assert self._lost_at is not None
        journal.release_strays(
            worker_id=self._worker_id, held=self._in_hand(), taken_before=self._lost_at, now=timezone.now()
        )

    def _tell_return(self, seconds: float, written: int) -> None:
        logger.warning(
            "The database is back after %.0f s: %d updates that had waited were written, %d were dropped",
            seconds,
            written,
            self.spool.dropped,
            extra={"action": "store_returned", "updates": written, "dropped": self.spool.dropped},
        )
        store_returned.send_robust(
            sender=OutageKeeper, worker_id=self._worker_id, seconds=seconds, written=written, dropped=self.spool.dropped
        )
        self.spool.dropped = 0
