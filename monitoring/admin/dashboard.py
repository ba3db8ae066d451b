"""The first page of the admin: grade, figures, alerts, stalest matches, workers, recoveries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Count
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from monitoring import objectives
from monitoring.admin.alerts import cause_url
from monitoring.admin.history import GRADE_COLOURS, grade_chart, recoveries_of_last_day
from monitoring.health.evaluation import Evaluation
from monitoring.models import Alert
from monitoring.queries import matches_to_watch
from scraping.models import Match, ScrapeTask, TaskState, Worker
from victoryline.lib.admin import megabytes, span

STALEST = 8
MAX_ALERTS = 6


def dashboard(_: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Called by unfold (DASHBOARD_CALLBACK in the settings)."""
    now = timezone.now()
    evaluation = Evaluation(now)
    state = evaluation.grade
    context["console"] = {
        "grade": state.grade.value,
        "grade_colour": GRADE_COLOURS[state.grade.value],
        "reason": state.reason,
        "figures": _figures(evaluation),
        "stalest": _stalest(now),
        "workers": _workers(evaluation.workers, now),
        "alerts": _alerts(evaluation.alerts, now),
        "objectives": _objectives(now),
        "recoveries": recoveries_of_last_day(now),
    }
    context["chart"] = grade_chart(now)
    return context


def _objectives(now: datetime) -> list[dict[str, Any]]:
    return [
        {
            "name": f"{one.name}, {objectives.WINDOW_NAME}",
            "value": "nothing measured" if one.ratio is None else f"{one.ratio:.2%}",
            "target": f"{one.target:.1%}",
            "is_missed": one.is_met is False,
        }
        for one in objectives.last_hour(now)
    ]


def _alerts(open_alerts: list[Alert], now: datetime) -> list[dict[str, Any]]:
    return [
        {
            "severity": alert.severity,
            "summary": alert.summary,
            "age": span(alert.opened_at, now),
            "url": reverse("admin:monitoring_alert_change", args=[alert.pk]),
            "about": cause_url(alert),
        }
        for alert in open_alerts[:MAX_ALERTS]
    ]


def _figures(evaluation: Evaluation) -> list[dict[str, Any]]:
    fresh = evaluation.freshness
    states = (TaskState.PENDING, TaskState.FAILED, TaskState.DEAD)
    tasks = dict(
        ScrapeTask.objects.filter(state__in=states).values_list("state").annotate(number=Count("pk")).order_by()
    )
    task_list = reverse("admin:scraping_scrapetask_changelist")
    match_list = reverse("admin:scraping_match_changelist")
    paused = Match.objects.paused().count()
    failed, dead = tasks.get(TaskState.FAILED, 0), tasks.get(TaskState.DEAD, 0)
    figures = (
        ("Live matches", fresh.count, f"{match_list}?status__exact=live", False),
        ("Median age", f"{fresh.median:.1f} s", match_list, False),
        ("Polls a minute", evaluation.updates_per_minute, f"{task_list}?state__exact=SUCCESS", False),
        ("Waiting", tasks.get(TaskState.PENDING, 0), f"{task_list}?state__exact=PENDING", False),
        ("Failed", failed, f"{task_list}?state__exact=FAILED", failed > 0),
        ("Dead letters", dead, f"{task_list}?state__exact=DEAD", dead > 0),
        ("Paused matches", paused, f"{match_list}?lifecycle__exact=PAUSED", paused > 0),
    )
    return [dict(zip(("name", "value", "url", "is_trouble"), figure, strict=True)) for figure in figures]


def _stalest(now: datetime) -> list[dict[str, Any]]:
    matches = matches_to_watch().stalest_first().defer("payload", "provenance")[:STALEST]
    return [
        {
            "title": str(match),
            "url": reverse("admin:scraping_match_change", args=[match.pk]),
            "age": f"{age:,.0f} s" if (age := match.age_seconds(now)) is not None else "never read",
            "scraper": match.scraper_status,
        }
        for match in matches
    ]


def _workers(workers: list[Worker], now: datetime) -> list[dict[str, Any]]:
    return [
        {
            "name": worker.worker_id,
            "url": reverse("admin:scraping_worker_change", args=[worker.pk]),
            "memory": megabytes(worker.memory_bytes),
            "cpu": f"{worker.cpu_percent:.0f} %",
            "tasks": worker.active_tasks,
            "heartbeat": f"{(now - worker.heartbeat_at).total_seconds():.0f} s ago",
        }
        for worker in workers
    ]
