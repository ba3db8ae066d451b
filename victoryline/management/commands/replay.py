"""`manage.py replay`: recorded or archived matches once more, through the pipeline, into a scratch database."""

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
from victoryline.lib.processes import remove_tree
from victoryline.rehearsal.archived import records_in
from victoryline.rehearsal.play import Script, play, recordings_in, summary
from victoryline.rehearsal.recording import BadRecordingError
from victoryline.rehearsal.scratch import retold
from victoryline.rehearsal.system import RehearsalError
from victoryline.rehearsal.verdict import Verdict

LIMITS = {"speed": (1, MAX_PACE), "mistakes": (0, 1), "outage": (0, 3600)}


class Command(BaseCommand):
    help = (
        "Play recorded matches (Cricsheet JSON) as live ones: the stadium shows them, a private system reads them with "
        "its browser, and what its API says in the end is held against the recording, ball by ball. The record of a "
        "match that has ended (match.json.gz below MATCH_LOG_DIR) is checked and ingested once more, state by state, "
        "and the end is held against it. Your own database is not touched."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("recording", type=Path, help="A recording or a record, or a folder of either.")
        parser.add_argument("--speed", type=float, default=300.0, help="Times life (%(default)s).")
        sites = f"Which sites show them, the one that is right first (%(default)s): {', '.join(CRICKET_SITES)}."
        parser.add_argument("--sites", default="crex", help=sites)
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
        if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise CommandError(f"{folder} is not an empty folder; nothing was written. Choose a new one.")
        for name, (least, most) in LIMITS.items():
            if not least <= options[name] <= most:
                raise CommandError(f"--{name} is {options[name]:g}; it must be from {least:g} to {most:g}")
        sites = _sites(options["sites"])
        if unknown := [site for site in sites if site not in CRICKET_SITES]:
            raise CommandError(f"--sites: {', '.join(unknown)} is none of {', '.join(CRICKET_SITES)}")
        if not sites:
            raise CommandError(f"--sites is empty; name one or more of {', '.join(CRICKET_SITES)}")
        scratch = folder or Path(tempfile.mkdtemp(prefix="vl-replay-"))
        try:
            verdicts = self._verdicts(options, scratch.resolve())
        except (BadRecordingError, RehearsalError) as error:
            raise CommandError(str(error)) from error
        finally:
            if folder is None:
                remove_tree(scratch)
        self._report(verdicts, as_json=options["json"])

    def _verdicts(self, options: dict[str, Any], scratch: Path) -> list[Verdict]:
        path: Path = options["recording"].resolve()
        if not path.exists():
            raise CommandError(f"There is no {path}; nothing was started.")
        if not (records := records_in(path)):
            return play(self._script(path, options), scratch, say=self._say)
        if options["outage"] or options["mistakes"]:
            raise CommandError("--outage and --mistakes are for recordings: a record is told as it was.")
        return [
            retold(record, scratch / str(number), speed=options["speed"])
            for number, record in enumerate(records, start=1)
        ]

    def _script(self, path: Path, options: dict[str, Any]) -> Script:
        return Script(
            files=tuple(recordings_in(path)),
            speed=options["speed"],
            sites=_sites(options["sites"]),
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


def _sites(text: str) -> tuple[str, ...]:
    return tuple(site.strip() for site in text.split(",") if site.strip())
