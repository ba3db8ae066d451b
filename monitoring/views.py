"""The open pages about the system itself: /, /health, /health/live, /health/ready, /status, /metrics."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson
from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from monitoring.health.documents import health_document, status_document
from monitoring.health.evaluation import Evaluation
from monitoring.health.publisher import Published, PublishedDocument
from monitoring.health.status_rules import SystemStatus
from monitoring.metrics import exposition
from monitoring.queries import DatabaseAway, database_read, workers_at_work
from scraping.models.process import SILENT_AFTER


def build_health(evaluation: Evaluation) -> Published:
    document = health_document(evaluation)
    code = 503 if document["status"] == SystemStatus.DOWN else 200
    return Published(orjson.dumps(document), code, evaluation.now)


def build_status(evaluation: Evaluation) -> Published:
    return Published(orjson.dumps(status_document(evaluation)), 200, evaluation.now)


published_health = PublishedDocument("health_document", build_health)
published_status = PublishedDocument("health_summary", build_status)


@csrf_exempt
@require_safe
@never_cache
def health(_: HttpRequest) -> HttpResponse:
    if not settings.CONFIG.health_check_enabled:
        raise Http404
    published = published_health.get()
    return _json(published.body, status=published.status_code)


@csrf_exempt
@require_safe
@never_cache
def live(_: HttpRequest) -> HttpResponse:
    """Answers while the process runs; makes no query."""
    return _json(b'{"status":"live"}')


@csrf_exempt
@require_safe
@never_cache
def ready(_: HttpRequest) -> HttpResponse:
    reasons = _reasons_not_ready(timezone.now())
    document: dict[str, Any] = {"status": "not ready" if reasons else "ready", "reasons": reasons}
    return _json(orjson.dumps(document), status=503 if reasons else 200)


def _reasons_not_ready(now: datetime) -> list[str]:
    """Returns why this installation cannot work: no database, old tables, or no worker alive."""
    try:
        with database_read():
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            if not _migrations.are_applied():
                return ["migrations are not applied: run manage.py migrate"]
            if not workers_at_work(now):
                return [f"no worker has sent a heartbeat for {SILENT_AFTER.total_seconds():.0f} s"]
    except DatabaseAway as error:
        return [f"the database is away ({error})"]
    return []


class _Migrations:
    """Applied migrations stay applied, so a positive answer is kept for the life of the process."""

    def __init__(self) -> None:
        self._are_applied = False

    def are_applied(self) -> bool:
        if not self._are_applied:
            executor = MigrationExecutor(connection)
            self._are_applied = not executor.migration_plan(executor.loader.graph.leaf_nodes())
        return self._are_applied


_migrations = _Migrations()


@csrf_exempt
@require_safe
@never_cache
def status(_: HttpRequest) -> HttpResponse:
    return _json(published_status.get().body)


@csrf_exempt
@require_safe
@never_cache
def prometheus(_: HttpRequest) -> HttpResponse:
    if not settings.CONFIG.enable_prometheus_metrics:
        raise Http404
    return HttpResponse(exposition.render(), content_type=CONTENT_TYPE_LATEST)


@csrf_exempt
@require_safe
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    summary = orjson.loads(published_status.get().body)
    context = {
        "summary": summary,
        "groups": groups(summary["matches"]),
        "failure_percent": f"{summary.get('failure_ratio', 0.0) * 100:.1f}",
    }
    return render(request, "status/page.html", context)


def groups(matches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    titles = {"live": "Live", "upcoming": "Coming up", "finished": "Finished"}
    return [
        {"name": name, "title": title, "matches": [match for match in matches if match["group"] == name]}
        for name, title in titles.items()
    ]


def _json(body: bytes, status: int = 200) -> HttpResponse:
    return HttpResponse(body, status=status, content_type="application/json")
