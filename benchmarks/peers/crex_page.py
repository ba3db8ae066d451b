"""Extraction of a match page by the peers, and their output. Runs in their environments: only the standard library.

The same data that VictoryLine reads: teams, scores, last ball, and the newest page of balls.
"""

import json
import time
from pathlib import Path
from typing import Any

BLOCKED_TYPES = {"image", "media", "font", "stylesheet"}
CODES = (("&g;", ">"), ("&l;", "<"), ("&s;", "'"), ("&q;", '"'), ("&a;", "&"))  # as decoded by the script of the page
ARGUMENTS = ["--disable-gpu", "--disable-extensions", "--disable-dev-shm-usage", "--mute-audio"]


def state_of(blob: str) -> dict[str, Any]:
    """Parses the text of the page's data blob (`script#app-root-state`)."""
    for code, character in CODES:
        blob = blob.replace(code, character)
    state = json.loads(blob)
    live = next(value for name, value in state.items() if name.endswith("/getSV3"))
    feed = next(value for name, value in state.items() if name.endswith("/getBallFeeds"))
    return {"teams": live["a"], "scores": [live["j"], live["k"]], "last_ball": live["B"], "events": len(feed)}


class Window:
    """The measured time: begins after two visits per page, so that browser and pages are warm.

    Writes one JSON line per visit, and one with start and end of the window.
    """

    def __init__(self, output: Path, *, seconds: float, pages: int) -> None:
        self._output = output
        self._seconds, self._pages = seconds, pages
        self._done, self._began = 0, 0.0

    def read(self, key: str, asked_at: float, blob: str) -> None:
        try:
            self._write(key=key, asked_at=asked_at, **state_of(blob))
        except (ValueError, KeyError, IndexError, TypeError, StopIteration) as error:
            self.failed(key, f"{type(error).__name__}: {error}")

    def failed(self, key: str, error: str) -> None:
        self._write(key=key, error=error[:300])

    def is_over(self) -> bool:
        """Call it once after each visit."""
        self._done += 1
        now = time.time()
        if not self._began and self._done >= 2 * self._pages:
            self._began = now
            self._write(window=[now, now + self._seconds])
        return bool(self._began) and now > self._began + self._seconds

    def _write(self, **line: Any) -> None:
        with self._output.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"at": time.time(), **line}) + "\n")
