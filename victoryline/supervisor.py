"""Keeps the processes of the embedded system alive, and ends them together.

Guards against three things: a child that dies (restarted, slower each time), a child whose own children outlive it
(they would keep the port or a browser: ended before the restart), and the death of the supervisor itself (the kernel
tells the children, the warden sees to those that don't listen).
"""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Self

import psutil

from victoryline.lib import processes, warden
from victoryline.lib.child_logs import ChildLog
from victoryline.lib.watchdog import STALLED_EXIT_CODE, TOO_LARGE_EXIT_CODE

GRACE_SECONDS = 30.0  # a worker finishes what it has in hand; one that has nothing is gone in a second
# After the supervisor itself was killed: everything must be gone after 10 s, on a busy machine too.
WARDEN_GRACE_SECONDS = 6.0
FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 0.2, 10.0
STEADY_AFTER_SECONDS = 60.0
# A signal to a whole process group reaches us from several sides at once; that is one wish, not two.
ONE_SIGNAL_SECONDS = 1.0
PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Child:
    """One process to keep alive."""

    name: str
    command: list[str]
    env: Mapping[str, str] = field(default_factory=dict)
    stops_first: bool = False  # it finishes its work at a stop, and needs the others for that
    process: "subprocess.Popen[bytes] | None" = None
    started_at: float = 0.0
    restart_at: float = 0.0
    delay_seconds: float = FIRST_DELAY_SECONDS
    restarts: int = 0
    temp_dir: Path | None = None
    log: ChildLog | None = None


class Supervisor:
    """Start children with `start`, then `watch` until a signal comes.

    Use it from the main thread only: the kernel takes the end of the thread that started a child for its parent's end.
    """

    def __init__(
        self, *, var_dir: Path, cwd: Path, say: Callable[[str], None], grace_seconds: float = GRACE_SECONDS
    ) -> None:
        self.var_dir, self.cwd, self.say, self.grace_seconds = var_dir, cwd, say, grace_seconds
        self.children: dict[str, Child] = {}
        self.signals = 0
        self._signalled_at = float("-inf")
        self._warden: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphaned grandchildren come to us, not to init
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        self._warden = subprocess.Popen(
            processes.python("-m", "victoryline.lib.warden", str(min(self.grace_seconds, WARDEN_GRACE_SECONDS))),
            cwd=self.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._warden and self._warden.stdin:
            self._tell_warden(warden.FAREWELL)
            with suppress(BrokenPipeError):
                self._warden.stdin.close()
            self._warden.wait()

    @property
    def stopping(self) -> bool:
        return self.signals > 0

    def start(self, child: Child) -> None:
        self.children[child.name] = child
        child.log = ChildLog(child.name, self.var_dir / "log", self.say)
        self._launch(child)

    def watch(self, *, until: Callable[[], bool] = lambda: False, every_seconds: float = 0.1) -> None:
        """Restart what dies, until a signal comes or `until` is true."""
        while not self.stopping and not until():
            for child in self.children.values():
                self._tend(child)
            self._reap_adopted()
            time.sleep(every_seconds)

    def stop(self) -> None:
        """End everything: SIGTERM, then SIGKILL when the grace is over or a second signal comes."""
        self.say("stopping; Ctrl-C once more stops at once")
        self._end([child for child in self.children.values() if child.stops_first], self.grace_seconds)
        others = [child for child in self.children.values() if not child.stops_first]
        self._end(others, min(self.grace_seconds, WARDEN_GRACE_SECONDS))
        self._bury(*self.children.values())
        for child in self.children.values():
            if child.log:
                child.log.close()
        self.children.clear()

    def _end(self, children: list[Child], seconds: float) -> None:
        """Tell them to stop and wait; what is left afterwards is for the burial."""
        for child in children:
            if child.process:
                child.process.terminate()  # it alone: its own children are its to stop, a browser after its last page
        deadline = time.monotonic() + seconds
        while (left := _running(children)) and time.monotonic() < deadline and self.signals < 2:
            time.sleep(0.05)
        for child in left:
            self.say(f"{child.name} did not stop in time and is killed")

    def _tend(self, child: Child) -> None:
        now = time.monotonic()
        if child.process is None:
            if now >= child.restart_at:
                child.restarts += 1
                self._launch(child)
        elif (code := child.process.poll()) is not None:
            if now - child.started_at >= STEADY_AFTER_SECONDS:
                child.delay_seconds = FIRST_DELAY_SECONDS
            self.say(f"{child.name} ended ({_reason(code)}); starting it again in {child.delay_seconds:.1f} s")
            self._bury(child)
            child.restart_at = now + child.delay_seconds
            child.delay_seconds = min(child.delay_seconds * 2, LONGEST_DELAY_SECONDS)

    def _launch(self, child: Child) -> None:
        child.temp_dir = processes.short_temp_dir(self.var_dir / "tmp" / child.name)
        processes.mark_as_own(child.temp_dir)
        self._tell_warden(str(child.temp_dir))
        child.process = processes.spawn(
            child.command,
            env={**os.environ, **child.env, "TMPDIR": str(child.temp_dir), "PYTHONUNBUFFERED": "1"},
            cwd=self.cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        child.started_at = time.monotonic()
        assert child.process.stdout is not None
        assert child.log is not None
        child.log.follow(child.process.stdout)

    def _bury(self, *children: Child) -> None:
        """End what is left of the children's process groups and of what they had started, and remove their folders."""
        for child in children:
            if child.process:
                processes.signal_group(child.process.pid, signal.SIGKILL)
        for child in children:
            if child.process:
                child.process.wait()
            child.process = None
        folders = [child.temp_dir for child in children if child.temp_dir]
        self._end_strays({str(folder) for folder in folders})
        for folder in folders:
            processes.remove_tree(folder)

    def _end_strays(self, temp_dirs: set[str]) -> None:
        """Chromium leads a group of its own. Orphaned, it becomes our direct child; its TMPDIR tells whose it was."""
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            self._reap_adopted()
            strays = [each for each in psutil.Process().children() if warden.temp_dir_of(each) in temp_dirs]
            if not strays:
                return
            for process in {member for stray in strays for member in warden.tree(stray)}:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            time.sleep(0.02)

    def _reap_adopted(self) -> None:
        """Let go of dead processes that came to us as orphans; the exit codes of our own children stay untouched."""
        while ended := _peek_at_an_ended_child():
            if ended in {child.process.pid for child in self.children.values() if child.process}:
                return
            if self._warden and ended == self._warden.pid:
                return
            with suppress(ChildProcessError):
                os.waitpid(ended, os.WNOHANG)

    def _tell_warden(self, line: str) -> None:
        if self._warden and self._warden.stdin:
            with suppress(BrokenPipeError):
                self._warden.stdin.write(f"{line}\n".encode())
                self._warden.stdin.flush()

    def _on_signal(self, _: int, __: FrameType | None) -> None:
        # Nothing is printed here: a handler that prints can meet itself in the middle of a print.
        now = time.monotonic()
        if now - self._signalled_at > ONE_SIGNAL_SECONDS:
            self.signals += 1
        self._signalled_at = now


def _running(children: Iterable[Child]) -> list[Child]:
    return [child for child in children if child.process and child.process.poll() is None]


def _reason(code: int) -> str:
    if code == STALLED_EXIT_CODE:
        return "it had stalled; its log says where"
    if code == TOO_LARGE_EXIT_CODE:
        return "it had grown past MEMORY_HARD_LIMIT_MB"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _peek_at_an_ended_child() -> int | None:
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return found.si_pid if found else None
