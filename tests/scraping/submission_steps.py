"""Submissions for tests, and the scheduler and worker steps that process them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from scraping import journal
from scraping.configuration.policies import Policies
from scraping.models import ScrapeTask, Source, TaskState
from scraping.payloads import Resource
from scraping.scheduler.other_tasks import open_submission_tasks
from scraping.worker.engine import Engine
from scraping.worker.scrape import scrape
from tests.factories import make_source
from tests.scraping.builders import POLICIES, ScriptedReader


def pushed_source(**fields: Any) -> Source:
    return make_source(
        "pushed", **{"name": "Sent in", "precedence_weight": 40, "base_url": "https://sent-in.invalid", **fields}
    )


def ball(number: int, **fields: Any) -> dict[str, Any]:
    """The ball with this number of the first innings, one run."""
    over, place = divmod(number - 1, 6)
    event = {"id": f"1-{number}", "kind": "runs", "innings": 1, "over": f"{over}.{place + 1}", "ball": place + 1}
    return {**event, "runs": 1, **fields}


def sent(runs: int = 91, *, at: datetime | None = None, overs: str = "11.5", **fields: Any) -> dict[str, Any]:
    """Returns a submission: India bat against Australia in the first innings."""
    body: dict[str, Any] = {
        "match_id": "ind-aus-1",
        "captured_at": (at or timezone.now()).isoformat(),
        "status": "live",
        "series": "Australia in India 2026",
        "match_type": "T20",
        "teams": {
            "team_a": {"name": "India", "short_name": "IND"},
            "team_b": {"name": "Australia", "short_name": "AUS"},
        },
        "innings": [{"number": 1, "team": "team_a", "runs": runs, "wickets": 2, "overs": overs}],
        "current_innings": 1,
    }
    return body | fields


def earlier(seconds: float) -> datetime:
    return timezone.now() - timedelta(seconds=seconds)


def engine(*, worker_id: str = "w-1", policies: Policies = POLICIES) -> Engine:
    """Returns an engine whose reader fails the test if anything is read."""
    return Engine(worker_id=worker_id, reader=ScriptedReader(AssertionError("nothing may be read")), policies=policies)


def open_tasks() -> list[int]:
    tasks = ScrapeTask.objects.filter(resource=Resource.SUBMISSION, state=TaskState.PENDING, run_at__lte=timezone.now())
    return list(tasks.order_by("pk").values_list("pk", flat=True))


def work(worker: Engine | None = None) -> int:
    """Runs the scheduler step once and executes the opened tasks; returns their number."""
    open_submission_tasks(timezone.now())
    tasks = open_tasks()
    for task_id in tasks:
        scrape([task_id], worker or engine())
    return len(tasks)


def claim(task_id: int, *, worker_id: str = "w-1") -> journal.Claim:
    found = journal.claim(task_id, worker_id=worker_id, lease_seconds=15, now=timezone.now())
    assert found is not None
    return found
