"""`manage.py replay`: replays recorded matches through a private system and compares the outcome."""

from __future__ import annotations

import json
import tempfile
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from stadium.config import CRICKET_SITES
from stadium.matches.clock import MAX_PACE
from stadium.replay.comparison import ReplayResult
from stadium.replay.player import ReplayError, ReplayPlan, play, recordings_in, summary
from stadium.replay.recording import InvalidRecordingError
from victoryline.lib.processes import remove_tree

LIMITS = {"speed": (1, MAX_PACE), "mistakes": (0, 1), "outage": (0, 3600)}


class Command(BaseCommand):
    help = (
        "Play recorded matches (Cricsheet JSON) as live ones: the stadium shows them, a private system reads them with "
        "its browser, and the data of its API are compared with the recording, ball by ball. The configured "
        "database is not changed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("recording", type=Path, help="A recording, or a folder of recordings.")
        parser.add_argument("--speed", type=float, default=300.0, help="Times real time (%(default)s).")
        sites = f"Sites that show them, the exact one first (%(default)s): {', '.join(CRICKET_SITES)}."
        parser.add_argument("--sites", default="crex", help=sites)
        parser.add_argument(
            "--outage", type=float, default=0.0, metavar="SECONDS", help="Outage of all sites in mid-match."
        )
        parser.add_argument(
            "--mistakes",
            type=float,
            default=0.0,
            metavar="SHARE",
            help="Share of balls that all sites except the first show wrongly.",
        )
        parser.add_argument("--into", type=Path, help="Keep the scratch database and logs in this new folder.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object at the end.")

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path | None = options["into"]
        if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise CommandError(f"{folder} is not an empty folder; nothing was written. Choose a new one.")
        for name, (least, most) in LIMITS.items():
            if not least <= options[name] <= most:
                raise CommandError(f"--{name} is {options[name]:g}; it must be from {least:g} to {most:g}")
        sites = tuple(site.strip() for site in options["sites"].split(",") if site.strip())
        if unknown := [site for site in sites if site not in CRICKET_SITES]:
            raise CommandError(f"--sites: {', '.join(unknown)} is none of {', '.join(CRICKET_SITES)}")
        if not sites:
            raise CommandError(f"--sites is empty; name one or more of {', '.join(CRICKET_SITES)}")
        path: Path = options["recording"].resolve()
        if not path.exists():
            raise CommandError(f"There is no {path}; nothing was started.")
        scratch = folder or Path(tempfile.mkdtemp(prefix="vl-replay-"))
        try:
            plan = ReplayPlan(
                tuple(recordings_in(path)), options["speed"], sites, options["outage"], options["mistakes"]
            )
            results = play(plan, scratch.resolve(), log=self.stderr.write)
        except (InvalidRecordingError, ReplayError) as error:
            raise CommandError(str(error)) from error
        finally:
            if folder is None:
                remove_tree(scratch)
        if options["json"]:
            self.stdout.write(json.dumps({**summary(results), "matches": [asdict(one) for one in results]}))
        else:
            self._table(results)
        if not all(one.is_correct for one in results):
            raise CommandError("The served data differ from the recordings.")

    def _table(self, results: list[ReplayResult]) -> None:
        names = ("expected", "present", "missing", "doubled", "wrong", "overs", "corrections")
        width = max(len(one.name) for one in results)
        self.stdout.write(f"{'match':{width}}  " + "  ".join(f"{name:>11}" for name in names))
        for one in results:
            figures = "  ".join(f"{getattr(one, name):>11}" for name in names)
            self.stdout.write(f"{one.name:{width}}  {figures}  {'right' if one.is_correct else 'WRONG'}")
            for text in one.differences:
                self.stdout.write(f"{'':{width}}    {text}")
