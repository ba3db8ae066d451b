"""`manage.py run`: the whole embedded system in one command."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from victoryline import embedded
from victoryline.lib.processes import die_with_parent


class Command(BaseCommand):
    help = "Start web, engine and (with DEMO) the stadium; supervise them; stop them together."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--with-parent", action="store_true", help="Stop when the process that started us is gone.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["with_parent"]:
            die_with_parent()
        embedded.run(settings.CONFIG)
