"""The first page of the admin: verdict, alerts, figures, rates, queue, workers, breakers, recoveries. Renewed live."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import F
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from monitoring import objectives
from monitoring.admin.alerts import cause_url
from monitoring.admin.history import GRADE_COLOURS, SPAN, action_label, grade_chart, recoveries_of_last_day
from monitoring.admin.rate_charts import SPANS, rate_charts
from monitoring.alerts.alert_keys import incident_path
from monitoring.health.evaluation import Evaluation
from monitoring.health.status_rules import SystemStatus
from monitoring.models import AuditEntry, AuditOutcome
from monitoring.queries import matches_to_watch
from scraping.matches.conflicts import LASTING
from scraping.models import (
    Breaker,
    Conflict,
    Match,
    PairingReview,
    PairingState,
    ScrapeTask,
    TaskState,
    Worker,
    match_keys,
)
from victoryline.lib.admin import BAD, CAREFUL, GOOD, bounded_count, megabytes
from victoryline.lib.shown import ago, duration

STALEST = 8
MAX_ALERTS = 6
MAX_BREAKERS = 8
MAX_PAIRS = 1000
MAX_UNRECOVERED = 6
STATUS_COLOURS = {SystemStatus.HEALTHY: GOOD, SystemStatus.DEGRADED: CAREFUL, SystemStatus.DOWN: BAD}


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Called by unfold (DASHBOARD_CALLBACK in the settings). Every figure is bounded, whatever the journal's size."""
    now = timezone.now()
    evaluation = Evaluation(now)
    span = request.GET.get("span", "")
    span = span if span in SPANS else "1h"
    context["title"] = "Overview"
    context["console"] = {
        "now": now,
        "verdict": _verdict(evaluation),
        "figures": _figures(evaluation),
        "alerts": _alerts(evaluation),
        "spans": [(name, label, name == span) for name, (label, _, _) in SPANS.items()],
        "charts": rate_charts(span, now),
        "queue": [
            (name, number, duration(age) if (age := evaluation.queue.ages_seconds[name]) else "-")
            for name, number in evaluation.queue.depth.items()
        ],
        "executing": evaluation.queue.executing,
        "stalest": _stalest(now),
        "workers": [_worker(worker, now) for worker in evaluation.workers],
        "breakers": _breakers(evaluation.breakers, now),
        "objectives": _objectives(now),
        "recoveries": recoveries_of_last_day(now),
        "unrecovered": _unrecovered(now),
    }
    context["chart"] = grade_chart(now)
    return context


def _verdict(evaluation: Evaluation) -> dict[str, Any]:
    """Returns the status that /health gives, with the grade and the match that it is about."""
    status, state, cause = evaluation.status, evaluation.grade, evaluation.cause_id
    is_good = status.status is SystemStatus.HEALTHY
    return {
        "status": status.status.value,
        "colour": STATUS_COLOURS[status.status],
        "grade": state.grade.value,
        "grade_colour": GRADE_COLOURS[state.grade.value],
        "reasons": status.reasons or (state.reason,),
        "cause": None if is_good or cause is None else (match_keys([cause]).get(cause, "match"), _incident(cause)),
    }


def _incident(match_id: int) -> str:
    return reverse("incident", args=["match", match_id])


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


def _alerts(evaluation: Evaluation) -> dict[str, Any]:
    shown = evaluation.alerts[:MAX_ALERTS]
    keys = match_keys(pk for alert in shown if (pk := alert.detail.get("match_id")))
    rows = [
        {
            "severity": alert.severity,
            "summary": alert.summary,
            "since": ago(alert.opened_at, evaluation.now),
            "url": reverse("admin:monitoring_alert_change", args=[alert.pk]),
            "about": cause_url(alert),
            "incident": incident_path(alert),
            "match": keys.get(alert.detail.get("match_id", 0), ""),
            "acknowledged_by": alert.acknowledged_by,
        }
        for alert in shown
    ]
    return {"rows": rows, "more": len(evaluation.alerts) - len(shown)}


def _figures(evaluation: Evaluation) -> list[dict[str, Any]]:
    fresh = evaluation.freshness
    tasks, matches = (reverse(f"admin:scraping_{table}_changelist") for table in ("scrapetask", "match"))
    failed, dead = (
        bounded_count(ScrapeTask.objects.filter(state=state)) for state in (TaskState.FAILED, TaskState.DEAD)
    )
    paused = Match.objects.paused().count()
    undecided = PairingReview.objects.filter(state=PairingState.OPEN).order_by("-pk")
    pairs = list(undecided.values_list("pk", flat=True)[:MAX_PAIRS])
    review = reverse("admin:scraping_pairingreview_change", args=[pairs[0]]) if pairs else ""
    disputed = Conflict.objects.filter(match__in=Match.objects.live(), resolved_at=None)
    conflicts = disputed.filter(last_seen_at__gte=F("first_seen_at") + LASTING).count()  # not the delay of a source
    figures = (
        ("Live matches", fresh.count, f"{matches}?status__exact=live", False),
        ("Median age", f"{fresh.median:.1f} s", matches, False),
        ("Oldest", f"{fresh.max:,.1f} s", f"{matches}?status__exact=live&o=7", fresh.max >= 60),
        ("Polls a minute", f"{evaluation.updates_per_minute:,}", f"{tasks}?state__exact=SUCCESS", False),
        ("Errors a minute", evaluation.errors.last_minute, reverse("admin:scraping_scrapeerror_changelist"), False),
        ("Failed", failed, f"{tasks}?state__exact=FAILED", failed != "0"),
        ("Dead letters", dead, f"{tasks}?state__exact=DEAD", dead != "0"),
        ("Pairs to decide", len(pairs), review or reverse("admin:scraping_pairingreview_changelist"), bool(review)),
        ("Conflicts", conflicts, f"{reverse('admin:scraping_conflict_changelist')}?state=open", conflicts > 0),
        ("Paused matches", paused, f"{matches}?lifecycle__exact=PAUSED", paused > 0),
    )
    return [dict(zip(("name", "value", "url", "is_trouble"), figure, strict=True)) for figure in figures]


def _stalest(now: datetime) -> list[dict[str, Any]]:
    matches = matches_to_watch().stalest_first().defer("payload", "provenance")[:STALEST]
    return [
        {
            "title": str(match),
            "url": reverse("admin:scraping_match_change", args=[match.pk]),
            "incident": _incident(match.pk),
            "age": duration(age) if (age := match.age_seconds(now)) is not None else "never read",
            "scraper": match.scraper_status,
        }
        for match in matches
    ]


def _worker(worker: Worker, now: datetime) -> dict[str, Any]:
    started = worker.browser_started_at
    return {
        "name": worker.worker_id,
        "url": reverse("admin:scraping_worker_change", args=[worker.pk]),
        "memory": megabytes(worker.memory_bytes),
        "cpu": f"{worker.cpu_percent:.0f} %",
        "tasks": worker.active_tasks,
        "uptime": duration((now - worker.started_at).total_seconds()),
        "browser": duration((now - started).total_seconds()) if started else "not started",
        "heartbeat": ago(worker.heartbeat_at, now),
    }


def _breakers(breakers: list[Breaker], now: datetime) -> dict[str, Any]:
    """Returns the breakers that are not closed by themselves, those of sources first."""
    found = [breaker for breaker in breakers if breaker.shown_state(now) != "closed"]
    found.sort(key=lambda breaker: breaker.source_id is None)
    rows = [
        {
            "name": breaker.name,
            "url": reverse("admin:scraping_breaker_change", args=[breaker.pk]),
            "state": breaker.shown_state(now),
            "reason": breaker.forced_reason or breaker.reason,
            "until": ago(breaker.forced_until or breaker.open_until, now),
        }
        for breaker in found[:MAX_BREAKERS]
    ]
    return {"rows": rows, "more": len(found) - len(rows)}


def _unrecovered(now: datetime) -> list[dict[str, Any]]:
    """Returns the latest actions of the last day after which their match or the system had not recovered."""
    lost = AuditEntry.objects.filter(timestamp__gt=now - SPAN, outcome=AuditOutcome.FAILED)
    return [
        {
            "name": action_label(entry.action_type),
            "target": entry.target,
            "at": ago(entry.timestamp, now),
            "url": _incident(entry.match_id)
            if entry.match_id
            else reverse("admin:monitoring_auditentry_change", args=[entry.pk]),
        }
        for entry in lost.order_by("-timestamp")[:MAX_UNRECOVERED]
    ]
