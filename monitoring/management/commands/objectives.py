"""`manage.py objectives`: was what was promised kept? Uptime of scrapers, and freshness of the data during play."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitoring import slo
from monitoring.slo import Tally
from scraping.documents.queries import find_match
from scraping.models import Match

WORST = 10


class Command(BaseCommand):
    help = (
        f"Uptime (target {slo.UPTIME_TARGET:.1%}: a scraper is not failing) and freshness (target "
        f"{slo.FRESHNESS_TARGET:.0%}: data younger than {slo.FRESH_SECONDS} s while a match is polled at least every "
        f"{slo.IN_PLAY_SECONDS} s), from the health log. Reads only. Ends with 1 if one is missed."
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
            found = {"all matches": slo.tally(start, end), **_worst(slo.by_match(start, end))}
        else:
            row = find_match(match)
            if row is None:
                raise CommandError(f"No match is known as {match[:100]}. GET /api/v1/matches lists those that are.")
            found = {match: slo.tally(start, end, match_id=row.pk)}
        self._tell(found, is_json=options["json"])
        whole = next(iter(found.values()))
        if any(each.is_met is False for each in slo.objectives(whole)):
            sys.exit(1)

    def _tell(self, found: dict[str, Tally], *, is_json: bool) -> None:
        lines = [(of, each) for of, tally in found.items() for each in slo.objectives(tally)]
        if is_json:
            rows = [
                {"of": of, "objective": each.name, "ratio": each.ratio, "target": each.target} for of, each in lines
            ]
            self.stdout.write(json.dumps({"objectives": rows}))
            return
        self.stdout.write(f"{'of':24} {'objective':10} {'measured':>9} {'target':>7} {'looks':>9}  verdict")
        for of, each in lines:
            ratio = "-" if each.ratio is None else f"{100 * each.ratio:.3f} %"
            target = f"{100 * each.target:.1f} %"
            self.stdout.write(f"{of[:24]:24} {each.name:10} {ratio:>9} {target:>7} {each.total:>9}  {each.verdict}")


def _worst(tallies: dict[int, Tally]) -> dict[str, Tally]:
    """Those that have missed something, the worst first."""
    missed = [
        (min((each.ratio or 0.0) / each.target for each in slo.objectives(tally) if each.total), match_id, tally)
        for match_id, tally in tallies.items()
        if any(each.is_met is False for each in slo.objectives(tally))
    ]
    worst = sorted(missed, key=lambda row: row[:2])[:WORST]
    known = Match.objects.prefetch_related("refs__source").in_bulk([match_id for _, match_id, _ in worst])
    return {_name(known.get(match_id), match_id): tally for _, match_id, tally in worst}


def _name(match: Match | None, match_id: int) -> str:
    """As `--match` and `manage.py watch` know it."""
    return next((ref.key for ref in match.refs.all()), f"match {match_id}") if match else f"match {match_id}"
