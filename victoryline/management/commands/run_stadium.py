"""`manage.py run_stadium`: the simulated sources alone."""

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from stadium.config import add_options
from victoryline import embedded

OPTIONS = ("host", "port", "state_file", "port_file", "session_seconds", "programme", "pace", "seed", "replay", "sites")
FLAGS = ("loop", "at_once")


class Command(BaseCommand):
    help = "Start the simulated sources with the STADIUM_* configuration; options win over it."

    def add_arguments(self, parser: CommandParser) -> None:
        add_options(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        settings.CONFIG.var_dir.mkdir(parents=True, exist_ok=True)
        sys.stdout.flush()
        command = embedded.stadium_command(settings.CONFIG, keeps_state=options["replay"] is None) + chosen(options)
        os.execv(command[0], command)  # noqa: S606 - no shell is needed: the stadium replaces this process


def chosen(options: dict[str, Any]) -> list[str]:
    """Returns the given options in the format of `python -m stadium`."""
    given = [f"--{name.replace('_', '-')}={options[name]}" for name in OPTIONS if options[name] is not None]
    distortions = [f"--distort={text}" for text in options["distort"] or ()]
    return given + distortions + [f"--{name.replace('_', '-')}" for name in FLAGS if options[name]]
