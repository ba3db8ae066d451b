"""Stop signals at bad moments, sent to real processes, one of them a web server."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from scripts.test import clean_environment
from tests.patience import stretched, wait_for
from tests.processes import end_group
from tests.servers import free_port
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python, spawn

# The main thread sleeps as those of granian's processes do; the signal is given to another thread, so it is not woken.
SLEEPER = """
import signal, sys, threading
from victoryline import web_stop_signals
stopped = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopped.set())
if sys.argv[1] == "awake":
    web_stop_signals.wake_main_thread_at_signals()
threading.Timer(0.5, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM)).start()
stopped.wait()
print("stopped")
"""
SLOW_TO_LOAD = """
from victoryline import web_stop_signals
web_stop_signals.install()
import pathlib, time
pathlib.Path("loading").touch()
time.sleep(60)
application = None
"""


class TestMainThreadAsleep:
    def test_signals_are_handled(self) -> None:
        assert _sleep("awake", seconds=30) == "stopped\n"

    def test_without_the_guard_it_is_missed(self) -> None:
        """If this fails, the guard is no longer needed."""
        with pytest.raises(subprocess.TimeoutExpired):
            _sleep("", seconds=4)


@pytest.mark.slow
def test_a_loading_process_ends_at_once(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW_TO_LOAD)
    env = {**os.environ, **clean_environment(), "PYTHONPATH": str(PROJECT_ROOT)}
    command = ("-m", "granian", "--interface", "wsgi", "slow:application", "--port", str(free_port()))
    with (tmp_path / "web.log").open("wb") as log:
        web = spawn(python(*command, "--workers-kill-timeout", "30"), cwd=tmp_path, env=env, stdout=log, stderr=log)
    try:
        wait_for((tmp_path / "loading").exists, seconds=30, what="it is loading")
        web.send_signal(signal.SIGTERM)
        web.wait(stretched(15))
    finally:
        end_group(web, grace_seconds=1)
    assert "refused to gracefully stop" not in (tmp_path / "web.log").read_text()


def _sleep(how: str, *, seconds: float) -> str:
    command = python("-c", SLEEPER, how)
    return subprocess.run(command, cwd=PROJECT_ROOT, capture_output=True, text=True, check=True, timeout=seconds).stdout
