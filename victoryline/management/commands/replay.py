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
from stadium.replay.player import ReplayError, make_plan, play, summary, table
from stadium.replay.recording import InvalidRecordingError
from victoryline.lib.processes import remove_tree


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
        scratch = folder or Path(tempfile.mkdtemp(prefix="vl-replay-"))
        try:
            plan = make_plan(
                options["recording"],
                speed=options["speed"],
                sites=options["sites"],
                outage=options["outage"],
                mistakes=options["mistakes"],
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
            self.stdout.write("\n".join(table(results)))
        if not all(one.is_correct for one in results):
            raise CommandError("The served data differ from the recordings.")
