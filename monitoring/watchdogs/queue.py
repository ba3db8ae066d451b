"""Work that waits although workers were told of it: there are too few of them, or they don't answer."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Count, Min

from monitoring.alerts import causes
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import Severity
from scraping.models import ScrapeTask, TaskState

LONGEST_WAIT = timedelta(seconds=60)
# The scheduler tells of a task again and again while it may be done: what it has not told of lately waits lawfully.
TOLD_WITHIN = timedelta(seconds=60)


def watch_queue(now: datetime) -> int:
    """How many tasks have been due for more than a minute, and are not taken."""
    late = ScrapeTask.objects.filter(
        state=TaskState.PENDING, run_at__lt=now - LONGEST_WAIT, hinted_at__gt=now - TOLD_WITHIN
    ).aggregate(number=Count("pk"), oldest=Min("run_at"))
    if not late["number"]:
        close_alert(causes.QUEUE, now)
        return 0
    seconds, number = (now - late["oldest"]).total_seconds(), int(late["number"])
    tasks = "1 task has" if number == 1 else f"{number} tasks have"
    summary = f"{tasks} been due for up to {seconds:.0f} s, and no worker takes them"
    detail = {"tasks": number, "oldest_seconds": round(seconds)}
    raise_alert(causes.QUEUE, Severity.WARNING, summary, detail, now)
    return number
