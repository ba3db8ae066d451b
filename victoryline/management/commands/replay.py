"""`manage.py replay`: replays recorded or logged matches through the pipeline into a scratch database."""

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
from victoryline.replay.comparison import ReplayResult
from victoryline.replay.log_process import replay_in_process
from victoryline.replay.match_log import logs_in
from victoryline.replay.recording import InvalidRecordingError
from victoryline.replay.recording_replay import ReplayPlan, play, recordings_in, summary
from victoryline.replay.system import ReplayError

LIMITS = {"speed": (1, MAX_PACE), "mistakes": (0, 1), "outage": (0, 3600)}


class Command(BaseCommand):
    help = (
        "Play recorded matches (Cricsheet JSON) as live ones: the stadium shows them, a private system reads them with "
        "its browser, and the data of its API are compared with the recording, ball by ball. The log of a completed "
        "match (match.json.gz below MATCH_LOG_DIR) is validated and ingested again, state by state, and compared with "
        "the outcome. The configured database is not changed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("recording", type=Path, help="A recording or a match log, or a folder of either.")
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
        sites = _sites(options["sites"])
        if unknown := [site for site in sites if site not in CRICKET_SITES]:
            raise CommandError(f"--sites: {', '.join(unknown)} is none of {', '.join(CRICKET_SITES)}")
        if not sites:
            raise CommandError(f"--sites is empty; name one or more of {', '.join(CRICKET_SITES)}")
        scratch = folder or Path(tempfile.mkdtemp(prefix="vl-replay-"))
        try:
            results = self._results(options, scratch.resolve())
        except (InvalidRecordingError, ReplayError) as error:
            raise CommandError(str(error)) from error
        finally:
            if folder is None:
                remove_tree(scratch)
        self._report(results, as_json=options["json"])

    def _results(self, options: dict[str, Any], scratch: Path) -> list[ReplayResult]:
        path: Path = options["recording"].resolve()
        if not path.exists():
            raise CommandError(f"There is no {path}; nothing was started.")
        if not (logs := logs_in(path)):
            return play(self._plan(path, options), scratch, log=self._log)
        if options["outage"] or options["mistakes"]:
            raise CommandError("--outage and --mistakes are for recordings: a match log is replayed unchanged.")
        return [
            replay_in_process(path, scratch / str(number), speed=options["speed"])
            for number, path in enumerate(logs, start=1)
        ]

    def _plan(self, path: Path, options: dict[str, Any]) -> ReplayPlan:
        return ReplayPlan(
            files=tuple(recordings_in(path)),
            speed=options["speed"],
            sites=_sites(options["sites"]),
            outage_seconds=options["outage"],
            mistakes=options["mistakes"],
        )

    def _log(self, text: str) -> None:
        self.stderr.write(text)

    def _report(self, results: list[ReplayResult], *, as_json: bool) -> None:
        if as_json:
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


def _sites(text: str) -> tuple[str, ...]:
    return tuple(site.strip() for site in text.split(",") if site.strip())
