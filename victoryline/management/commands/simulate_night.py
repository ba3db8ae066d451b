"""`manage.py simulate_night`: a whole tournament night in seconds, with the real policies and a made-up world."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from victoryline.night import plot, report, scratch
from victoryline.night.engine import simulate
from victoryline.night.faults import LEVELS, USUAL
from victoryline.night.world import Script

LONGEST_HOURS = 24.0
MOST_MATCHES = 1000


class Command(BaseCommand):
    help = "Simulate a tournament night: ages, loads, alerts, recoveries, and whether anything was broken."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seed", type=int, default=1, help="The same seed is the same night (%(default)s).")
        parser.add_argument("--matches", type=int, default=24, help="Matches over the evening (%(default)s).")
        parser.add_argument("--hours", type=float, default=4.0, help="How long the night is (%(default)s).")
        parser.add_argument("--faults", choices=LEVELS, default=USUAL, help="What goes wrong (%(default)s).")
        parser.add_argument("--crowded", action="store_true", help="One source can be asked less than it has matches.")
        parser.add_argument(
            "--through-database",
            action="store_true",
            help="Live through it with the real steps on a scratch database as well, and compare. For short nights.",
        )
        parser.add_argument("--json", action="store_true", help="One JSON object instead of a table.")
        parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="Draw the night as well.")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 0 < options["matches"] <= MOST_MATCHES or not 0 < options["hours"] <= LONGEST_HOURS:
            raise CommandError(f"1 to {MOST_MATCHES} matches and up to {LONGEST_HOURS:g} hours, please")
        _refuse_place(options["plot"])
        script = Script(
            seed=options["seed"],
            matches=options["matches"],
            hours=options["hours"],
            faults=options["faults"],
            is_crowded=True if options["crowded"] else None,
        )
        if options["through_database"]:
            self._compare(script, is_json=options["json"])
            return
        story = simulate(script)
        if options["json"]:
            self.stdout.write(json.dumps(report.document(story)))
        else:
            self.stdout.write(report.text(story))
        if options["plot"]:
            options["plot"].write_text(plot.svg(story), encoding="utf-8")
        if story.violations:
            sys.exit(1)

    def _compare(self, script: Script, *, is_json: bool) -> None:
        try:
            found = scratch.compared(seed=script.seed, matches=script.matches, hours=script.hours, faults=script.faults)
        except scratch.ScratchError as error:
            raise CommandError(f"the night could not be lived through: {error}") from error
        self.stdout.write(json.dumps(found) if is_json else report.comparison(found))
        if found["differences"]:
            sys.exit(1)


def _refuse_place(picture: Path | None) -> None:
    """Before the night begins, not after it: it may take minutes."""
    if picture is None:
        return
    if picture.is_dir() or not os.access(picture if picture.exists() else picture.absolute().parent, os.W_OK):
        raise CommandError(f"{picture} cannot be written. Name a file in a folder that is there and yours.")
