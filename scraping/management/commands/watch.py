"""Watched matches as a table for the engineer on call: stalest first, with interval and reason."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand
from django.db import close_old_connections
from django.utils import timezone

from scraping.documents import watch_records
from scraping.models import Importance, Match, MatchLifecycle, Priority, Source
from scraping.payloads import Status
from scraping.policies.error_slowdown import Slowdown

FRESH_SECONDS, OLD_SECONDS = 10.0, 60.0
LONGEST_TITLE, LONGEST_REASON, LONGEST_LINE = 34, 40, 160
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
        parser.add_argument(
            "--all", action="store_true", help="Include upcoming matches, and completed ones that are still read."
        )
        parser.add_argument("--json", action="store_true", help="Print it once, as one JSON object.")
        parser.add_argument("--paused", action="store_true", help="Only paused matches.")
        parser.add_argument("--every", type=float, default=2.0, help="Seconds between two refreshes. Default: 2.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["json"]:
            now = timezone.now()
            rows = [dict(zip(HEADINGS, (cell.text for cell in row(one, now)), strict=True)) for one in _found(options)]
            self.stdout.write(json.dumps({"matches": rows}))
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
        found = _found(options)
        lines = [summary(found, now), *map(request_mode, Source.objects.exclude(request_mode=""))]
        if found:
            lines += table(HEADINGS, [row(one, now) for one in found], is_coloured=self.stdout.isatty())
        self.stdout.write(before + "\n".join(lines))
        self.stdout.flush()


def _found(options: dict[str, Any]) -> list[Match]:
    if options["paused"]:
        return watch_records.paused()
    return watch_records.stalest_first(**({} if options["all"] else {"status": Status.LIVE}))


def summary(found: list[Match], now: datetime) -> str:
    if not found:
        return (
            f"{now:%H:%M:%S} UTC  nothing to watch: no such match is known. `manage.py watch --all` shows the others."
        )
    ages = [age for one in found if (age := one.age_seconds(now)) is not None]
    counted = {
        "silent": sum(bool(one.silence_rung) for one in found),
        "frozen": sum(one.frozen_at is not None for one in found),
        "paused": sum(one.lifecycle == MatchLifecycle.PAUSED for one in found),
        "never read": len(found) - len(ages),
    }
    words = [f"{len(found)} {'match' if len(found) == 1 else 'matches'}", f"oldest {_seconds(max(ages, default=None))}"]
    return f"{now:%H:%M:%S} UTC  " + ", ".join([*words, *(f"{n} {name}" for name, n in counted.items() if n)])


def request_mode(source: Source) -> str:
    """Returns a line about a source that refuses direct requests."""
    return f"{source.key}: {_cut(source.learned_mode, LONGEST_LINE)}"


def table(headings: Sequence[str], rows: Sequence[Sequence[Cell]], *, is_coloured: bool) -> list[str]:
    """Returns aligned columns, coloured on a terminal only."""
    lines = [[Cell(heading, "bold", rows[0][place].is_number) for place, heading in enumerate(headings)], *rows]
    widths = [max(len(line[place].text) for line in lines) for place in range(len(headings))]

    def shown(cell: Cell, width: int) -> str:
        text = cell.text.rjust(width) if cell.is_number else cell.text.ljust(width)
        return f"\x1b[{COLOURS[cell.colour]}m{text}\x1b[0m" if is_coloured and cell.colour and cell.text else text

    return ["  ".join(map(shown, line, widths)).rstrip() for line in lines]


def row(match: Match, now: datetime) -> tuple[Cell, ...]:
    refs, is_paused, age = match.refs.all(), match.lifecycle == MatchLifecycle.PAUSED, match.age_seconds(now)
    polled, next_at = watch_records.next_poll(match)
    wait = (next_at - now).total_seconds() if next_at else None
    next_poll = "-" if wait is None else f"{'late ' if wait < 0 else ''}{_seconds(abs(wait))}"
    if age is None or is_paused:
        age_colour = "yellow"
    else:
        age_colour = "green" if age <= FRESH_SECONDS else "yellow" if age <= OLD_SECONDS else "red"
    state = watch_records.silence_text(match, now)
    if is_paused:
        state = f"paused until {match.pause_until:%H:%M:%S}: {_cut(match.pause_reason, LONGEST_REASON)}"
    failures = match.consecutive_failure_count
    errors = sum(Slowdown.of(ref).level_after_decay(now) for ref in refs)  # those that have not decayed
    return (
        Cell(refs[0].key if refs else str(match.pk)),
        Cell(_cut(match.title, LONGEST_TITLE)),
        Cell(Priority(match.priority).name.lower()),
        Cell(
            Importance(match.importance).name.lower() + ("!" if match.is_importance_fixed else ""),
            "bold" if match.importance == Importance.HIGH else "",
        ),
        Cell(_seconds(age), age_colour, is_number=True),
        Cell(_seconds(polled.polling_interval_seconds if polled else None), is_number=True),
        Cell(_cut(polled.pace_reason if polled else "", LONGEST_REASON)),
        Cell(next_poll, "yellow" if wait is not None and wait < -OLD_SECONDS else "", is_number=True),
        Cell(f"{failures}" + (f" +{errors:.0f}" if errors >= 1 else ""), "red" if failures else "", is_number=True),
        Cell("+".join(ref.source.key for ref in refs if ref.is_watched) or "none"),
        Cell(state, "red" if match.frozen_at else "yellow"),
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
