"""The thread that takes over while the database is unreachable: polls the worker's matches, and spools what is new.

Guards against a database outage becoming an outage of the data. A second thread probes the database with a growing
pause and replays the spool when it answers; the two must not wait for each other.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone
from prometheus_client import Counter, Gauge

from scraping import journal
from scraping.configuration.policies import Policies
from scraping.errors import Gone, ScrapingError
from scraping.matches.validate import check
from scraping.models import Worker
from scraping.outage import replay
from scraping.outage.polled_matches import Novelty, PolledMatch, PolledMatches
from scraping.outage.spool import HeldMatch, Spool, Update
from scraping.payloads import Payload
from scraping.reading.reader import Reader, Target
from scraping.readings import RefInfo
from scraping.signals import store_returned
from scraping.sources import adapter_for
from victoryline.lib.availability import first_line
from victoryline.lib.statements import statement_of

logger = logging.getLogger(__name__)

PROBE_SECONDS = (1.0, 2.0, 4.0, 8.0)
LOG_EVERY_SECONDS = 60.0
ADOPT_EVERY_SECONDS = 10.0
POLL_LOOP_SECONDS = 0.1
WORKER_IS_LIVE_SECONDS = 30.0

_outages_total = Counter("victoryline_store_outages", "Times this worker found the database away.")
_away_gauge = Gauge("victoryline_store_away", "1 while this worker cannot reach the database.")
_updates_gauge = Gauge("victoryline_spool_updates", "Updates that wait for the database.")
_memory_gauge = Gauge("victoryline_spool_memory_bytes", "Memory they take.")
_disk_gauge = Gauge("victoryline_spool_disk_bytes", "Disk space they take.")


class OutageKeeper(threading.Thread):
    def __init__(
        self,
        *,
        worker_id: str,
        reader: Reader,
        policies: Policies,
        spool: Spool,
        threads: int,
        running_tasks: Callable[[], list[int]],
    ) -> None:
        super().__init__(name="outage-keeper", daemon=True)
        self.matches = PolledMatches()
        self.spool = spool
        self._worker_id = worker_id
        self._reader = reader
        self._policies = policies
        self._running_tasks = running_tasks
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._reading: set[int] = set()
        self._lock = threading.Lock()
        self.away = threading.Event()  # set while the database is unreachable
        self._stopping = threading.Event()
        self._lost_at = timezone.now()
        self._reason = ""
        self._statement: dict[str, str] = {}  # that failed, for the log
        self._workers = 1
        self._log_at = self._adopt_at = 0.0
        _away_gauge.set_function(lambda: float(self.away.is_set()))
        _updates_gauge.set_function(lambda: float(len(self.spool)))
        _memory_gauge.set_function(lambda: float(self.spool.memory_bytes))
        _disk_gauge.set_function(lambda: float(self.spool.disk_bytes))

    # Called by the rest of the worker

    def not_stored(self, match: HeldMatch, payload: Payload) -> None:
        """Spools a reading that the database did not accept."""
        interval = self._policies.pace.baseline_seconds
        self._spool_if_new(self.matches.get_or_add(match, interval_seconds=interval, now=time.monotonic()), payload)

    def lost(self, error: Exception) -> None:
        """Reports that a thread could not reach the database, which is probed at once."""
        self._enter_outage(first_line(error), statement_of(error))

    def _enter_outage(self, reason: str, statement: dict[str, str] | None = None) -> None:
        with self._lock:
            if self.away.is_set() or self._stopping.is_set():
                return
            self._lost_at, self._reason, self._statement = timezone.now(), reason, statement or {}
            self._log_at = time.monotonic() + LOG_EVERY_SECONDS
            self.away.set()
        self._start_recovery()

    def _start_recovery(self) -> None:
        threading.Thread(target=self._recover, name="outage-recovery", daemon=True).start()

    def stop(self) -> None:
        """Writes what can be written; the rest stays on disk for the next worker."""
        self._stopping.set()
        self.join(timeout=2)
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        if len(self.spool):
            try:
                replay.replay_all(self.spool, pace=self._policies.pace)
            except Exception as error:  # noqa: BLE001 - the updates are on disk
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
                if self.away.is_set():
                    self._poll_due()
                    self._log_progress()
                else:
                    self._between_outages()
            except Exception:
                logger.exception("The outage keeper failed and continues", extra={"action": "keeper_failed"})
            self._stopping.wait(POLL_LOOP_SECONDS if self.away.is_set() else 0.5)

    def _between_outages(self) -> None:
        now = time.monotonic()
        if len(self.spool) and not self._reading:  # of a reading that ended after the database came back
            self._enter_outage("a reading came in late")
        if now < self._adopt_at:
            return
        self._adopt_at = now + ADOPT_EVERY_SECONDS
        self.matches.forget_old(now)
        self._adopt()
        self._count_workers()

    def _adopt(self) -> None:
        """Takes over the spool files of workers that died in an outage."""
        interval = self._policies.pace.baseline_seconds
        for match in self.spool.adopt():
            self.matches.get_or_add(match, interval_seconds=interval, now=time.monotonic())
        if len(self.spool):
            self._enter_outage("updates of an earlier outage wait")  # nothing new is read before they are written

    def _count_workers(self) -> None:
        """Counts live workers: in an outage each polls that many times more slowly."""
        try:
            since = timezone.now() - timedelta(seconds=WORKER_IS_LIVE_SECONDS)
            live = Worker.objects.filter(heartbeat_at__gt=since, stopped_at__isnull=True).count()
            self._workers = max(1, live)
        except (DatabaseError, InterfaceError) as error:
            self.lost(error)
        finally:
            connection.close()  # returned to the pool: this thread rarely needs it

    def _poll_due(self) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="outage-read")
        for polled in self.matches.due(time.monotonic()):
            if len(self._reading) >= self._threads:
                return
            if polled.match.ref_id not in self._reading:
                self._reading.add(polled.match.ref_id)
                self._pool.submit(self._poll, polled)

    def _poll(self, polled: PolledMatch) -> None:
        """Reads one match. Raises nothing: a failure only delays the next reading."""
        try:
            match = polled.match
            info = RefInfo(match.source_event_id, match.url)
            target = Target(match.ref_id, match.site, info, adapter_for(match.site.adapter_key or match.site.key))
            _, payload = self._reader.scorecard(target)
            check(payload, expected_id=match.source_event_id, sport=match.sport)
            self._spool_if_new(polled, payload)
            pause = max(polled.interval_seconds, match.min_interval_seconds) * self._workers
            # Jitter: workers that share a match must not poll in step.
            polled.due_at = time.monotonic() + pause * random.uniform(0.9, 1.1)  # noqa: S311
        except Exception as error:  # noqa: BLE001 - there is no journal to write it to
            wait = error.retry_after_seconds if isinstance(error, ScrapingError) else None
            polled.add_failure(time.monotonic(), retry_after_seconds=wait)
            level = logging.DEBUG if isinstance(error, Gone) else logging.WARNING
            logger.log(
                level,
                "Reading %s while the database is away failed: %s",
                polled.match.key,
                error,
                extra={"action": "outage_read_failed", "match_id": polled.match.key},
            )
        finally:
            self._reading.discard(polled.match.ref_id)

    def _spool_if_new(self, polled: PolledMatch, payload: Payload) -> None:
        weight = polled.add_reading(payload, time.monotonic())
        if weight is not Novelty.NOTHING_NEW:
            match, is_critical = polled.match, weight is Novelty.CRITICAL
            self.spool.put(Update(uuid.uuid4(), match.ref_id, match.key, self._worker_id, is_critical, payload))

    def _log_progress(self) -> None:
        if time.monotonic() < self._log_at:
            return
        self._log_at = time.monotonic() + LOG_EVERY_SECONDS
        logger.warning(
            "The database is still away: %d updates wait, %.1f MB in memory, %.1f MB on disk, %d dropped",
            len(self.spool),
            self.spool.memory_bytes / 1e6,
            self.spool.disk_bytes / 1e6,
            self.spool.dropped,
            extra={"action": "spool_waits", "updates": len(self.spool), "dropped": self.spool.dropped},
        )

    # The recovery thread

    def _recover(self) -> None:
        """Probes until the database answers, then replays the spool, then lets the worker take tasks again."""
        began, probes, written = time.monotonic(), 0, 0
        while not self._stopping.is_set():
            try:
                connection.close()
                # A row is written: a database that accepts nothing (read-only, full) counts as unreachable.
                Worker.objects.filter(worker_id=self._worker_id).update(heartbeat_at=timezone.now())
                written += replay.replay_all(self.spool, pace=self._policies.pace)
                journal.release_unknown_claims(
                    worker_id=self._worker_id,
                    held=self._running_tasks(),
                    taken_before=self._lost_at,
                    now=timezone.now(),
                )
            except Exception as error:  # noqa: BLE001 - any error: the database does not work yet
                if probes == 0:
                    self._report_loss()
                pause = PROBE_SECONDS[min(probes, len(PROBE_SECONDS) - 1)]
                probes += 1
                logger.info(
                    "The database does not answer yet (%s); next probe in %.0f s",
                    first_line(error),
                    pause,
                    extra={"action": "store_probed"},
                )
                self._stopping.wait(pause)
            else:
                self.away.clear()
                if probes or written:  # else it was one broken connection, not the database
                    self._report_return(time.monotonic() - began, written)
                break
        connection.close()

    def _report_loss(self) -> None:
        _outages_total.inc()
        self.spool.hold([one.match for one in tuple(self.matches.values())])
        logger.error(
            "The database is away: %s. %d matches are polled on; what they show is kept on disk and written later",
            self._reason,
            len(self.matches),
            extra={"action": "store_lost", "matches": len(self.matches), **self._statement},
        )

    def _report_return(self, seconds: float, written: int) -> None:
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
