"""`manage.py check_invariants`: is anything forgotten, half written, doubled or left over? For people and for tests."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from itertools import groupby
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from monitoring.invariants import BOUND_SECONDS, Moment, Verdict, consistent_view, judge
from monitoring.invariants.alerts import RULES


class Command(BaseCommand):
    help = (
        "Check what must hold at every moment. Reads only, from one consistent view. Ends with 1 if a rule is broken."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="One JSON object instead of a table.")
        parser.add_argument(
            *("--bound", "--bound-seconds"),
            type=float,
            default=BOUND_SECONDS,
            metavar="SECONDS",
            help=f"How late something may be before it counts as forgotten (default {BOUND_SECONDS:g}).",
        )

    def handle(self, *args: Any, bound: float, **options: Any) -> None:
        with consistent_view():
            verdicts = list(judge(RULES, Moment(timezone.now(), bound)))
        broken = [verdict for verdict in verdicts if not verdict.is_ok]
        if options["json"]:
            self.stdout.write(json.dumps({"ok": not broken, "rules": [asdict(each) for each in verdicts]}))
        else:
            self._tell(verdicts, len(broken))
        if broken:
            sys.exit(1)

    def _tell(self, verdicts: list[Verdict], broken: int) -> None:
        in_order = sorted(verdicts, key=lambda verdict: verdict.invariant)
        for invariant, rules in groupby(in_order, key=lambda verdict: verdict.invariant):
            for number, verdict in enumerate(rules):
                word = "ok" if verdict.is_ok else "BROKEN"
                self.stdout.write(f"{'' if number else invariant:3} {word:6} {verdict.name:12} {verdict.holds}")
                for row in verdict.broken:
                    self.stdout.write(f"{'':11}- {row}")
                if verdict.has_more:
                    self.stdout.write(f"{'':11}- and more")
                if not verdict.is_ok:
                    self.stdout.write(f"{'':11}-> {verdict.advice}")
        seconds = sum(verdict.seconds for verdict in verdicts)
        end = f"{broken} of {len(verdicts)} rules are broken" if broken else f"all {len(verdicts)} rules hold"
        self.stdout.write(f"{end} ({seconds:.2f} s); nothing was changed")
