"""`manage.py second_factor add|remove USER`: gives a user a device for one-time codes, or takes it away."""

from __future__ import annotations

from argparse import ArgumentParser
from base64 import b32encode
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from monitoring import audit
from victoryline.lib.operators import name_of

RECOVERY_CODES = 10


class Command(BaseCommand):
    help = "Give a user a second factor (STAFF_SECOND_FACTOR), or take it away. What it prints is shown once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=("add", "remove"), help="add replaces the device that the user has.")
        parser.add_argument("user")
        parser.add_argument("--by", default="", help="Written into the audit. Default: the login name.")

    def handle(self, *args: Any, action: str, user: str, by: str, **options: Any) -> None:
        found = User.objects.filter(username=user).first()
        if found is None:
            raise CommandError(f"there is no user {user}")
        with transaction.atomic():
            removed = (
                TOTPDevice.objects.filter(user=found).delete()[0] + StaticDevice.objects.filter(user=found).delete()[0]
            )
            if action == "remove" and not removed:
                raise CommandError(f"{user} has no second factor")
            shown = self._add(found) if action == "add" else f"{user} has no second factor any more.\n"
            audit.record(
                actor=name_of(by),
                action_type=f"second_factor_{action}",
                trigger_condition="requested by an operator",
                target=user,
                now=timezone.now(),
            )
        self.stdout.write(shown)

    def _add(self, user: User) -> str:
        device = TOTPDevice.objects.create(user=user, name="authenticator app")
        codes = StaticDevice.objects.create(user=user, name="recovery codes")
        tokens = [StaticToken.random_token() for _ in range(RECOVERY_CODES)]
        StaticToken.objects.bulk_create(StaticToken(device=codes, token=token) for token in tokens)
        lines = (
            f"Enter this key in the authenticator app of {user}, or open the address on that device:",
            f"  {b32encode(device.bin_key).decode()}",
            f"  {device.config_url}",
            "Recovery codes, each valid once:",
            *(f"  {token}" for token in tokens),
        )
        return "\n".join(lines) + "\n"
