"""Gives a consumer a key."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from apiauth import keys
from apiauth.models import Tier


class Command(BaseCommand):
    help = "Issue an API key. It is shown once: only a hash of it is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="The consumer; made if there is none of this name.")
        parser.add_argument("--tier", choices=Tier.values, default=Tier.STANDARD.value)
        parser.add_argument("--scope", action="append", choices=keys.SCOPES, help="May be repeated. Default: read.")
        parser.add_argument("--expires-days", type=int, help="Days until the key expires. Default: never.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        now, days = timezone.now(), options["expires_days"]
        if days is not None and not 1 <= days <= 3650:
            raise CommandError(f"--expires-days is {days}; it must be from 1 to 3650")
        if not 1 <= len(options["name"]) <= 120:
            raise CommandError("The consumer's name must have from 1 to 120 characters")
        issued = keys.issue(
            consumer_name=options["name"],
            tier=Tier(options["tier"]),
            scopes=options["scope"] or ["read"],
            now=now,
            expires_at=now + timedelta(days=days) if days else None,
        )
        self.stdout.write(_as_json(issued) if options["json"] else _as_text(issued))
        others = keys.others_in_use(issued.key, now)
        if others and not options["json"]:
            noun = "key" if others == 1 else "keys"
            self.stdout.write(f"{options['name']} has {others} other {noun}, which can still be used.")


def _as_json(issued: keys.IssuedKey) -> str:
    key = issued.key
    return json.dumps(
        {
            "api_key": issued.text,
            "prefix": key.prefix,
            "consumer": key.consumer.name,
            "consumer_id": str(key.consumer.consumer_id),
            "tier": key.consumer.tier,
            "scopes": key.scopes,
            "expires_at": key.expires_at.isoformat() if key.expires_at else None,
        }
    )


def _as_text(issued: keys.IssuedKey) -> str:
    key = issued.key
    return (
        f"{issued.text}\n\n"
        f"This is the key of {key.consumer.name} ({key.consumer.tier}; {', '.join(key.scopes)}). Keep it now: it is "
        f"not shown again.\nTo end it: manage.py revoke_api_key {key.prefix}"
    )
