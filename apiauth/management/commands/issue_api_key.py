"""Gives a consumer a key."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from apiauth import keys
from apiauth.management import words
from apiauth.models import Tier


class Command(BaseCommand):
    help = "Issue an API key. It is shown once: only a hash of it is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="The consumer; made if there is none of this name.")
        parser.add_argument("--label", default="", help="What the key is for.")
        parser.add_argument("--tier", choices=Tier.values, help="Default: as it is; standard for a new consumer.")
        parser.add_argument("--requests-per-minute", type=int, help="Of the tier custom, and of no other.")
        parser.add_argument(
            "--scope",
            action="append",
            choices=keys.SCOPES,
            help="What the key may do; may be repeated. Default: read. It can't be changed later: issue another key.",
        )
        life = parser.add_mutually_exclusive_group()
        life.add_argument(
            "--expires-in-days", "--expires-days", type=int, help="Days until the key expires. Default: never."
        )
        life.add_argument("--expires-at", help="When the key expires, such as 2027-01-31T18:00:00Z.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")
        words.add_actor(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        with words.refusals_told():
            issued = keys.issue(
                consumer_name=options["name"],
                tier=Tier(options["tier"]) if options["tier"] else None,
                requests_per_minute=options["requests_per_minute"],
                scopes=options["scope"] or ["read"],
                label=options["label"],
                now=now,
                expires_at=words.expiry_of(options, now),
                actor=words.actor_of(options),
            )
        if options["json"]:
            self.stdout.write(json.dumps({"api_key": issued.text, **words.as_document(issued.key)}))
            return
        self.stdout.write(words.as_text(issued))
        if others := keys.others_in_use(issued.key, now):
            noun = "key" if others == 1 else "keys"
            self.stdout.write(f"{options['name']} has {others} other {noun}, which can still be used.")
