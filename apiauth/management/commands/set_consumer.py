"""Changes a consumer: its tier, its limit, whether it may enter."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_email
from django.forms import ValidationError
from django.utils import timezone

from apiauth import consumers
from apiauth.management import words
from apiauth.models import Consumer, Tier


class Command(BaseCommand):
    help = "Change a consumer's tier, limit or contact, shut it out, or let it in again. In effect within seconds."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--tier", choices=Tier.values)
        parser.add_argument("--requests-per-minute", type=int, help="Of the tier custom, and of no other.")
        parser.add_argument("--contact", help="A mail address.")
        entry = parser.add_mutually_exclusive_group()
        entry.add_argument("--active", dest="is_active", action="store_const", const=True, help="It may enter.")
        entry.add_argument(
            "--inactive", dest="is_active", action="store_const", const=False, help="None of its keys opens anything."
        )
        words.add_actor(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        wanted = consumers.Change(
            tier=Tier(options["tier"]) if options["tier"] else None,
            requests_per_minute=options["requests_per_minute"],
            is_active=options["is_active"],
            contact=_checked_contact(options["contact"]),
        )
        if wanted == consumers.Change():
            raise CommandError(
                "Nothing to change: give --tier, --requests-per-minute, --contact, --active or --inactive."
            )
        with words.refusals_told():
            consumer = consumers.find(options["name"])
            consumers.change(consumer, wanted, now=timezone.now(), actor=words.actor_of(options))
        self.stdout.write(_told(consumer))


def _checked_contact(text: str | None) -> str | None:
    try:
        if text:
            validate_email(text)
    except ValidationError as error:
        raise CommandError(f"--contact is {text!r}; it must be a mail address") from error
    return text


def _told(consumer: Consumer) -> str:
    limit = f", {consumer.requests_per_minute} requests a minute" if consumer.requests_per_minute else ""
    entry = "may enter" if consumer.is_active else "is shut out"
    return f"{consumer.name}: tier {consumer.tier}{limit}; it {entry}. In effect everywhere within seconds."
