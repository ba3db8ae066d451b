"""`manage.py prune`: applies all retention rules now; the scheduler does the same all day long."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from victoryline.retention import all_rules

LINE = "{:24} {:>12}   {}"


class Command(BaseCommand):
    help = "Delete what is older than it has to be kept (KEEP_* in the configuration), in small batches, until done."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Count, and delete nothing.")
        parser.add_argument("--json", action="store_true", help="One JSON object instead of a table.")
        parser.add_argument("--table", action="append", help="Only this one; may be given several times.")

    def handle(self, *args: Any, **options: Any) -> None:
        now, is_dry_run = timezone.now(), options["dry_run"]
        rules, names = all_rules(), options["table"] or ()
        known = {rule.table for rule in rules}
        if unknown := sorted(set(names) - known):
            raise CommandError(f"There is no table {', '.join(unknown)}. There are: {', '.join(sorted(known))}.")
        numbers = {
            rule.table: rule.outstanding(now) if is_dry_run else sum(iter(partial(rule.step, now), 0))
            for rule in rules
            if not names or rule.table in names
        }
        if options["json"]:
            self.stdout.write(json.dumps({"dry_run": is_dry_run, "tables": numbers}))
            return
        self.stdout.write(LINE.format("table", "to delete" if is_dry_run else "deleted", "keeps"))
        for rule in rules:
            if rule.table in numbers:
                self.stdout.write(LINE.format(rule.table, f"{numbers[rule.table]:,}", rule.keeps))
        self.stdout.write(LINE.format("all", f"{sum(numbers.values()):,}", "").rstrip())
        if is_dry_run:
            self.stdout.write("Nothing was deleted. Without --dry-run it would be.")
