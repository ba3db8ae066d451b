"""The first page of the admin: is it well, what is broken, where to look."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Count
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from monitoring import slo
from monitoring.admin.grades import strip
from monitoring.admin.history import GRADE_COLOURS
from monitoring.admin.places import place_of
from monitoring.admin.recoveries import of_the_last_day
from monitoring.health.grading import Freshness, current_standing
from monitoring.models import Alert
from monitoring.queries import MEGABYTE, live_ages, matches_to_watch, updates_last_minute, workers_at_work
from scraping.models import Match, ScrapeTask, TaskState
from victoryline.lib.admin import span

STALEST = 8
MOST_ALERTS = 6


def dashboard(_: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Called by unfold (DASHBOARD_CALLBACK in the settings)."""
    now = timezone.now()
    standing = current_standing(now)
    context["console"] = {
        "grade": standing.grade.value,
        "grade_colour": GRADE_COLOURS[standing.grade.value],
        "reason": standing.reason,
        "figures": _figures(now),
        "stalest": _stalest(now),
        "workers": _workers(now),
        "alerts": _alerts(now),
        "objectives": _objectives(now),
        "recoveries": of_the_last_day(now),
    }
    context["strip"] = strip(now)
    return context


def _objectives(now: datetime) -> list[dict[str, Any]]:
    return [
        {
            "name": f"{one.name}, {window}",
            "value": "nothing measured" if one.ratio is None else f"{one.ratio:.2%}",
            "target": f"{one.target:.1%}",
            "is_missed": one.is_met is False,
        }
        for window, one in slo.rows_of(now)
    ]


def _alerts(now: datetime) -> list[dict[str, Any]]:
    standing = Alert.objects.filter(closed_at__isnull=True).order_by("severity", "-opened_at")
    return [
        {
            "severity": alert.severity,
            "summary": alert.summary,
            "age": span(alert.opened_at, now),
            "url": reverse("admin:monitoring_alert_change", args=[alert.pk]),
            "about": place_of(alert),
        }
        for alert in standing[:MOST_ALERTS]
    ]


def _figures(now: datetime) -> list[dict[str, Any]]:
    fresh = Freshness.of(live_ages(now))
    states = (TaskState.PENDING, TaskState.EXECUTING, TaskState.FAILED, TaskState.DEAD)
    tasks = dict(
        ScrapeTask.objects.filter(state__in=states).values_list("state").annotate(number=Count("pk")).order_by()
    )
    task_list = reverse("admin:scraping_scrapetask_changelist")
    match_list = reverse("admin:scraping_match_changelist")
    paused = Match.objects.paused().count()
    return [
        {"name": "Live matches", "value": fresh.count, "url": f"{match_list}?status__exact=live"},
        {"name": "Median age", "value": f"{fresh.median:.1f} s", "url": match_list},
        {"name": "Polls a minute", "value": updates_last_minute(now), "url": f"{task_list}?state__exact=SUCCESS"},
        {"name": "Waiting", "value": tasks.get(TaskState.PENDING, 0), "url": f"{task_list}?state__exact=PENDING"},
        _troubled("Failed", tasks.get(TaskState.FAILED, 0), f"{task_list}?state__exact=FAILED"),
        _troubled("Dead letters", tasks.get(TaskState.DEAD, 0), f"{task_list}?state__exact=DEAD"),
        _troubled("Paused matches", paused, f"{match_list}?lifecycle__exact=PAUSED"),
    ]


def _troubled(name: str, value: int, url: str) -> dict[str, Any]:
    return {"name": name, "value": value, "url": url, "is_trouble": value > 0}


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


def _workers(now: datetime) -> list[dict[str, Any]]:
    return [
        {
            "name": worker.worker_id,
            "url": reverse("admin:scraping_worker_change", args=[worker.pk]),
            "memory": f"{worker.memory_bytes / MEGABYTE:,.0f} MB",
            "cpu": f"{worker.cpu_percent:.0f} %",
            "tasks": worker.active_tasks,
            "heartbeat": f"{(now - worker.heartbeat_at).total_seconds():.0f} s ago",
        }
        for worker in workers_at_work(now)
    ]
