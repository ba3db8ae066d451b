"""Writes log lines of severity ERROR and CRITICAL as rows (NFR-017), by a thread of each process.

Guards against three things: logging that waits for the database (lines wait in memory, a bounded number), lines of a
database outage that are lost (they are written when it is back), and a flood of equal errors that fills the database
(a limit per minute; what is beyond it is in the log file, and the next row says how many). CRITICAL lines are exempt
from the limit: they are few, and a flood of errors must not hide them. What waits in memory bounds them too.
"""

import logging
import threading
import time
from collections import deque
from contextlib import suppress
from datetime import datetime
from typing import Any

import orjson

from victoryline.lib.logs import formatter

MAX_WAITING = 500
MAX_A_MINUTE = 120
BATCH = 50
RETRY_SECONDS = 5.0
FLUSH_SECONDS = 2.0
MAX_LINE = 20_000  # characters of the longest value, a stack


class RowHandler(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.setFormatter(formatter("json"))
        self._waiting: deque[dict[str, Any]] = deque(maxlen=MAX_WAITING)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._minute = (0, 0)  # its number, and its lines so far
        self._left_out = 0
        self._is_writing = False

    def emit(self, record: logging.LogRecord) -> None:
        if threading.current_thread() is self._thread:  # a line about this thread's own trouble
            return
        try:
            with self._changed:
                if not self._is_within_limit() and record.levelno < logging.CRITICAL:
                    self._left_out += 1
                    return
                line = orjson.loads(self.format(record))
                if self._left_out:
                    line["left_out_before"], self._left_out = self._left_out, 0
                self._waiting.append(line)
                self._start_thread()
                self._changed.notify()
        except Exception:  # noqa: BLE001 - a line that cannot be a row must not fail its caller
            self.handleError(record)

    def flush(self) -> None:
        """Waits a moment until all lines are written; logging calls it when the process ends."""
        end = time.monotonic() + FLUSH_SECONDS
        with self._changed:
            while (self._waiting or self._is_writing) and (left := end - time.monotonic()) > 0:
                self._changed.wait(left)

    def write_waiting(self) -> int:
        """Writes the next lines; returns how many. They wait on if the database does not take them."""
        from monitoring.models import LogEntry  # this module is imported before the tables are known

        with self._changed:
            lines = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            self._is_writing = True
        try:
            LogEntry.objects.bulk_create([LogEntry(**_columns(line)) for line in lines])
        except BaseException:
            with self._changed:
                self._waiting.extendleft(reversed(lines))
            raise
        finally:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
        return len(lines)

    def _is_within_limit(self) -> bool:
        minute = int(time.monotonic() // 60)
        number = self._minute[1] + 1 if self._minute[0] == minute else 1
        self._minute = minute, number
        return number <= MAX_A_MINUTE

    def _start_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():  # threads do not survive a fork
            self._thread = threading.Thread(target=self._run, name="log rows", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        from django.db import connection

        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
            try:
                self.write_waiting()
            except Exception:  # noqa: BLE001 - the database is away, or refuses: the lines are in the log file too
                time.sleep(RETRY_SECONDS)
            finally:
                with suppress(Exception):
                    connection.close()


def _columns(line: dict[str, Any]) -> dict[str, Any]:
    texts = {name: value[:MAX_LINE] if isinstance(value, str) else value for name, value in line.items()}
    return {
        "timestamp": datetime.fromisoformat(line["ts"]),
        "level": line["level"][:10],
        "service": str(line.get("service") or "")[:20],
        "action": str(line.get("action") or "")[:60],
        "match_id": str(line.get("match_id") or "")[:160],
        "event": str(line.get("event") or "")[:500],
        "line": texts,
    }


def install() -> None:
    """Keeps the ERROR and CRITICAL lines of this process; called once by processes that serve or work."""
    logging.getLogger().addHandler(RowHandler())
