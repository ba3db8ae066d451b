"""Starts a round."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from scraping import jobs
from scraping.management.jobs import REQUESTED_BY, JobCommand, refused


class Command(JobCommand):
    help = (
        "Start a round: its matches are looked up, written down, and read by the workers. The same round asked for "
        "again while it is open is the same job. Example: scrape_round sofascore tournament=325 season=87678 round=12"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("source", help="The key of the source, such as sofascore.")
        parser.add_argument("round", nargs="+", metavar="NAME=NUMBER", help="What names the round at this source.")
        parser.add_argument("--matches", type=int, help="How many the round has; another number is not believed.")
        parser.add_argument("--key", default="", help="Idempotency key: the same key again is the same job, for ever.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["matches"] is not None and options["matches"] < 1:
            raise CommandError(f"--matches is {options['matches']}; it must be from 1 up")
        try:
            started = jobs.start_round(
                source_key=options["source"],
                asked=_numbers(options["round"]),
                matches=options["matches"],
                requested_by=REQUESTED_BY,
                idempotency_key=options["key"],
                now=timezone.now(),
            )
        except (jobs.Refused, jobs.KeyReused) as refusal:
            raise refused(refusal) from refusal
        self.tell_started(started, watch=options["watch"], json=options["json"])


def _numbers(words: list[str]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for word in words:
        name, _, number = word.partition("=")
        if not (name and number.isascii() and number.isdigit()):
            raise CommandError(f"Nothing was started. {word!r} is not a name and a number, such as round=12")
        numbers[name] = int(number[:20])
    return numbers
