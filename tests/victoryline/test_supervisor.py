"""The supervisor with small test children, all of them real processes."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.patience import stretched, wait_for
from victoryline.configuration import PROJECT_ROOT
from victoryline.supervisor import ONE_SIGNAL_SECONDS

pytestmark = pytest.mark.slow

DRIVER = """
import sys
from pathlib import Path
from victoryline.supervisor import Child, Supervisor
var, grace, *children = sys.argv[1:]
say = lambda line: print(line, flush=True)
with Supervisor(var_dir=Path(var), cwd=Path.cwd(), say=say, grace_seconds=float(grace)) as it:
    for number, code in enumerate(children):
        it.start(Child(f"child{number}", [sys.executable, "-c", code], stops_first="stops first" in code))
    print("started", flush=True)
    it.watch()
"""
LISTENS = """
import os, signal, socket, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
server = socket.create_server(("127.0.0.1", 0)); print("port", server.getsockname()[1], "pid", os.getpid(), flush=True)
while True: time.sleep(0.05)
"""
IS_DEAF = LISTENS.replace("lambda *_: sys.exit(0)", "signal.SIG_IGN")
SLEEPS = "import time; time.sleep(600)"
# Like Chromium under its driver: in a session of its own, so that signals to the group miss it.
HAS_A_DETACHED_CHILD = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "{SLEEPS}"], start_new_session=True)
{LISTENS}
"""


class Running:
    def __init__(self, folder: Path, *children: str, grace: float = 2) -> None:
        self.folder = folder
        driver = folder / "driver.py"
        driver.write_text(textwrap.dedent(DRIVER))
        self.output = folder / "terminal"
        with self.output.open("wb") as terminal:
            self.process = subprocess.Popen(
                [sys.executable, driver, folder / "var", str(grace), *children],
                cwd=PROJECT_ROOT,
                env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT)},
                stdout=terminal,
                stderr=subprocess.STDOUT,
            )
        wait_for(lambda: "started" in self.output.read_text())
        wait_for(lambda: all(self.log(number).count("pid") for number in range(len(children))))
        self.everything = psutil.Process(self.process.pid).children(recursive=True)

    def log(self, number: int) -> str:
        path = self.folder / "var" / "log" / f"child{number}.log"
        return path.read_text() if path.exists() else ""

    def times_of(self, number: int, word: str) -> list[int]:
        words = self.log(number).split()
        return [int(words[at + 1]) for at, each in enumerate(words) if each == word]

    def alive(self) -> list[psutil.Process]:
        return [each for each in self.everything if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]

    def nothing_is_left(self) -> bool:
        return not self.alive() and not list((self.folder / "var" / "tmp").glob("*"))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def make(*children: str, grace: float = 2) -> Running:
        made.append(Running(tmp_path, *children, grace=grace))
        return made[-1]

    yield make
    for running in made:
        if running.process.poll() is None:
            running.everything += psutil.Process(running.process.pid).children(recursive=True)  # some began later
            running.process.kill()
        running.process.wait()
        for each in running.alive():
            each.kill()


class TestRestart:
    def test_starts_a_killed_child_again(self, start):
        running = start(LISTENS)
        os.kill(running.times_of(0, "pid")[0], signal.SIGKILL)
        wait_for(lambda: len(running.times_of(0, "pid")) == 2)
        assert "child0 ended (signal SIGKILL)" in running.output.read_text()

    def test_waits_longer_each_time(self, start):
        running = start(LISTENS)
        for count in (1, 2, 3):
            os.kill(running.times_of(0, "pid")[-1], signal.SIGKILL)
            wait_for(lambda count=count: len(running.times_of(0, "pid")) == count + 1)
        text = running.output.read_text()
        assert [f"in {delay} s" in text for delay in ("0.2", "0.4", "0.8")] == [True] * 3

    def test_ends_the_processes_of_a_dead_child(self, start):
        running = start(HAS_A_DETACHED_CHILD)
        (old,) = [each for each in running.everything if each.cmdline()[-1] == SLEEPS]
        os.kill(running.times_of(0, "pid")[0], signal.SIGKILL)
        wait_for(lambda: len(running.times_of(0, "pid")) == 2)
        assert not old.is_running()

    def test_leaves_other_children_alone(self, start):
        running = start(LISTENS, HAS_A_DETACHED_CHILD)
        os.kill(running.times_of(0, "pid")[0], signal.SIGKILL)
        wait_for(lambda: len(running.times_of(0, "pid")) == 2)
        assert len(running.times_of(1, "pid")) == 1
        assert len(running.alive()) == 3  # the parent watch, the second child and its own child


# They print the times of the signal and of their end.
PRINTS_ITS_END = """
import time
def leave(*_):
    print("signalled", time.monotonic_ns(), flush=True); time.sleep(0.5)
    print("ended", time.monotonic_ns(), flush=True); sys.exit(0)
"""
LEAVES_SLOWLY = PRINTS_ITS_END + LISTENS.replace("lambda *_: sys.exit(0)", "leave")


class TestStop:
    def test_a_child_that_stops_first_ends_before_the_others_are_signalled(self, start):
        """A read that is under way needs the source it reads from."""
        running = start(LEAVES_SLOWLY, "# stops first" + LEAVES_SLOWLY)
        running.process.terminate()
        running.process.wait(timeout=stretched(10))
        assert running.times_of(1, "ended")[0] <= running.times_of(0, "signalled")[0]
        assert running.nothing_is_left()

    @pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_everything(self, start, signal_number):
        running = start(LISTENS, HAS_A_DETACHED_CHILD)
        running.process.send_signal(signal_number)
        assert running.process.wait(timeout=stretched(10)) == 0
        assert running.nothing_is_left()

    def test_a_child_that_ignores_signals_is_killed_after_the_grace_time(self, start):
        running = start(IS_DEAF)
        began = time.monotonic()
        running.process.terminate()
        running.process.wait(timeout=stretched(10))
        assert time.monotonic() - began >= 2
        assert running.nothing_is_left()

    def test_a_second_signal_does_not_wait(self, start):
        running = start(IS_DEAF, grace=3600)
        running.process.send_signal(signal.SIGINT)
        time.sleep(ONE_SIGNAL_SECONDS + 0.1)  # signals closer together count as one
        running.process.send_signal(signal.SIGINT)
        running.process.wait(timeout=stretched(60))

    def test_sigkill_of_the_supervisor_leaves_nothing(self, start):
        running = start(LISTENS, IS_DEAF, HAS_A_DETACHED_CHILD)
        running.process.kill()
        running.process.wait()
        wait_for(running.nothing_is_left, seconds=10)


class TestLogs:
    def test_trouble_reaches_the_terminal_and_the_rest_stays_in_the_file(self, start):
        quiet = json.dumps({"level": "INFO", "event": "all quiet"})
        loud = json.dumps({"level": "ERROR", "event": "it broke", "match_id": "m1"})
        says = f"print({quiet!r})\nprint({loud!r}, flush=True)\n"
        running = start(says + LISTENS)
        wait_for(lambda: "it broke" in running.output.read_text())
        assert "child0   ERROR it broke (match_id=m1)" in running.output.read_text()
        assert "all quiet" not in running.output.read_text()
        assert "all quiet" in running.log(0)
