"""`manage.py send_test_alert`: does an alert reach people? Sends one to each channel, and says what happened."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitoring.alerts import causes
from monitoring.alerts.channels import DeliveryError, Outgoing, configured
from monitoring.alerts.telling import Event
from monitoring.alerts.wording import Told, document
from monitoring.models import Alert, Channel, Severity
from monitoring.watchdogs.deliveries import base_url
from victoryline.lib.redaction import clean

HOW = {
    Channel.WEBHOOK: "Check ALERT_WEBHOOK_URL (and ALERT_WEBHOOK_SECRET on both sides).",
    Channel.EMAIL: "Check SMTP_URL, ALERT_EMAIL_FROM and ALERT_EMAIL_TO.",
    Channel.SENTRY: "Check SENTRY_DSN.",
}


class Command(BaseCommand):
    help = "Send a test alert through every channel that is configured. Nothing is written to the database."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--channel", choices=Channel.values, help="Only this one.")

    def handle(self, *args: Any, channel: str | None, **options: Any) -> None:
        chosen = {key: each for key, each in configured(settings.CONFIG).items() if channel in (None, key.value)}
        if not chosen:
            raise CommandError(
                "Nobody would be told: no such channel is configured.\n"
                "Set ALERT_WEBHOOK_URL, or SMTP_URL with ALERT_EMAIL_TO, or SENTRY_DSN."
            )
        is_well = True
        for name, sender in chosen.items():
            try:
                self.stdout.write(f"ok    {name.value:8} {sender.send(_message())}")
            except DeliveryError as error:
                is_well = False
                self.stdout.write(f"FAIL  {name.value:8} {clean(str(error))}")
                self.stdout.write(f"{'':15}-> {HOW[name]}")
        if not is_well:
            sys.exit(1)


def _message() -> Outgoing:
    now = timezone.now()
    alert = Alert(
        key=causes.TEST,
        severity=Severity.WARNING,
        summary="This is a test, asked for with send_test_alert",
        opened_at=now,
        last_seen_at=now,
    )
    body = document(
        [Told(alert, Event.RAISED)], severity=Severity.WARNING, is_digest=False, base_url=base_url(), now=now
    )
    return Outgoing(body | {"event": "test"}, now)
