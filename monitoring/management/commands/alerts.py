"""`manage.py alerts`: lists the open alerts, critical ones first, oldest first; `--test` sends a test alert."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitoring.alerts import alert_keys
from monitoring.alerts.alert_keys import incident_path, kind_of
from monitoring.alerts.channels import DeliveryError, configured
from monitoring.alerts.delivery import base_url
from monitoring.alerts.message_text import document, one_line
from monitoring.models import Alert, Channel, Severity
from monitoring.queries import live_matches, open_alerts
from victoryline.lib.redaction import clean
from victoryline.lib.times import as_utc_iso

CHANNEL_ADVICE = {
    Channel.WEBHOOK: "Check ALERT_WEBHOOK_URL (and ALERT_WEBHOOK_SECRET on both sides).",
    Channel.SENTRY: "Check SENTRY_DSN.",
}


class Command(BaseCommand):
    help = "List the open alerts with their age and notifications, or send a test alert (--test)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="One JSON object instead of lines.")
        parser.add_argument(
            "--test", action="store_true", help="Send a test alert through every configured channel; writes no rows."
        )
        parser.add_argument("--channel", choices=Channel.values, help="With --test: only this channel.")

    def handle(self, *args: Any, channel: str | None, **options: Any) -> None:
        if options["test"]:
            self._send_test(channel)
            return
        now = timezone.now()
        alerts = list(open_alerts(live_matches(now)).order_by("severity", "opened_at"))
        if options["json"]:
            self.stdout.write(json.dumps({"alerts": [_as_json(alert) for alert in alerts]}))
            return
        if not alerts:
            self.stdout.write("No alert is open.")
        for alert in alerts:
            minutes = (now - alert.opened_at).total_seconds() / 60
            self.stdout.write(f"{alert.severity:8} {minutes:5.0f} min  {one_line(alert.summary)}")
            names = [name for name in Channel if getattr(alert, name.sent_column)]
            sent = f"sent by {' and '.join(names)}" if names else "not sent yet"
            by = f", acknowledged by {alert.acknowledged_by}" if alert.acknowledged_by else ""
            self.stdout.write(f"{'':19} -> {kind_of(alert.key).action} ({sent}{by})")
            if path := incident_path(alert):
                self.stdout.write(f"{'':19}    {base_url()}{path}")

    def _send_test(self, channel: str | None) -> None:
        chosen = {key: each for key, each in configured(settings.CONFIG).items() if channel in (None, key.value)}
        if not chosen:
            raise CommandError(
                "No alert would be delivered: no such channel is configured.\nSet ALERT_WEBHOOK_URL or SENTRY_DSN."
            )
        now, has_failed = timezone.now(), False
        summary = "This is a test, sent by `manage.py alerts --test`"
        alert = Alert(key=alert_keys.TEST, severity=Severity.WARNING, summary=summary, opened_at=now, last_seen_at=now)
        for name, sender in chosen.items():
            message = document([alert], name.sent_column, base_url=base_url(), now=now) | {"event": "test"}
            try:
                self.stdout.write(f"ok    {name.value:8} {sender.send(message)}")
            except DeliveryError as error:
                has_failed = True
                self.stdout.write(f"FAIL  {name.value:8} {clean(str(error))}")
                self.stdout.write(f"{'':15}-> {CHANNEL_ADVICE[name]}")
        if has_failed:
            sys.exit(1)


def _as_json(alert: Alert) -> dict[str, Any]:
    return {
        "key": alert.key,
        "severity": alert.severity,
        "summary": alert.summary,
        "opened_at": as_utc_iso(alert.opened_at),
        "count": alert.count,
        "sent": {channel.value: getattr(alert, channel.sent_column) for channel in Channel},
        "notified_at": as_utc_iso(alert.notified_at) if alert.notified_at else None,
        "muted_until": as_utc_iso(alert.muted_until) if alert.muted_until else None,
        "acknowledged_by": alert.acknowledged_by,
        "do": kind_of(alert.key).action,
        "incident_url": f"{base_url()}{path}" if (path := incident_path(alert)) else None,
    }
