"""Replaces a key by a new one; the old one goes on working for a while."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from apiauth import keys
from apiauth.management import words
from victoryline.lib.times import as_utc_iso


class Command(BaseCommand):
    help = "Replace an API key by a new one with the same scopes. Both work until the overlap is over."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("prefix", help="The part between vl_ and the dot.")
        parser.add_argument(
            "--overlap-hours", type=float, help="How long the old key goes on working. Default: KEY_OVERLAP_HOURS."
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")
        words.add_actor(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        hours = options["overlap_hours"]
        if hours is None:
            hours = settings.CONFIG.key_overlap_hours
        try:
            overlap = timedelta(hours=hours)
        except (ValueError, OverflowError) as error:  # nan; more than there is time
            raise CommandError(f"--overlap-hours is {hours:g}; it must be from 0 to 8760") from error
        with words.refusals_told():
            old = keys.find(options["prefix"])
            issued = keys.rotate(
                prefix=old.prefix,
                overlap=overlap,
                now=timezone.now(),
                actor=words.actor_of(options),
            )
        old.refresh_from_db()
        assert old.expires_at is not None
        until = as_utc_iso(old.expires_at)
        if options["json"]:
            replaced = {"prefix": old.prefix, "works_until": until}
            document = {"api_key": issued.text, **words.as_document(issued.key), "replaces": replaced}
            self.stdout.write(json.dumps(document))
            return
        self.stdout.write(words.as_text(issued))
        self.stdout.write(f"The old key {old.prefix} and its tokens work until {until}.")
