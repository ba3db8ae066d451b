"""Sets the importance of a match."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scraping.documents.queries import find_match
from scraping.matches import importance
from scraping.models import Importance
from victoryline.lib.operators import name_of

AUTO = "auto"
LEVELS = {level.name.lower(): level for level in Importance}


class Command(BaseCommand):
    help = (
        "Set the importance of a match: high (read more often, first under overload), normal, low, or auto (the rules "
        "of config/importance.yaml decide)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("match", help="Its id, or its key at a source, such as crex_13KM.")
        parser.add_argument("importance", choices=[*LEVELS, AUTO])
        parser.add_argument("--by", default="", help="The operator's name for the audit. Default: the login name.")

    def handle(self, *args: Any, **options: Any) -> None:
        match = find_match(options["match"])
        if match is None:
            raise CommandError(
                f"Nothing was changed: there is no match {options['match']}. "
                "`manage.py watch --once` lists the live ones."
            )
        actor = name_of(options["by"])
        changed = importance.set_by_hand(match.pk, LEVELS.get(options["importance"]), actor=actor)
        by = "an operator" if changed.is_importance_fixed else "the rules"
        self.stdout.write(f"{changed}: importance {Importance(changed.importance).label.lower()}, set by {by}.")
