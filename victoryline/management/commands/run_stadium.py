"""`manage.py run_stadium`: the simulated sources alone."""

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from stadium.options import add_options
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
        os.execv(command[0], command)  # noqa: S606 - no shell is wanted: the stadium takes this process's place


def chosen(options: dict[str, Any]) -> list[str]:
    """The options that were given, as the stadium's own command line takes them."""
    given = [f"--{name.replace('_', '-')}={options[name]}" for name in OPTIONS if options[name] is not None]
    told = [f"--told={text}" for text in options["told"] or ()]
    return given + told + [f"--{name.replace('_', '-')}" for name in FLAGS if options[name]]
