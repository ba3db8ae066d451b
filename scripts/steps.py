"""Shows what bootstrap is doing: one line a step, with its seconds. Standard library only."""

import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

SPEAK_EVERY_SECONDS = 20


class StepFailedError(Exception):
    """A step did not work; the message says what to do."""


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
    """Run quietly, saying now and then that it still goes on. False when it failed or said nothing for too long."""
    process = subprocess.Popen(
        [str(part) for part in command],
        env=dict(env) if env is not None else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    tail: deque[str] = deque(maxlen=25)
    heard = [time.monotonic()]
    reader = threading.Thread(target=_listen, args=(process, tail, heard), daemon=True)
    reader.start()
    spoke = time.monotonic()
    while process.poll() is None:
        now = time.monotonic()
        if now - heard[0] > silent_seconds:
            process.kill()
            tail.append(f"(ended: nothing heard for {silent_seconds:.0f} s)")
        if now - spoke > SPEAK_EVERY_SECONDS:
            spoke = now
            print(f"    ... {tail[-1][:100] if tail else 'still at it'}", flush=True)
        time.sleep(0.05)
    reader.join(timeout=2)
    if process.returncode != 0 and show_tail:
        print("\n".join(f"    | {line}" for line in tail), file=sys.stderr, flush=True)
    return process.returncode == 0


def _listen(process: "subprocess.Popen[bytes]", tail: deque[str], heard: list[float]) -> None:
    assert process.stdout is not None
    with process.stdout as output:
        for line in output:
            heard[0] = time.monotonic()
            text = line.decode(errors="replace").strip()
            if text and not text.startswith("WARNING"):
                tail.append(text)
