"""Breakers on the command line: list them, override, reset or probe one."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from scraping.models import Breaker, BreakerState
from scraping.recovery import breakers
from victoryline.lib.operators import name_of, rehearsal

NAME_HELP = "A breaker (crex_source, crex_13KM_scraper), or the key of a source (crex) or of a match (crex_13KM)."


OPERATIONS: dict[str, Callable[..., object]] = {
    "trip": breakers.force_open,
    "close": breakers.force_closed,
    "reset": breakers.reset,
    "probe": breakers.probe_now,
}


class Command(BaseCommand):
    help = "List and override the breakers of sources and matches."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Print the outcome, and change nothing.")
        parser.add_argument("--by", default="", help="The operator's name for the audit. Default: the login name.")
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="Every source's breaker, and those of matches that are not closed.")
        listing.add_argument("--json", action="store_true", help="One JSON object instead of lines.")
        listing.add_argument("--all", action="store_true", help="Include closed breakers of matches.")
        for verb, words in (
            ("trip", "Force it open: no request until the end."),
            ("close", "Force it closed until the end."),
        ):
            forced = verbs.add_parser(verb, help=words)
            forced.add_argument("name", help=NAME_HELP)
            forced.add_argument("--minutes", type=float, required=True, help="Minutes until the override ends.")
            forced.add_argument("--reason", required=True)
        for verb, words in (
            ("reset", "Close it and clear its failure count."),
            ("probe", "Let its probes pass now."),
        ):
            verbs.add_parser(verb, help=words).add_argument("name", help=NAME_HELP)

    def handle(self, *args: Any, verb: str, by: str, **options: Any) -> None:
        if verb == "list":
            found = Breaker.objects.order_by("source__key", "name")
            is_all = options["all"]
            shown = [row for row in found if is_all or row.source_id or row.state != BreakerState.CLOSED or row.forced]
            if options["json"]:
                now = timezone.now()
                rows = [row.as_document() | {"shown_state": row.shown_state(now), "why": row.reason} for row in shown]
                self.stdout.write(json.dumps({"breakers": rows}))
                return
            self.stdout.write("\n".join(map(_line, shown)) or "no breakers: no source has been read yet")
            return
        now = timezone.now()
        call: dict[str, Any] = {"actor": name_of(by), "now": now}
        if verb in ("trip", "close"):
            call |= {"minutes": options["minutes"], "reason": options["reason"]}
        try:
            with rehearsal(is_dry_run=options["dry_run"]):
                row = breakers.find(options["name"], now=now)
                OPERATIONS[verb](row, **call)
                row.refresh_from_db()
        except breakers.BreakerOperationRefused as refusal:
            raise CommandError(f"Nothing was changed: {refusal}") from refusal
        self.stdout.write(_line(row) + (" - a dry run: nothing was changed" if options["dry_run"] else ""))


def _line(row: Breaker) -> str:
    end = row.open_until or row.forced_until
    state = row.shown_state(timezone.now())
    until = f" until {end:%Y-%m-%d %H:%M:%S} UTC" if end else ""
    reason = f": {row.reason}" if row.reason else ""
    return (
        f"{row.name}: {state}{until}{reason} ({row.total_calls} calls, {row.total_failures} bad, "
        f"{row.total_rejections} rejected, opened {row.total_opens} times)"
    )
