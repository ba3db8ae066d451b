"""Where a followed match is shown: a terminal with a line that lives, plain lines for a pipe, or JSON for a program."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Mapping
from typing import Any, Protocol, Self, TextIO

from victoryline_client import words
from victoryline_client.answers import Freshness
from victoryline_client.errors import ClientError, Problem, clean
from victoryline_client.following import Change

ERASE, BOLD, YELLOW, PLAIN = "\r\x1b[K", "\x1b[1m", "\x1b[33m", "\x1b[0m"
TICK_SECONDS = 1.0
SHOWN_FIELDS = frozenset({"score", "status", "phase", "result", "innings", "title", "lifecycle"})


class Screen(Protocol):
    def show(self, change: Change) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class JsonScreen:
    """One object a line: a change, or trouble. The first has the whole match in `changed`."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, change: Change) -> None:
        told = {
            "sequence": change.sequence,
            "is_whole": change.is_whole,
            "changed": change.changed,
            "removed": list(change.removed),
            "events": list(change.events),
            "next_since": change.next_since,
            "freshness": freshness_document(change.freshness),
            "trouble": None if change.trouble is None else trouble_document(change.trouble),
        }
        self._out.write(json.dumps(told, ensure_ascii=True) + "\n")
        self._out.flush()


def freshness_document(freshness: Freshness) -> dict[str, Any]:
    age = freshness.age_now()
    return {
        "state": freshness.state,
        "age_seconds": None if age is None else round(age, 1),
        "scraped_at": None if freshness.scraped_at is None else freshness.scraped_at.isoformat(),
        "next_update_in": freshness.next_update_in,
        "is_from_cache": freshness.is_from_cache,
    }


def trouble_document(error: ClientError) -> dict[str, Any]:
    if isinstance(error, Problem):
        return {"code": error.code, "detail": error.detail, "request_id": error.request_id}
    return {"code": "unreachable", "detail": str(error)}


class PlainScreen:
    """A line for each event, for each new score, and for each turn of the state. `past`: events shown at the start."""

    is_coloured = False

    def __init__(self, out: TextIO, *, past: int = 5) -> None:
        self._out, self._past = out, past
        self._state = ""
        self._is_troubled = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, change: Change) -> None:
        lines = [*self._trouble(change), *self._news(change)]
        if change.trouble is None:
            lines += self._turn(change.freshness)
        self.write(lines)

    def write(self, lines: list[str]) -> None:
        if lines:
            self._out.write("".join(f"{line}\n" for line in lines))
            self._out.flush()

    def _trouble(self, change: Change) -> list[str]:
        """Said once, and once when it is over."""
        was, self._is_troubled = self._is_troubled, change.trouble is not None
        if change.trouble is not None:
            return [] if was else [self._marked(words.trouble_words(change.trouble), YELLOW)]
        return ["The server answers again."] if was else []

    def _news(self, change: Change) -> list[str]:
        is_first = change.is_whole and not self._state
        events = [row for row in change.events if row.get("is_critical", True) or row.get("action") != "add"]
        if is_first:
            events = sorted(events, key=words.place_in_match)[max(0, len(events) - self._past) :]
        else:  # what is new as it happened, then what changed about the rest
            events.sort(key=lambda row: (row.get("action") != "add", words.place_in_match(row)))
        lines = [self._event(row) for row in events]
        if is_first:
            lines = [self._marked(words.title_words(change.document), BOLD), *lines]
        if self.shows_scores and (is_first or SHOWN_FIELDS & change.changed.keys()):
            lines.append(words.status_words(change.document, change.freshness))
        return lines

    shows_scores = True

    def _event(self, row: Mapping[str, Any]) -> str:
        is_correction = row.get("action") in ("update", "retract")
        text = words.event_words(row)
        return self._marked(text, YELLOW) if is_correction else text

    def _turn(self, freshness: Freshness) -> list[str]:
        was, self._state = self._state, freshness.state
        if was == freshness.state:
            return []
        if freshness.warning:
            return [self._marked(f"{freshness.state.capitalize()}: {clean(freshness.warning)}", YELLOW)]
        return ["The data is fresh again."] if was in ("stale", "frozen", "paused") else []

    def _marked(self, text: str, mark: str) -> str:
        return f"{mark}{text}{PLAIN}" if self.is_coloured else text


class LiveScreen(PlainScreen):
    """Events scroll by; below them one line has the score, and its age, which a thread counts up every second."""

    shows_scores = False

    def __init__(self, out: TextIO, *, past: int = 5, is_coloured: bool = True) -> None:
        super().__init__(out, past=past)
        self.is_coloured = is_coloured
        self._latest: Change | None = None
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="victoryline-age", daemon=True)

    def __enter__(self) -> Self:
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._ticker.join(TICK_SECONDS)
        with self._lock:
            self._out.write("\n" if self._latest else "")
            self._out.flush()

    def show(self, change: Change) -> None:
        with self._lock:
            self._out.write(ERASE)
            self._latest = change
            super().show(change)
            self._draw()

    def _tick(self) -> None:
        while not self._is_over.wait(TICK_SECONDS):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        if self._latest is None or not self._latest.document:
            return
        before = "no answer · " if self._latest.trouble is not None else ""
        width = max(20, shutil.get_terminal_size().columns - 1) - len(before)
        text = before + words.status_line(self._latest.document, self._latest.freshness, width)
        is_bad = self._latest.trouble is not None or bool(self._latest.freshness.warning)
        self._out.write(ERASE + self._marked(text, YELLOW if is_bad else BOLD))
        self._out.flush()
