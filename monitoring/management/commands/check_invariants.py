"""`manage.py check_invariants`: finds forgotten, half-written, duplicate and leftover rows."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from itertools import groupby
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitoring.invariants import BOUND_SECONDS, CheckContext, RuleResult, check_rules, consistent_view


class Command(BaseCommand):
    help = "Check the invariants. Reads only, from one consistent view. Exit code 1 if a rule is broken."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="One JSON object instead of a table.")
        parser.add_argument(
            *("--bound", "--bound-seconds"),
            type=float,
            default=BOUND_SECONDS,
            metavar="SECONDS",
            help=f"Delay after which something counts as forgotten (default {BOUND_SECONDS:g}).",
        )

    def handle(self, *args: Any, bound: float, **options: Any) -> None:
        if not 0 < bound < float("inf"):
            raise CommandError(f"--bound is {bound:g}; it must be more than 0 seconds")
        with consistent_view():
            results = list(check_rules(CheckContext(timezone.now(), bound)))
        broken = [result for result in results if not result.is_ok]
        if options["json"]:
            self.stdout.write(json.dumps({"ok": not broken, "rules": [asdict(each) for each in results]}))
        else:
            self._print(results, len(broken))
        if broken:
            sys.exit(1)

    def _print(self, results: list[RuleResult], broken: int) -> None:
        in_order = sorted(results, key=lambda result: result.invariant)
        for invariant, rules in groupby(in_order, key=lambda result: result.invariant):
            for number, result in enumerate(rules):
                state = "ok" if result.is_ok else "BROKEN"
                self.stdout.write(f"{'' if number else invariant:3} {state:6} {result.name:12} {result.holds}")
                for row in result.broken:
                    self.stdout.write(f"{'':11}- {row}")
                if result.has_more:
                    self.stdout.write(f"{'':11}- and more")
                if not result.is_ok:
                    self.stdout.write(f"{'':11}-> {result.advice}")
        seconds = sum(result.seconds for result in results)
        end = f"{broken} of {len(results)} rules are broken" if broken else f"all {len(results)} rules hold"
        self.stdout.write(f"{end} ({seconds:.2f} s); nothing was changed")
