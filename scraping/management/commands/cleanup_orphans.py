"""End the browsers that nobody uses any more."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from scraping.recovery.orphans import end_orphans


class Command(BaseCommand):
    help = (
        "End browsers that carry our owner tag and whose worker is gone or uses another one, and remove the temporary "
        "folders of workers that are gone. Other browsers are never touched."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Only say what would be ended.")

    def handle(self, *args: Any, dry_run: bool, **options: Any) -> None:
        orphans = end_orphans(now=timezone.now(), is_dry_run=dry_run)
        for orphan in orphans:
            browser, done = orphan.browser, "would be ended" if dry_run else "ended"
            self.stdout.write(
                f"pid {browser.pid} of worker {browser.owner}: {browser.memory_bytes / 1e6:.0f} MB in "
                f"{browser.process_count} processes, {done}: {orphan.reason}"
            )
        if not orphans:
            self.stdout.write("no orphaned browsers")
