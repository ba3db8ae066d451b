"""What a supervised child says: all of it into a bounded file, what matters onto the operator's terminal."""

import json
import logging
import re
import threading
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import IO, Any

FILE_BYTES, FILES_KEPT = 5_000_000, 3
LONGEST_LINE = 20_000
SHOWN_LEVELS = {"WARN", "WARNING", "ERROR", "CRITICAL"}
CONTEXT_KEYS = ("match_id", "source", "task_id", "attempt", "error_type", "error_message")
# What children say before their logging is set up, and what granian says, is not JSON.
PLAIN_TROUBLE = re.compile(r"\b(WARN(ING)?|ERROR|CRITICAL)\b|^[A-Za-z_.]*(Error|Exception)\b|Traceback", re.ASCII)
# Granian finds more threads than cores remarkable; ours wait for the database most of the time.
HARMLESS = "you can safely ignore this message"


class ChildLog:
    """The log file of one child; `follow` reads a pipe until its last writer is gone."""

    def __init__(self, name: str, folder: Path, show: Callable[[str], None]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name, self.path, self._show = name, folder / f"{name}.log", show
        self._file = RotatingFileHandler(self.path, maxBytes=FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8")
        self._file.setFormatter(logging.Formatter("%(message)s"))

    def follow(self, pipe: IO[bytes]) -> None:
        threading.Thread(target=self._read, args=(pipe,), name=f"log of {self.name}", daemon=True).start()

    def close(self) -> None:
        self._file.close()

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            for raw in iter(lambda: pipe.readline(LONGEST_LINE), b""):
                line = raw.decode("utf-8", errors="replace").rstrip()
                self._file.emit(logging.makeLogRecord({"msg": line}))
                if shown := for_terminal(line):
                    self._show(f"{self.name:8} {shown}")


def for_terminal(line: str) -> str | None:
    """The line as a person wants it, or None when it can stay in the file."""
    try:
        event: Any = json.loads(line)
    except ValueError:
        return line[:300] if PLAIN_TROUBLE.search(line) and HARMLESS not in line else None
    if not isinstance(event, dict) or event.get("level") not in SHOWN_LEVELS:
        return None
    context = ", ".join(f"{key}={event[key]}" for key in CONTEXT_KEYS if event.get(key) not in (None, ""))
    return f"{event['level']:5} {event.get('event', '')}" + (f" ({context})" if context else "")
