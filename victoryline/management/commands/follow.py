"""`manage.py follow`: shows a match in the terminal, over the API, as a consumer sees it."""

from __future__ import annotations

import logging
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from victoryline import demo
from victoryline_client import Client
from victoryline_client.terminal import add_arguments, run

NO_KEY = (
    "There is no API key. Give one with --key or in VICTORYLINE_API_KEY; `manage.py api_keys issue me --scope read` "
    "creates one. On a machine where `make run` is running, its own key is used."
)


class Command(BaseCommand):
    help = (
        "Follow a match in the terminal over the API: score, age, events and corrections, until it is over. Without a "
        "match: list the live ones. `python -m victoryline_client follow` is the same on other machines."
    )
    requires_system_checks: list[str] = []  # only a server is requested; nothing of this machine is needed

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        known = demo.read_known(settings.VAR_DIR / "demo.json")
        url = options["url"] or known.get("url") or f"http://127.0.0.1:{settings.CONFIG.port}"
        # The key of this machine's own system is sent to no other server.
        key = options["key"] or (known.get("api_key") if url == known.get("url") else "")
        if not key:
            raise CommandError(NO_KEY)
        for name in ("victoryline_client", "httpx"):
            logging.getLogger(name).setLevel(logging.WARNING)  # the terminal shows the same
        stream = getattr(self.stdout, "_out", sys.stdout)  # inside Django's wrapper, which would end every line
        try:
            with Client(url, key) as client:
                error = run(client, options, stream)
        except ValueError as invalid:
            raise CommandError(str(invalid)) from invalid
        if error:
            raise CommandError(error)
