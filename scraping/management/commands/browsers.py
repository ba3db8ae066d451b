"""Browsers on the command line: replace those of running workers, end orphaned ones."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from scraping.models import WorkerCommand
from scraping.recovery import worker_commands
from scraping.recovery.orphans import end_orphans
from victoryline.lib.operators import name_of, rehearsal

REFRESH_SECONDS = 0.5


class Command(BaseCommand):
    help = "Replace the browsers of workers (recycle), or end orphaned browsers (cleanup)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        recycle = verbs.add_parser(
            "recycle", help="Replace the browsers when their running visits have finished. Reads go on meanwhile."
        )
        recycle.add_argument("worker", nargs="?", default="", help="A worker's name, as the admin shows it.")
        recycle.add_argument("--dry-run", action="store_true", help="Only print the workers it would command.")
        recycle.add_argument("--reason", default="requested on the command line")
        recycle.add_argument("--by", default="", help="The operator's name for the audit. Default: the login name.")
        recycle.add_argument("--seconds", type=float, default=60.0, help="How long to wait for the workers.")
        cleanup = verbs.add_parser(
            "cleanup", help="End tagged browsers whose worker is gone, and remove the folders of ended workers."
        )
        cleanup.add_argument("--dry-run", action="store_true", help="Only print what would be ended.")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        if verb == "recycle":
            self._recycle(**options)
        else:
            self._cleanup(is_dry_run=options["dry_run"])

    def _recycle(self, *, worker: str, reason: str, by: str, seconds: float, dry_run: bool, **_: Any) -> None:
        with rehearsal(is_dry_run=dry_run):
            requested = worker_commands.recycle(worker, reason=reason, actor=name_of(by), now=timezone.now())
        if not requested.workers:
            running = ", ".join(worker_commands.workers_at_work(timezone.now()))
            named = f" named {worker}" if worker else ""
            raise CommandError(f"No worker{named} is running. Running: {running or 'none; start one: run_worker'}")
        if dry_run:
            self.stdout.write(f"Would command {', '.join(requested.workers)}.")
            return
        waiting = WorkerCommand.objects.filter(
            worker_id__in=requested.workers, kind="recycle_browser", done_at__isnull=True
        )
        open_ids = set(waiting.values_list("pk", flat=True)) | set(requested.commands)
        self.stdout.write(f"Commanded {', '.join(requested.workers)}.")
        end = time.monotonic() + seconds
        while open_ids and time.monotonic() < end:
            for command in WorkerCommand.objects.filter(pk__in=open_ids, done_at__isnull=False):
                self.stdout.write(f"{command.worker_id}: {command.outcome}")
                open_ids.discard(command.pk)
            time.sleep(REFRESH_SECONDS if open_ids else 0)
        if open_ids:
            raise CommandError(f"{len(open_ids)} not done within {seconds:g} s; the commands stay open. See the audit.")

    def _cleanup(self, *, is_dry_run: bool) -> None:
        orphans = end_orphans(now=timezone.now(), is_dry_run=is_dry_run)
        for orphan in orphans:
            browser, done = orphan.browser, "would be ended" if is_dry_run else "ended"
            self.stdout.write(
                f"pid {browser.pid} of worker {browser.owner}: {browser.memory_bytes / 1e6:.0f} MB in "
                f"{browser.process_count} processes, {done}: {orphan.reason}"
            )
        if not orphans:
            self.stdout.write("no orphaned browsers")
