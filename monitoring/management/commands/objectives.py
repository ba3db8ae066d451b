"""`manage.py objectives`: reports whether the objectives for scraper uptime and data freshness were met."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitoring import objectives
from monitoring.objectives import Totals
from scraping.documents.queries import find_match

WORST = 10


class Command(BaseCommand):
    help = (
        f"Uptime (target {objectives.UPTIME_TARGET:.1%}: a scraper is not failing) and freshness (target "
        f"{objectives.FRESHNESS_TARGET:.0%}: data younger than {objectives.FRESH_SECONDS} s while a match is "
        f"polled at least every {objectives.IN_PLAY_SECONDS} s), from the health log. "
        "Reads only. Exit code 1 if one is missed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--hours", type=float, default=24.0, help="How far back (default %(default)g, most 168).")
        parser.add_argument("--match", help="Only this match, by its number or its key at a source.")
        parser.add_argument("--json", action="store_true", help="One JSON object instead of a table.")

    def handle(self, *args: Any, hours: float, match: str | None, **options: Any) -> None:
        if not 0 < hours <= 168:
            raise CommandError("--hours must be more than 0 and at most 168: the log goes back seven days.")
        end = timezone.now()
        start = end - timedelta(hours=hours)
        if match is None:
            found = {"all matches": objectives.totals(start, end), **_worst(objectives.by_match(start, end))}
        else:
            row = find_match(match)
            if row is None:
                raise CommandError(f"No match is known as {match[:100]}. GET /api/v1/matches lists those that are.")
            found = {match: objectives.totals(start, end, keys=[ref.key for ref in row.refs.select_related("source")])}
        self._print(found, is_json=options["json"])
        whole = next(iter(found.values()))
        if any(each.is_met is False for each in objectives.objectives_of(whole)):
            sys.exit(1)

    def _print(self, found: dict[str, Totals], *, is_json: bool) -> None:
        lines = [(of, each) for of, totals in found.items() for each in objectives.objectives_of(totals)]
        if is_json:
            rows = [
                {"of": of, "objective": each.name, "ratio": each.ratio, "target": each.target} for of, each in lines
            ]
            self.stdout.write(json.dumps({"objectives": rows}))
            return
        self.stdout.write(f"{'of':24} {'objective':10} {'measured':>9} {'target':>7} {'samples':>9}  result")
        for of, each in lines:
            ratio = "-" if each.ratio is None else f"{100 * each.ratio:.3f} %"
            target = f"{100 * each.target:.1f} %"
            self.stdout.write(f"{of[:24]:24} {each.name:10} {ratio:>9} {target:>7} {each.total:>9}  {each.result}")


def _worst(totals_by_match: dict[str, Totals]) -> dict[str, Totals]:
    """Returns the matches that missed an objective, the worst first, by the key that `--match` accepts."""
    missed = []
    for key, totals in totals_by_match.items():
        measured = [each for each in objectives.objectives_of(totals) if each.total]
        if any(not each.is_met for each in measured):
            missed.append((min((each.ratio or 0.0) / each.target for each in measured), key, totals))
    return {key: totals for _, key, totals in sorted(missed, key=lambda row: row[:2])[:WORST]}
