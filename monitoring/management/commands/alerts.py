"""`manage.py alerts`: what stands just now. Critical ones first, the oldest of them on top."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from monitoring.alerts.advice import advice
from monitoring.alerts.wording import one_line
from monitoring.models import Alert
from victoryline.lib.times import as_utc_iso


class Command(BaseCommand):
    help = "List the alerts that stand, since when, and who was told."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="One JSON object instead of lines.")

    def handle(self, *args: Any, **options: Any) -> None:
        standing = list(Alert.objects.filter(closed_at__isnull=True).order_by("severity", "opened_at"))
        if options["json"]:
            self.stdout.write(json.dumps({"alerts": [_as_json(alert) for alert in standing]}))
            return
        if not standing:
            self.stdout.write("No alert stands.")
        now = timezone.now()
        for alert in standing:
            minutes = (now - alert.opened_at).total_seconds() / 60
            self.stdout.write(f"{alert.severity:8} {minutes:5.0f} min  {one_line(alert.summary)}")
            self.stdout.write(f"{'':19} -> {advice(alert.key).do}{_care(alert)}")


def _care(alert: Alert) -> str:
    told = {0: "nobody was told", 1: "told once"}.get(alert.told_count, f"told {alert.told_count} times")
    by = f", {alert.acknowledged_by} looks after it" if alert.acknowledged_by else ""
    return f" ({told}{by})"


def _as_json(alert: Alert) -> dict[str, Any]:
    return {
        "key": alert.key,
        "severity": alert.severity,
        "summary": alert.summary,
        "opened_at": as_utc_iso(alert.opened_at),
        "count": alert.count,
        "told_count": alert.told_count,
        "told_at": as_utc_iso(alert.told_at) if alert.told_at else None,
        "muted_until": as_utc_iso(alert.muted_until) if alert.muted_until else None,
        "acknowledged_by": alert.acknowledged_by,
        "do": advice(alert.key).do,
    }
