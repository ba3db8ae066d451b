"""`manage.py follow`: a match in the terminal, over the API, as a consumer sees it."""

from __future__ import annotations

import json
import logging
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from victoryline_client import Client
from victoryline_client.terminal import CannotFollow, Wishes, add_arguments, run, server_of

NO_KEY = (
    "There is no API key. Give one with --key or in VICTORYLINE_API_KEY; `manage.py issue_api_key me --scope read` "
    "makes one. On a machine where `make run` is running, its own key is used."
)


class Command(BaseCommand):
    help = (
        "Follow a match in the terminal over the API: score, age, events and corrections as they come, until it is "
        "over. Without a match: list those that are live. `python -m victoryline_client follow` is the same elsewhere."
    )
    requires_system_checks: list[str] = []  # it asks a server, and needs nothing of this machine

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        demo = _demo(settings.VAR_DIR / "demo.json")
        url, key = server_of(options, url=demo.get("url") or f"http://127.0.0.1:{settings.CONFIG.port}")
        if url == demo.get("url"):  # the key of this machine's own system goes to no other
            key = key or demo.get("api_key", "")
        if not key:
            raise CommandError(NO_KEY)
        logging.getLogger("victoryline_client").setLevel(logging.WARNING)  # what it would say is on the screen
        try:
            with Client(url, key) as client:
                run(client, Wishes.of(options), self._stream())
        except (CannotFollow, ValueError) as error:
            raise CommandError(str(error)) from error

    def _stream(self) -> Any:
        """Not Django's wrapper round it, which adds an end to every line."""
        return getattr(self.stdout, "_out", sys.stdout)


def _demo(path: Path) -> dict[str, str]:
    """What `manage.py run` wrote down for its user."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
