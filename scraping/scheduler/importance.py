"""When the rules of importance have changed, all known matches follow them: nobody restarts anything."""

from __future__ import annotations

import logging
from datetime import datetime

from scraping.matches import importance
from scraping.matches.importance import Rules

logger = logging.getLogger(__name__)

_followed: Rules | None = None  # by all matches that are known; at a start nobody knows


def follow_rules(now: datetime) -> int:
    global _followed  # noqa: PLW0603 - a scheduler is one process, and does this once for each change of the file
    rules = importance.current()
    if rules == _followed:
        return 0
    changed = importance.apply_to_all()
    _followed = rules
    if changed:
        logger.info(
            "%d matches matter more or less than before, by the rules in %s",
            changed,
            importance.path().name,
            extra={"action": "importance_followed", "changed": changed},
        )
    return changed
