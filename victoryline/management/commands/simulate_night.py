"""`manage.py simulate_night`: runs the system through a simulated match night, on a scratch database."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from victoryline.simulation import scratch
from victoryline.simulation.faults import LEVELS, USUAL

MAX_HOURS = 24.0
MAX_MATCHES = 200


class Command(BaseCommand):
    help = "Simulate a match night with its faults: ages, load, recoveries, alerts, and violated rules."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seed", type=int, default=1, help="The same seed is the same night (%(default)s).")
        parser.add_argument("--matches", type=int, default=6, help="Matches of the night (%(default)s).")
        parser.add_argument("--hours", type=float, default=0.5, help="Length of the night (%(default)s).")
        parser.add_argument("--faults", choices=LEVELS, default=USUAL, help="How much goes wrong (%(default)s).")
        parser.add_argument("--json", action="store_true", help="One JSON object instead of a table.")
        parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="Draw the night as well.")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 0 < options["matches"] <= MAX_MATCHES or not 0 < options["hours"] <= MAX_HOURS:
            raise CommandError(f"A night has 1 to {MAX_MATCHES} matches and lasts up to {MAX_HOURS:g} hours")
        _check_writable(options["plot"])
        names = ("seed", "matches", "hours", "faults")
        try:
            result = scratch.simulate(**{name: options[name] for name in names}, is_shown=True)
        except scratch.SimulationError as error:
            raise CommandError(f"The night could not be run to its end: {error}") from error
        self.stdout.write(json.dumps(result["document"]) if options["json"] else result["text"])
        if options["plot"]:
            options["plot"].write_text(result["svg"], encoding="utf-8")
        if result["document"]["violations"]:
            sys.exit(1)


def _check_writable(picture: Path | None) -> None:
    """Fails before the night begins: it may take minutes."""
    if picture is None:
        return
    if picture.is_dir() or not os.access(picture if picture.exists() else picture.absolute().parent, os.W_OK):
        raise CommandError(f"{picture} cannot be written. Name a file in an existing folder that you may write to")
