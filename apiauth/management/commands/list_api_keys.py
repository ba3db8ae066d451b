"""Shows the keys that there are, never their secrets."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from apiauth import consumers, keys
from apiauth.keys import KeyState
from apiauth.management import words
from apiauth.models import ApiKey

ENDED = (KeyState.REVOKED, KeyState.EXPIRED)
COLUMNS = ("prefix", "consumer", "tier", "scopes", "label", "created", "expires", "last used", "state")


class Command(BaseCommand):
    help = "List API keys: whose they are, what they may do, until when, when they last got a token. Never secrets."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--consumer", help="Only the keys of this one.")
        parser.add_argument("--all", action="store_true", help="Those that have ended, too.")
        parser.add_argument("--json", action="store_true", help="Print a JSON list.")

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        rows = ApiKey.objects.select_related("consumer", "replaced_by").order_by("consumer__name", "created_at")
        with words.refusals_told():
            if options["consumer"]:
                rows = rows.filter(consumer=consumers.find(options["consumer"]))
            found = [key for key in rows if options["all"] or keys.state_of(key, now) not in ENDED]
        if options["json"]:
            self.stdout.write(json.dumps([words.as_document(key) for key in found], indent=2))
        elif found:
            self.stdout.write(_table([COLUMNS, *(_row(key, now) for key in found)]))
        else:
            self.stdout.write("There is no key in use. manage.py issue_api_key NAME makes one; --all shows ended ones.")


def _row(key: ApiKey, now: datetime) -> tuple[str, ...]:
    state, consumer = keys.state_of(key, now), key.consumer
    tier = f"custom {consumer.requests_per_minute}/min" if consumer.requests_per_minute else consumer.tier
    if state is KeyState.EXPIRES_SOON and key.expires_at:
        told = f"expires in {max(0, (key.expires_at - now).days)} days"
    elif state is KeyState.ROTATED and key.replaced_by:
        told = f"rotated to {key.replaced_by.prefix}"
    else:
        told = state.value
    return (
        key.prefix,
        consumer.name,
        tier,
        ",".join(key.scopes),
        key.label or "-",
        _moment(key.created_at),
        _moment(key.expires_at),
        _moment(key.last_used_at),
        told,
    )


def _moment(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "never"


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
