"""What is due now is written down and told to the workers, in one step: most polls are never looked for again."""

from __future__ import annotations

from datetime import datetime

from scraping.scheduler import due, hint


def dispatch_due(now: datetime) -> int:
    opened = due.open_due(now, is_hinted=True)
    hint.hint_new_tasks(opened)
    return len(opened)
