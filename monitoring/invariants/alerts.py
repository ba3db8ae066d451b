"""The part of the invariants that needs the alerts: nobody dies unheard."""

from __future__ import annotations

from collections.abc import Iterator

from monitoring import invariants
from monitoring.alerts import causes
from monitoring.invariants import Moment, Rule
from monitoring.models import Alert
from scraping.models import ScrapeTask, TaskState

RECENT_HOURS = 24


def unheard_deaths(moment: Moment) -> Iterator[str]:
    """A death raises the alert of its match, of its round or of its source's list, open or closed since."""
    dead = ScrapeTask.objects.filter(state=TaskState.DEAD, finished_at__gt=moment.ago(hours=RECENT_HOURS))
    heard = dict(
        Alert.objects.filter(key__startswith="dead").order_by("last_seen_at").values_list("key", "last_seen_at")
    )
    rows = dead.values_list("pk", "finished_at", "ref__match_id", "source__key", "job_id").order_by("pk")
    for pk, finished_at, match_id, source_key, job_id in rows.iterator(500):
        key = causes.death(match_id=match_id, source_key=source_key, job_id=job_id)
        if key not in heard or (finished_at and heard[key] < finished_at):
            yield f"task {pk} died at {finished_at:%H:%M:%S}, and there is no alert {key} of that time"


RULES = (
    *invariants.RULES,
    Rule(
        "I6",
        "alerts",
        "every dead letter has raised an alert",
        unheard_deaths,
        "Nothing is lost: open the task in the admin. Look for `receiver` in the logs to see why nobody was told.",
    ),
)
