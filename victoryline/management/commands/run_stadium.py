"""`manage.py run_stadium`: the simulated sources alone."""

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from victoryline import embedded


class Command(BaseCommand):
    help = "Start the simulated sources with the STADIUM_* configuration."

    def handle(self, *args: Any, **options: Any) -> None:
        settings.CONFIG.var_dir.mkdir(parents=True, exist_ok=True)
        sys.stdout.flush()
        command = embedded.stadium_command(settings.CONFIG)
        os.execv(command[0], command)  # noqa: S606 - no shell is wanted: the stadium takes this process's place
