"""Progress of bootstrap: one line per step, with its duration. Standard library only."""

import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

REPORT_EVERY_SECONDS = 20


class StepFailedError(Exception):
    """A step failed; the message has a remedy."""


@contextmanager
def step(title: str) -> Iterator[None]:
    started = time.monotonic()
    print(f"  {title} ...", flush=True)
    yield
    print(f"  {title}: done in {time.monotonic() - started:.1f} s", flush=True)


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    silent_seconds: float = 600,
    show_tail: bool = True,
) -> bool:
    """Runs a command, reports progress now and then, and returns False if it failed or was silent for too long."""
    process = subprocess.Popen(
        [str(part) for part in command],
        env=dict(env) if env is not None else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    tail: deque[str] = deque(maxlen=25)
    last_output = [time.monotonic()]
    reader = threading.Thread(target=_read_output, args=(process, tail, last_output), daemon=True)
    reader.start()
    reported = time.monotonic()
    while process.poll() is None:
        now = time.monotonic()
        if now - last_output[0] > silent_seconds:
            process.kill()
            tail.append(f"(ended: no output for {silent_seconds:.0f} s)")
        if now - reported > REPORT_EVERY_SECONDS:
            reported = now
            print(f"    ... {tail[-1][:100] if tail else 'still running'}", flush=True)
        time.sleep(0.05)
    reader.join(timeout=2)
    if process.returncode != 0 and show_tail:
        print("\n".join(f"    | {line}" for line in tail), file=sys.stderr, flush=True)
    return process.returncode == 0


def _read_output(process: "subprocess.Popen[bytes]", tail: deque[str], last_output: list[float]) -> None:
    assert process.stdout is not None
    with process.stdout as output:
        for line in output:
            last_output[0] = time.monotonic()
            text = line.decode(errors="replace").strip()
            if text and not text.startswith("WARNING"):
                tail.append(text)
