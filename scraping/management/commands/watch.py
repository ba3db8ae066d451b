"""Watched matches as a table for the engineer on call: stalest first, with interval and reason."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from django.core.management.base import BaseCommand
from django.db import close_old_connections
from django.utils import timezone

from scraping.documents import watch_records
from scraping.documents.watch_records import WatchRecord, silence_words
from scraping.models import Importance

FRESH_SECONDS, OLD_SECONDS = 10.0, 60.0
LONGEST_TITLE, LONGEST_REASON = 34, 40
HEADINGS = ("MATCH", "TITLE", "PRIORITY", "IMPORTANCE", "AGE", "EVERY", "WHY", "NEXT", "ERRORS", "SOURCES", "STATE")
CLEAR = "\x1b[H\x1b[2J"
COLOURS = {"red": "31", "green": "32", "yellow": "33", "bold": "1"}


@dataclass(frozen=True)
class Cell:
    text: str
    colour: str = ""
    is_number: bool = False  # aligned to the right


class Command(BaseCommand):
    help = "Show the watched live matches, stalest first; refreshed until Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="Print it once.")
        parser.add_argument("--json", action="store_true", help="Once, as one JSON list.")
        parser.add_argument(
            "--all", action="store_true", help="Include upcoming matches, and completed ones that are still read."
        )
        parser.add_argument("--paused", action="store_true", help="Only paused matches.")
        parser.add_argument("--every", type=float, default=2.0, help="Seconds between two refreshes. Default: 2.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["json"]:
            found = [one.document() for one in _found(options, timezone.now())]
            self.stdout.write(orjson.dumps(found, option=orjson.OPT_UTC_Z).decode())
            return
        if options["once"]:
            self._show(options)
            return
        try:
            while True:
                self._show(options, before=CLEAR if self.stdout.isatty() else "")
                close_old_connections()
                time.sleep(max(0.2, options["every"]))
        except KeyboardInterrupt:
            return

    def _show(self, options: dict[str, Any], *, before: str = "") -> None:
        now = timezone.now()
        found = _found(options, now)
        lines = [summary(found, now)]
        if found:
            lines += table(HEADINGS, [row(one, now) for one in found], is_coloured=self.stdout.isatty())
        self.stdout.write(before + "\n".join(lines))
        self.stdout.flush()


def _found(options: dict[str, Any], now: datetime) -> list[WatchRecord]:
    if options["paused"]:
        return watch_records.paused(now)
    return watch_records.stalest_first(now) if options["all"] else watch_records.live(now)


def summary(found: list[WatchRecord], now: datetime) -> str:
    if not found:
        return (
            f"{now:%H:%M:%S} UTC  nothing to watch: no such match is known. `manage.py watch --all` shows the others."
        )
    ages = [one.age_seconds for one in found if one.age_seconds is not None]
    counted = {
        "silent": sum(bool(one.rung) for one in found),
        "frozen": sum(one.frozen_at is not None for one in found),
        "paused": sum(one.is_paused for one in found),
        "never read": sum(one.age_seconds is None for one in found),
    }
    words = [f"{len(found)} {'match' if len(found) == 1 else 'matches'}", f"oldest {_seconds(max(ages, default=None))}"]
    return f"{now:%H:%M:%S} UTC  " + ", ".join([*words, *(f"{n} {name}" for name, n in counted.items() if n)])


def table(headings: Sequence[str], rows: Sequence[Sequence[Cell]], *, is_coloured: bool) -> list[str]:
    """Returns aligned columns, coloured on a terminal only."""
    lines = [[Cell(heading, "bold", rows[0][place].is_number) for place, heading in enumerate(headings)], *rows]
    widths = [max(len(line[place].text) for line in lines) for place in range(len(headings))]

    def shown(cell: Cell, width: int) -> str:
        text = cell.text.rjust(width) if cell.is_number else cell.text.ljust(width)
        return f"\x1b[{COLOURS[cell.colour]}m{text}\x1b[0m" if is_coloured and cell.colour and cell.text else text

    return ["  ".join(map(shown, line, widths)).rstrip() for line in lines]


def row(one: WatchRecord, now: datetime) -> tuple[Cell, ...]:
    late, age = one.next_poll_in is not None and one.next_poll_in < 0, one.age_seconds
    next_poll = "-" if one.next_poll_in is None else f"{'late ' if late else ''}{_seconds(abs(one.next_poll_in))}"
    is_very_late = one.next_poll_in is not None and one.next_poll_in < -OLD_SECONDS
    if age is None or one.is_paused:
        age_colour = "yellow"
    else:
        age_colour = "green" if age <= FRESH_SECONDS else "yellow" if age <= OLD_SECONDS else "red"
    state = silence_words(one.rung, one.rung_at, one.frozen_at, now)
    if one.is_paused:
        state = f"paused until {one.pause_until:%H:%M:%S}: {_cut(one.pause_reason, LONGEST_REASON)}"
    return (
        Cell(one.keys[0] if one.keys else str(one.match_id)),
        Cell(_cut(one.title, LONGEST_TITLE)),
        Cell(one.priority.name.lower()),
        Cell(
            one.importance.name.lower() + ("!" if one.is_importance_fixed else ""),
            "bold" if one.importance == Importance.HIGH else "",
        ),
        Cell(_seconds(age), age_colour, is_number=True),
        Cell(_seconds(one.interval_seconds), is_number=True),
        Cell(_cut(one.pace_reason, LONGEST_REASON)),
        Cell(next_poll, "yellow" if is_very_late else "", is_number=True),
        Cell(
            f"{one.consecutive_failures}" + (f" +{one.errors:.0f}" if one.errors >= 1 else ""),
            "red" if one.consecutive_failures else "",
            is_number=True,
        ),
        Cell("+".join(one.sources) or "none"),
        Cell(state, "red" if one.frozen_at else "yellow"),
    )


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _cut(text: str, most: int) -> str:
    plain = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"
