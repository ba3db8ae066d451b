"""Ends a key and every token made from it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from apiauth import keys


class Command(BaseCommand):
    help = "Revoke an API key by its prefix. Its tokens stop working within seconds."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("prefix", help="The part between vl_ and the next underscore.")

    def handle(self, *args: Any, **options: Any) -> None:
        prefix = options["prefix"].removeprefix("vl_").partition("_")[0]
        if not keys.revoke(prefix=prefix, now=timezone.now()):
            raise CommandError(f"No key in use has the prefix {prefix}")
        self.stdout.write(f"The key {prefix} is revoked.")
