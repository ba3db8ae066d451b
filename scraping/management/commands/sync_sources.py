"""Writes config/sources.yaml and config/teams.yaml into the database."""

from __future__ import annotations

import json
import urllib.request
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from scraping.configuration import source_file
from scraping.matches import teams
from victoryline.lib.operators import rehearsal

STADIUM_SECONDS = 5.0


class Command(BaseCommand):
    help = (
        "Write the sources of config/sources.yaml and the team aliases of config/teams.yaml into the database. "
        "Existing rows keep the values set in the admin."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--reset", action="store_true", help="Overwrite existing rows with the file.")
        parser.add_argument("--dry-run", action="store_true", help="Print the outcome, and change nothing.")

    def handle(self, *args: Any, reset: bool, **options: Any) -> None:
        try:
            entries = source_file.read(settings.BASE_DIR / "config" / "sources.yaml")
            aliases = source_file.read_teams(settings.BASE_DIR / "config" / "teams.yaml")
        except source_file.SourceFileError as error:
            raise CommandError(f"Nothing was changed. {error}") from error
        stadium, now = settings.CONFIG.stadium_url, timezone.now()
        sites = _sites_of(stadium) if stadium else None
        with rehearsal(is_dry_run=options["dry_run"]):
            for source in source_file.sync(entries, stadium_url=stadium, stadium_sites=sites, is_reset=reset, now=now):
                state = "enabled" if source.is_enabled else "not enabled"
                self.stdout.write(f"{source.key}: {source.base_url}, {state}")
            self.stdout.write(f"{source_file.sync_teams(aliases, is_reset=reset)} team aliases")
            teams.assign_all(now)
        if options["dry_run"]:
            self.stdout.write("A dry run: nothing was changed.")


def _sites_of(stadium_url: str) -> list[str] | None:
    """Returns the sites that the stadium serves, or None if it does not answer."""
    address = f"{stadium_url.rstrip('/')}/control/health"
    try:
        with urllib.request.urlopen(address, timeout=STADIUM_SECONDS) as answer:  # noqa: S310 - http or https, checked
            return [str(site) for site in json.load(answer)["sites"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None
