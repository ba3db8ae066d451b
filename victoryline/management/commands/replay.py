"""`manage.py replay`: recorded matches once more, through the whole system, into a scratch database."""

from __future__ import annotations

import json
import tempfile
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from victoryline.lib.processes import remove_tree
from victoryline.rehearsal.play import Script, play, recordings_in, summary
from victoryline.rehearsal.recording import BadRecordingError
from victoryline.rehearsal.system import RehearsalError
from victoryline.rehearsal.verdict import Verdict


class Command(BaseCommand):
    help = (
        "Play recorded matches (Cricsheet JSON) as live ones: the stadium shows them, a private system reads them with "
        "its browser, and what its API says in the end is held against the recording, ball by ball. Your own database "
        "is not touched."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("recording", type=Path, help="A file, or a folder of them.")
        parser.add_argument("--speed", type=float, default=300.0, help="Times life (%(default)s).")
        parser.add_argument("--sites", default="crex", help="Which sites show them, the best first (%(default)s).")
        parser.add_argument("--outage", type=float, default=0.0, metavar="SECONDS", help="All sites away, mid-match.")
        parser.add_argument(
            "--mistakes",
            type=float,
            default=0.0,
            metavar="SHARE",
            help="Of balls that all sites but the first get wrong.",
        )
        parser.add_argument("--into", type=Path, help="Keep the scratch database and logs in this new folder.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object at the end.")

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path | None = options["into"]
        if folder is not None and folder.exists() and any(folder.iterdir()):
            raise CommandError(f"{folder} is not empty; nothing was written. Choose a new folder.")
        if not 1 <= options["speed"] <= 20_000:
            raise CommandError(f"--speed is {options['speed']:g}; it must be from 1 to 20000")
        if not 0 <= options["mistakes"] <= 1:
            raise CommandError(f"--mistakes is {options['mistakes']:g}; it must be from 0 to 1")
        scratch = folder or Path(tempfile.mkdtemp(prefix="vl-replay-"))
        try:
            verdicts = play(self._script(options), scratch.resolve(), say=self._say)
        except (BadRecordingError, RehearsalError) as error:
            raise CommandError(str(error)) from error
        finally:
            if folder is None:
                remove_tree(scratch)
        self._report(verdicts, as_json=options["json"])

    def _script(self, options: dict[str, Any]) -> Script:
        path: Path = options["recording"].resolve()
        if not path.exists():
            raise CommandError(f"There is no {path.name}; nothing was started.")
        return Script(
            files=tuple(recordings_in(path)),
            speed=options["speed"],
            sites=tuple(site.strip() for site in options["sites"].split(",") if site.strip()),
            outage_seconds=options["outage"],
            mistakes=options["mistakes"],
        )

    def _say(self, text: str) -> None:
        self.stderr.write(text)

    def _report(self, verdicts: list[Verdict], *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({**summary(verdicts), "matches": [asdict(one) for one in verdicts]}))
        else:
            self._table(verdicts)
        if not all(one.is_right for one in verdicts):
            raise CommandError("What the API says differs from the recordings.")

    def _table(self, verdicts: list[Verdict]) -> None:
        names = ("expected", "present", "missing", "doubled", "wrong", "overs", "corrections")
        width = max(len(one.name) for one in verdicts)
        self.stdout.write(f"{'match':{width}}  " + "  ".join(f"{name:>11}" for name in names))
        for one in verdicts:
            figures = "  ".join(f"{getattr(one, name):>11}" for name in names)
            self.stdout.write(f"{one.name:{width}}  {figures}  {'right' if one.is_right else 'WRONG'}")
            for words in one.differences:
                self.stdout.write(f"{'':{width}}    {words}")
