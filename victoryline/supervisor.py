"""Keeps the processes of the embedded system alive, and stops them together.

Guards against three things: a child that dies (restarted, with back-off), a child whose own children outlive it (they
would keep the port or a browser: killed before the restart), and the death of the supervisor itself (the kernel sends
SIGTERM to the children, the parent watch kills those that ignore it).
"""

import ctypes
import json
import logging
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import FrameType
from typing import IO, Any, Self

from victoryline import parent_watch
from victoryline.lib import processes
from victoryline.lib.watchdog import STALLED_EXIT_CODE, TOO_LARGE_EXIT_CODE

GRACE_SECONDS = 30.0  # for a worker to finish its running tasks; an idle one is gone in a second
# After the supervisor was killed everything must be gone within 10 s, on a busy machine too.
SHORT_GRACE_SECONDS = 6.0
# A worker needs them after its running work: leases are released, the browser closes, the last heartbeat is written.
CLOSING_SECONDS = 5.0
FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 0.2, 10.0
STEADY_AFTER_SECONDS = 60.0
# A signal to a process group may arrive several times; these count as one.
ONE_SIGNAL_SECONDS = 1.0
PR_SET_CHILD_SUBREAPER = 36
FILE_BYTES, FILES_KEPT = 20_000_000, 5
LONGEST_LINE = 20_000
SHOWN_LEVELS = {"WARN", "WARNING", "ERROR", "CRITICAL"}
CONTEXT_KEYS = ("match_id", "source", "task_id", "attempt", "error_type", "exception_type", "error_message")
# Output of granian, and of children before their logging is configured, is not JSON.
PLAIN_ERROR = re.compile(r"\b(WARN(ING)?|ERROR|CRITICAL)\b|^[A-Za-z_.]*(Error|Exception)\b|Traceback", re.ASCII)
# Granian warns about more threads than cores; our threads mostly wait for the database.
HARMLESS = "you can safely ignore this message"


def for_terminal(line: str) -> str | None:
    """Returns the line as shown on the terminal, or None if it belongs to the file only."""
    try:
        event: Any = json.loads(line)
    except ValueError:
        return line[:300] if PLAIN_ERROR.search(line) and HARMLESS not in line else None
    if not isinstance(event, dict) or event.get("level") not in SHOWN_LEVELS:
        return None
    context = ", ".join(f"{key}={event[key]}" for key in CONTEXT_KEYS if event.get(key) not in (None, ""))
    return f"{event['level']:5} {event.get('event', '')}" + (f" ({context})" if context else "")


@dataclass
class Child:
    """A process to keep alive."""

    name: str
    command: list[str]
    env: Mapping[str, str] = field(default_factory=dict)
    stops_first: bool = False  # it finishes its work at a stop and needs the other processes for that
    process: "subprocess.Popen[bytes] | None" = None
    started_at: float = 0.0
    restart_at: float = 0.0
    delay_seconds: float = FIRST_DELAY_SECONDS
    temp_dir: Path | None = None
    log: RotatingFileHandler | None = None


class Supervisor:
    """Starts children with `start`; `watch` restarts them until a signal comes.

    For the main thread only: the kernel treats the end of the thread that started a child as the death of its parent.
    """

    def __init__(
        self, *, var_dir: Path, cwd: Path, say: Callable[[str], None], grace_seconds: float = GRACE_SECONDS
    ) -> None:
        self.var_dir, self.cwd, self.say, self.grace_seconds = var_dir, cwd, say, grace_seconds
        self.children: dict[str, Child] = {}
        self.signals = 0
        self._signalled_at = float("-inf")
        self._parent_watch: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # we adopt orphaned grandchildren
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        self._parent_watch = subprocess.Popen(
            processes.python("-m", "victoryline.parent_watch", str(min(self.grace_seconds, SHORT_GRACE_SECONDS))),
            cwd=self.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._parent_watch and self._parent_watch.stdin:
            self._notify_parent_watch(parent_watch.GOODBYE)
            with suppress(BrokenPipeError):
                self._parent_watch.stdin.close()
            self._parent_watch.wait()

    @property
    def stopping(self) -> bool:
        return self.signals > 0

    def start(self, child: Child) -> None:
        self.children[child.name] = child
        folder = self.var_dir / "log"
        folder.mkdir(parents=True, exist_ok=True)
        child.log = RotatingFileHandler(
            folder / f"{child.name}.log", maxBytes=FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8"
        )
        self._launch(child)

    def watch(self, *, until: Callable[[], bool] = lambda: False, every_seconds: float = 0.1) -> None:
        """Restarts children that die, until a signal comes or `until` is true."""
        while not self.stopping and not until():
            for child in self.children.values():
                self._restart_if_dead(child)
            self._reap_adopted()
            time.sleep(every_seconds)

    def stop(self) -> None:
        """Stops all children: SIGTERM, then SIGKILL after the grace time or at a second signal."""
        self.say("stopping; Ctrl-C once more stops at once")
        self._end([child for child in self.children.values() if child.stops_first], self.grace_seconds)
        others = [child for child in self.children.values() if not child.stops_first]
        self._end(others, min(self.grace_seconds, SHORT_GRACE_SECONDS))
        self._kill_remains(*self.children.values())
        for child in self.children.values():
            if child.log:
                child.log.close()
        self.children.clear()

    def _end(self, children: list[Child], seconds: float) -> None:
        """Sends SIGTERM and waits; `_kill_remains` deals with what is left afterwards."""
        for child in children:
            if child.process:
                child.process.terminate()  # not its group: it stops its own children, a browser after its last page
        deadline = time.monotonic() + seconds
        while left := [child for child in children if child.process and child.process.poll() is None]:
            if time.monotonic() >= deadline or self.signals >= 2:
                break
            time.sleep(0.05)
        for child in left:
            self.say(f"{child.name} did not stop in time and is killed")

    def _restart_if_dead(self, child: Child) -> None:
        now = time.monotonic()
        if child.process is None:
            if now >= child.restart_at:
                self._launch(child)
        elif (code := child.process.poll()) is not None:
            if now - child.started_at >= STEADY_AFTER_SECONDS:
                child.delay_seconds = FIRST_DELAY_SECONDS
            self.say(f"{child.name} ended ({_reason(code)}); starting it again in {child.delay_seconds:.1f} s")
            self._kill_remains(child)
            child.restart_at = now + child.delay_seconds
            child.delay_seconds = min(child.delay_seconds * 2, LONGEST_DELAY_SECONDS)

    def _launch(self, child: Child) -> None:
        child.temp_dir = processes.short_temp_dir(self.var_dir / "tmp" / child.name)
        processes.mark_as_own(child.temp_dir)
        self._notify_parent_watch(str(child.temp_dir))
        child.process = processes.spawn(
            child.command,
            env={**os.environ, **child.env, "TMPDIR": str(child.temp_dir), "PYTHONUNBUFFERED": "1"},
            cwd=self.cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        child.started_at = time.monotonic()
        name = f"log of {child.name}"
        threading.Thread(target=self._copy_output, args=(child, child.process.stdout), name=name, daemon=True).start()

    def _copy_output(self, child: Child, pipe: IO[bytes]) -> None:
        """Writes a child's output to its log file until the last writer of the pipe is gone."""
        assert child.log is not None
        with pipe:
            for raw in iter(lambda: pipe.readline(LONGEST_LINE), b""):
                line = raw.decode("utf-8", errors="replace").rstrip()
                child.log.emit(logging.makeLogRecord({"msg": line}))
                if shown := for_terminal(line):
                    self.say(f"{child.name:8} {shown}")

    def _kill_remains(self, *children: Child) -> None:
        """Kills what is left of the children's process groups and descendants, and removes their folders."""
        for child in children:
            if child.process:
                processes.signal_group(child.process.pid, signal.SIGKILL)
                child.process.wait()
            child.process = None
        folders = [child.temp_dir for child in children if child.temp_dir]
        deadline = time.monotonic() + 1
        # Orphaned Chromium processes lead their own groups; TMPDIR identifies their former parent.
        while (strays := parent_watch.using(folders)) and time.monotonic() < deadline:
            parent_watch.kill_trees(strays)
            self._reap_adopted()
            time.sleep(0.02)
        for folder in folders:
            processes.remove_tree(folder)

    def _reap_adopted(self) -> None:
        """Reaps dead orphans; the exit codes of our own children stay untouched."""
        own = {child.process.pid for child in self.children.values() if child.process}
        if self._parent_watch:
            own.add(self._parent_watch.pid)
        with suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if ended.si_pid in own:
                    return
                os.waitpid(ended.si_pid, os.WNOHANG)

    def _notify_parent_watch(self, line: str) -> None:
        if self._parent_watch and self._parent_watch.stdin:
            with suppress(BrokenPipeError):
                self._parent_watch.stdin.write(f"{line}\n".encode())
                self._parent_watch.stdin.flush()

    def _on_signal(self, _: int, __: FrameType | None) -> None:
        # No print: a handler can interrupt a print that is under way.
        now = time.monotonic()
        if now - self._signalled_at > ONE_SIGNAL_SECONDS:
            self.signals += 1
        self._signalled_at = now


def _reason(code: int) -> str:
    if code == STALLED_EXIT_CODE:
        return "it had stalled; its log says where"
    if code == TOO_LARGE_EXIT_CODE:
        return "it had grown past MEMORY_HARD_LIMIT_MB"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
