"""`manage.py doctor`: checks the installation and says how to repair it."""

import json
import sys
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from victoryline.doctor import examine


class Command(BaseCommand):
    help = "Check Python, Chromium, database, broker, memory, ports and disk; say how to repair what is broken."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="One JSON object instead of lines.")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = []
        for finding in examine(settings.CONFIG):
            findings.append(finding)
            if not options["json"]:
                self.stdout.write(f"{finding.status:5} {finding.name:10} {finding.detail}")
                if finding.fix:
                    self.stdout.write(f"{'':16} -> {finding.fix}")
        is_healthy = all(finding.status != "FAIL" for finding in findings)
        if options["json"]:
            self.stdout.write(json.dumps({"ok": is_healthy, "findings": [asdict(each) for each in findings]}))
        if not is_healthy:
            sys.exit(1)
