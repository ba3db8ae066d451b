"""Rotates the key that signs tokens; tokens of the old key stay valid until they expire."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from apiauth import signing
from victoryline.lib.operators import name_of

BY_HAND = """\
The signing key comes from the environment (JWT_SIGNING_KEY), so it is rotated there. Nothing was changed. With several
web processes, in three steps, so that none of them meets a token that it can't check:
  1. Everywhere: JWT_PREVIOUS_KEYS={new}{more}
     and restart. The new key verifies now; the old one still signs.
  2. Everywhere: JWT_SIGNING_KEY={new}
     JWT_PREVIOUS_KEYS=<the old JWT_SIGNING_KEY>{more}
     and restart. The new key signs.
  3. After {hours} hours, when the last token of the old key has ended: take the old key out of JWT_PREVIOUS_KEYS.
Has the old key leaked, do step 2 alone, without the old key: all tokens end, consumers get new ones with their keys.
The key above is new and was stored nowhere; keep it as you keep your other secrets."""


class Command(BaseCommand):
    help = "Sign tokens with a new key. No token ends early, and nothing has to be restarted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--end-tokens",
            action="store_true",
            help="For a key that has leaked: old keys verify nothing any more, so every token ends now.",
        )
        parser.add_argument("--by", default="", help="Written into the audit. Default: the login name.")

    def handle(self, *args: Any, **options: Any) -> None:
        hours = settings.CONFIG.token_lifetime_hours
        if signing.is_from_environment():
            more = ",<its present value>" if settings.JWT_PREVIOUS_KEYS else ""
            self.stdout.write(BY_HAND.format(new=signing.new_key(), more=more, hours=hours))
            return
        try:
            ends = options["end_tokens"]
            ring = signing.rotate_file(timezone.now(), keeps_old=not ends, actor=name_of(options["by"]))
        except (OSError, ValueError) as error:
            raise CommandError(f"Nothing was changed: {error}") from error
        fate = (
            f"Tokens of {ring.keys[1].id} stay good until they end, {hours} hours at most."
            if len(ring.keys) > 1
            else "All tokens made before have ended; consumers get new ones with their keys."
        )
        self.stdout.write(
            f"Tokens are signed with the key {ring.current.id} from now on; web processes notice within a second. "
            f"{fate} Kept in {settings.JWT_SIGNING_KEY_FILE}: {len(ring.keys)} of them."
        )
