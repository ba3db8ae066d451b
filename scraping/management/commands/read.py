"""Reads saved responses, or a page, with the adapter of a source and reports what was found. Writes no database row."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from scraping.browser.egress.upstream_proxies import ProxyPlan
from scraping.browser.host import BrowserHost
from scraping.browser.launcher import BrowserOptions
from scraping.browser.sessions import Sessions
from scraping.configuration import source_file
from scraping.errors import ScrapingError
from scraping.management import read_report as report
from scraping.models import Source
from scraping.reading import recordings, saved
from scraping.reading.reader import Reader, Target
from scraping.reading.saved import FIGURES, KINDS, LINEUPS, LIST, Saved, Trial, Trials
from scraping.reading.tokens import Tokens
from scraping.readings import RefInfo, Site, evidence_of
from scraping.sources import adapter_for
from scraping.sources.base import Adapter
from victoryline.lib import identity
from victoryline.lib.processes import own_temp_dir

UNREADABLE, WRONG_USAGE = 1, 2  # exit codes
READ_SECONDS = 180
T = TypeVar("T")


class Command(BaseCommand):
    help = (
        "Read saved responses of a source, or a page of it through the browser, with its adapter: what was found, what "
        "is missing or unknown, and where a changed response breaks. Exit code 1: it could not be read."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        files = "Files of one reading: page, JSON, stored evidence, - for stdin; NAME=FILE says which document it is. "
        others = "Or a recording's folder, or an address."
        parser.add_argument("sources", nargs="+", metavar="FILE|URL", help=files + others)
        parser.add_argument("--source", required=True, help="The key of the source, such as crex.")
        parser.add_argument("--as", dest="kind", choices=KINDS, default="", help="What it is. Default: found by trial.")
        parser.add_argument("--match", default="", help="The id of the match, where several are in the files.")
        parser.add_argument("--day", type=date.fromisoformat, help="The day of fixtures (YYYY-MM-DD). Default: today.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")
        parser.add_argument("--save", type=Path, metavar="FOLDER", help="Write an anonymised recording for tests.")
        parser.add_argument("--seed", type=int, default=1, help="Of the replaced names. Default: 1.")

    def handle(self, *args: Any, sources: list[str], source: str, **options: Any) -> None:
        site, adapter = _site_and_adapter(source)
        folder: Path | None = options["save"]
        if folder is not None and folder.exists() and any(folder.iterdir()):
            raise CommandError(f"{folder} is not empty. Name a new folder for the recording.", returncode=WRONG_USAGE)
        chosen = {"kind": options["kind"], "match_id": options["match"]}
        try:
            if sources[0].startswith(("http://", "https://")):
                files, at = _fetched(sources, site, adapter, chosen["kind"])
            else:
                files, at, site, chosen["match_id"] = _opened(sources, site, chosen["match_id"])
        except ScrapingError as error:
            raise CommandError(f"{sources[0]} could not be read: {error}\n{report.advice(error, adapter)}") from error
        trials = Trials(adapter, site, files, at=at, day=options["day"] or at.date(), **chosen).best()
        is_read = bool(trials) and trials[0].error is None
        unused = [one.label for one in files if not any(one.label in trial.labels.values() for trial in trials)]
        if options["json"]:
            self.stdout.write(json.dumps(report.as_json(source, trials, unused)))
        elif is_read:
            self.stdout.write("\n".join(line for trial in trials for line in report.lines(trial)))
        if not is_read:
            nothing = f"{adapter.key} has nothing of the kind {chosen['kind']}, or not in such files."
            message = report.failure(trials[0], adapter) if trials else nothing
            raise CommandError(message, returncode=UNREADABLE)
        if folder is not None:
            self._save(folder, trials, adapter, site, options["seed"])
        if unused:
            names = "Name the document, as in incidents=FILE, or read it alone."
            raise CommandError(f"Not used, of no known kind: {', '.join(unused)}. {names}", returncode=UNREADABLE)

    def _save(self, folder: Path, trials: Sequence[Trial], adapter: Adapter, site: Site, seed: int) -> None:
        try:
            recording = recordings.save(folder, trials, adapter, site.base_url, seed=seed)
        except recordings.RecordingError as error:
            raise CommandError(
                f"Not saved: the recording is read in another way than its original: {error}\nIf the adapter reads a "
                "word there, add it to scraping/reading/vocabulary.txt.",
                returncode=UNREADABLE,
            ) from error
        self.stderr.write(f"Saved in {folder}: {', '.join(recording.documents)}. Look through it before you commit it.")


def _site_and_adapter(key: str) -> tuple[Site, Adapter]:
    """Returns the source of the database; of config/sources.yaml where that has none, or is unreachable."""
    try:
        row = Source.objects.filter(key=key).first()
    except DatabaseError:
        row = None
    entries = {one.domain_id: one for one in source_file.read(settings.BASE_DIR / "config" / "sources.yaml")}
    if (row is None and key not in entries) or key == "pushed":
        known = ", ".join(sorted({*entries} - {"pushed"}))
        raise CommandError(f"No source {key!r} is read. There are: {known}.", returncode=WRONG_USAGE)
    if row is None:
        entry = entries[key]
        site = Site(key, entry.base_url, entry.adapter_key, tuple(entry.api_hosts), robots_policy=entry.robots_policy)
    else:
        site = row.site
    return site, adapter_for(site.adapter_key)


def _opened(names: Sequence[str], site: Site, match_id: str) -> tuple[list[Saved], datetime, Site, str]:
    """Returns the documents of files, their time, and site and match, which a recording has of its own."""
    folder = Path(names[0])
    if folder.is_dir() and (folder / recordings.INDEX).is_file():
        recording = recordings.Recording.load(folder)
        files = [
            replace(saved.saved(file, one.body, hint=_hint(file)), document=one)
            for file, one in recording.documents.items()
        ]
        return files, recording.captured_at, replace(site, base_url=recording.base_url), match_id or recording.match_id
    files, at = [], datetime.now(UTC)
    for given in names:
        name, equals, path = given.partition("=")
        if not equals or Path(given).exists() or not re.fullmatch(r"[a-z_]+(?::[0-9]+)?", name):
            name, path = "", given
        try:
            content = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        except OSError as error:
            message = f"{path} cannot be opened: {error.strerror}. Name files, or an address with https://."
            raise CommandError(message, returncode=WRONG_USAGE) from error
        if path != "-":
            at = min(at, datetime.fromtimestamp(Path(path).stat().st_mtime, UTC))
        files.append(saved.saved(path, content, name=name, hint=_hint(path)))
    return files, at, site, match_id


def _hint(path: str) -> str:
    """Returns the last word of a file's name: "live" for 20261102T1203_crex_13KM_live.txt; pages have no other name."""
    word = re.split(r"[^a-z]+", Path(path).stem.lower())[-1]
    return "" if word == "page" else word


def _fetched(urls: Sequence[str], site: Site, adapter: Adapter, kind: str) -> tuple[list[Saved], datetime]:
    """Reads a page as a worker does: same browser, hosts and robots policy."""
    match = adapter.match_at(urls[0], site.base_url)
    is_list = kind == LIST or (
        match is None and urls[0].rstrip("/") == adapter.list_plan(site.base_url).url.rstrip("/")
    )
    if len(urls) > 1 or (match is None and not is_list):
        message = f"Give one address of a match of {site.key}, like {adapter.address_example}, or --as list."
        raise CommandError(message, returncode=WRONG_USAGE)
    with _reader() as reader:
        try:
            if is_list or match is None:
                reading = reader.match_list(site, adapter)
            else:
                target = Target(0, site, RefInfo(match.source_event_id, match.url), adapter, is_fresh=True)
                extra = {LINEUPS: adapter.lineup_requests, FIGURES: adapter.figure_requests}.get(kind)
                if extra is None:
                    reading, _ = reader.scorecard(target)
                else:
                    reading = reader.extra_documents(target, extra(target.ref, site.base_url))
            documents, at = tuple(reading.documents.values()), reading.captured_at
        except ScrapingError as error:
            documents, at = evidence_of(error).documents, datetime.now(UTC)
            if not documents:
                raise
    return [Saved(one.name, one, one.name) for one in documents], at


@contextmanager
def _reader() -> Iterator[Reader]:
    """A reader with a browser of its own, on a loop thread of its own."""
    config, owner = settings.CONFIG, identity.new_name()
    options = BrowserOptions.of(config, owner=owner)
    if options is None:
        raise CommandError("No Chromium was found. `python manage.py doctor` says what to do.")
    temp_dir, loop = own_temp_dir(owner), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(READ_SECONDS)

    async def open_sessions() -> Sessions:
        return Sessions(BrowserHost(options, own_temp_dir=temp_dir), ProxyPlan.of(config))

    sessions = run(open_sessions())
    try:
        yield Reader(
            sessions, run, tokens=Tokens(dict(pair.split("=", 1) for pair in config.source_credentials.split()))
        )
    finally:
        run(sessions.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=10)
        loop.close()
