"""Asks again for what failed."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from scraping import jobs
from scraping.errors import ErrorClass
from scraping.journal import Which
from scraping.management.jobs import REQUESTED_BY

SHOWN = 20


class Command(BaseCommand):
    help = "Open failed and dead tasks again: of a job, a source, a class of errors, a group of equal errors."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--job", type=int, help="The number of a job.")
        parser.add_argument("--source", default="", help="The key of a source.")
        parser.add_argument("--error-class", choices=[word.value for word in ErrorClass])
        parser.add_argument("--fingerprint", default="", help="Of a group of errors.")
        parser.add_argument("--dry-run", action="store_true", help="Only say what would be retried.")

    def handle(self, *args: Any, **options: Any) -> None:
        which = Which(
            job_id=options["job"],
            source_key=options["source"],
            error_class=ErrorClass(options["error_class"]) if options["error_class"] else None,
            fingerprint=options["fingerprint"],
        )
        try:
            outcome = jobs.retry_failed(which, actor=REQUESTED_BY, now=timezone.now(), is_dry_run=options["dry_run"])
        except jobs.Refused as refusal:
            raise CommandError(f"Nothing was retried: {refusal}") from refusal
        verb, number = "Would retry" if options["dry_run"] else "Retried", len(outcome.retried)
        self.stdout.write(f"{verb} {number} {'task' if number == 1 else 'tasks'}.")
        if outcome.refused:
            self.stdout.write(f"Not retried: {len(outcome.refused)}.")
            for task_id, reason in list(outcome.refused.items())[:SHOWN]:
                self.stdout.write(f"  task {task_id}: {reason}")
        if outcome.has_more:
            self.stdout.write("There are more: run it again.")
