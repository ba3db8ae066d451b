"""`manage.py prune`: applies all retention rules now; the scheduler does the same all day long."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from victoryline.lib.retention import Amount, Rule
from victoryline.retention import all_rules

REPORT_EVERY = 20_000  # rows
LINE = "{:24} {:>12} {:>10}   {}"


class Command(BaseCommand):
    help = "Delete what is older than it has to be kept (KEEP_* in the configuration), in small batches, until done."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Count, and delete nothing.")
        parser.add_argument("--table", action="append", help="Only this one; may be given several times.")

    def handle(self, *args: Any, **options: Any) -> None:
        now, is_dry_run = timezone.now(), options["dry_run"]
        rules, names = all_rules(), options["table"] or ()
        known = {rule.table for rule in rules}
        if unknown := sorted(set(names) - known):
            raise CommandError(f"There is no table {', '.join(unknown)}. There are: {', '.join(sorted(known))}.")
        self.stdout.write(LINE.format("table", "to delete" if is_dry_run else "deleted", "bytes", "keeps"))
        total = Amount()
        for rule in rules:
            if names and rule.table not in names:
                continue
            amount = rule.outstanding(now) if is_dry_run else self._apply(rule, now)
            self.stdout.write(LINE.format(rule.table, f"{amount.rows:,}", _bytes(amount), rule.keeps))
            total += amount
        self.stdout.write(LINE.format("all", f"{total.rows:,}", _bytes(total), "").rstrip())
        if is_dry_run:
            self.stdout.write("Nothing was deleted. Without --dry-run it would be.")

    def _apply(self, rule: Rule, now: datetime) -> Amount:
        total, reported = Amount(), 0
        while gone := rule.step(now):
            total += gone
            if total.rows - reported >= REPORT_EVERY:
                reported = total.rows
                self.stderr.write(f"{rule.table}: {reported:,} deleted so far")
        return total


def _bytes(amount: Amount) -> str:
    return f"{amount.size_bytes:,}" if amount.size_bytes else "-"
