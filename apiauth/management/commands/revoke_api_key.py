"""Ends a key, or all keys of a consumer, and every token made from them."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from apiauth import consumers, keys, revoked
from apiauth.management import words
from victoryline.lib.store import STORE_AWAY, first_line


class Command(BaseCommand):
    help = "Revoke an API key by its prefix, or all keys of a consumer. Their tokens stop working within seconds."

    def add_arguments(self, parser: ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("prefix", nargs="?", help="The part between vl_ and the dot.")
        which.add_argument("--consumer", help="All keys of this consumer.")
        parser.add_argument("--reason", default="", help="Why; it stands with the key and in the audit.")
        words.add_actor(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        now, actor, reason = timezone.now(), words.actor_of(options), options["reason"]
        if options["consumer"]:
            with words.refusals_told():
                ended = keys.revoke_all(consumers.find(options["consumer"]), now=now, reason=reason, actor=actor)
            if not ended:
                raise CommandError(f"{options['consumer']} has no key that is not revoked already.")
            self.stdout.write(f"Revoked: {', '.join(ended)}. Their tokens stop working within seconds.")
            return
        self._revoke_one(options["prefix"], reason=reason, actor=actor)

    def _revoke_one(self, text: str, *, reason: str, actor: str) -> None:
        try:
            with words.refusals_told():
                prefix = keys.find(text).prefix
                if not keys.revoke(prefix=prefix, now=timezone.now(), reason=reason, actor=actor):
                    raise CommandError(f"The key {prefix} is revoked already.")
        except CommandError as error:
            if isinstance(error.__cause__, STORE_AWAY):
                self._note(keys.prefix_in(text), error.__cause__)
            raise
        self.stdout.write(f"The key {prefix} is revoked. Its tokens stop working within seconds.")

    def _note(self, prefix: str, error: BaseException) -> None:
        """Without the database nothing can be revoked, but those who can't ask it either may be told over Redis."""
        if prefix and revoked.note([prefix]):
            minutes = revoked.LIFETIME_SECONDS // 60
            raise CommandError(
                f"The database can't be reached ({first_line(error)}), so {prefix} is NOT revoked yet. It is noted in "
                f"Redis: while the database is away, and for {minutes} minutes at most, the web processes turn the key "
                "away all the same. Revoke it again when the database is back."
            ) from error
