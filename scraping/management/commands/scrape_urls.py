"""Starts a list of matches, by their addresses."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from scraping import jobs
from scraping.management.jobs import REQUESTED_BY, JobCommand, refused


class Command(JobCommand):
    help = "Read matches by their addresses: given as arguments, in a file (one a line), or on standard input (-)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("urls", nargs="*", metavar="URL", help="An address, or - for standard input.")
        parser.add_argument("--file", type=Path, help="A file with one address a line; # begins a comment.")
        parser.add_argument("--key", default="", help="Idempotency key: the same key again is the same job, for ever.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            started = jobs.start_urls(
                urls=_addresses(options["urls"], options["file"]),
                requested_by=REQUESTED_BY,
                idempotency_key=options["key"],
                now=timezone.now(),
            )
        except (jobs.Refused, jobs.KeyReused) as refusal:
            raise refused(refusal) from refusal
        self.tell_started(started, watch=options["watch"], json=options["json"])


def _addresses(given: list[str], file: Path | None) -> list[str]:
    urls = [url for url in given if url != "-"]
    if "-" in given:
        urls += _lines(sys.stdin.read())
    if file is not None:
        try:
            urls += _lines(file.read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"Nothing was started. {file} can't be read: {error}") from error
    return urls


def _lines(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
