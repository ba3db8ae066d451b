"""The open pages about the system itself: /, /health, /health/live, /health/ready, /status, /metrics."""

from collections.abc import Callable
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

from monitoring import access
from monitoring.health.documents import health_document, status_document
from monitoring.health.evaluation import Evaluation
from monitoring.health.publisher import Published, PublishedDocument
from monitoring.health.status_rules import SystemStatus
from monitoring.match_page import match_page
from monitoring.metrics import exposition
from monitoring.queries import DatabaseReadError, database_read, workers_at_work
from scraping.models.process import SILENT_AFTER
from victoryline.lib.http.error_pages import answer

MAX_CHOICE = 80
SCORES_ARE_HIDDEN = "Matches are shown after a login to the admin, and over the API with a token."
View = Callable[..., HttpResponse]


def build_health(evaluation: Evaluation) -> Published:
    document = health_document(evaluation)
    code = 503 if document["status"] == SystemStatus.DOWN else 200
    return Published(orjson.dumps(document), code, evaluation.now)


def build_status(evaluation: Evaluation) -> Published:
    return Published(orjson.dumps(status_document(evaluation)), 200, evaluation.now)


def open_page(view: View) -> View:
    """Allows GET and HEAD only, and no cache."""
    return csrf_exempt(require_safe(never_cache(view)))


published_health = PublishedDocument("health_document", build_health)
published_status = PublishedDocument("health_summary", build_status)


@open_page
def health(_: HttpRequest) -> HttpResponse:
    if not settings.CONFIG.health_check_enabled:
        raise Http404
    published = published_health.get()
    return _json(published.body, status=published.status_code)


@open_page
def live(_: HttpRequest) -> HttpResponse:
    """Answers while the process runs; makes no query."""
    return _json(b'{"status":"live"}')


@open_page
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
            if not _are_migrations_applied():
                return ["migrations are not applied: run manage.py migrate"]
            if not workers_at_work(now):
                return [f"no worker has sent a heartbeat for {SILENT_AFTER.total_seconds():.0f} s"]
    except DatabaseReadError as error:
        return [f"the database is away ({error})"]
    return []


def _are_migrations_applied() -> bool:
    """Applied migrations stay applied, so a positive answer is kept for the life of the process."""
    if not _applied_migrations:
        executor = MigrationExecutor(connection)
        if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
            _applied_migrations.append(True)
    return bool(_applied_migrations)


_applied_migrations: list[bool] = []


@open_page
def status(request: HttpRequest) -> HttpResponse:
    return _json(_status_for(request))


def _status_for(request: HttpRequest) -> bytes:
    document = published_status.get().body
    return document if access.may_see_scores(request) else access.without_matches(document)


@open_page
def prometheus(request: HttpRequest) -> HttpResponse:
    if not settings.CONFIG.enable_prometheus_metrics:
        raise Http404
    if refusal := access.refuse_metrics(request):
        return refusal
    document = exposition.published if request.GET.get("scope") == "process" else exposition.whole
    return HttpResponse(document.get().body, content_type=CONTENT_TYPE_LATEST)


@open_page
def page(request: HttpRequest) -> HttpResponse:
    summary = orjson.loads(_status_for(request))
    filters = _filters(request, summary["matches"])
    chosen = {each["name"]: each["chosen"] for each in filters}
    summary["matches"] = [match for match in summary["matches"] if _is_shown(match, chosen)]
    titles = {"live": "Live", "upcoming": "Coming up", "finished": "Finished"}
    groups = [
        {"name": name, "title": title, "matches": [match for match in summary["matches"] if match["group"] == name]}
        for name, title in titles.items()
    ]
    failures = f"{summary.get('failure_ratio', 0.0) * 100:.1f}"
    context = {"summary": summary, "groups": groups, "failure_percent": failures, "filters": filters}
    return render(request, "status/page.html", context)


def _filters(request: HttpRequest, matches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the filters of the status page with their choices, those of the matches that are there."""
    choices = {
        "sport": {match["sport"] for match in matches},
        "status": {match["status"] for match in matches},
        "source": {name for match in matches for name in match["source"].split(", ") if name},
    }
    return [
        {"name": name, "choices": sorted(values | {chosen} - {""}), "chosen": chosen}
        for name, values in choices.items()
        for chosen in (request.GET.get(name, "")[:MAX_CHOICE],)
    ]


def _is_shown(match: dict[str, Any], chosen: dict[str, str]) -> bool:
    is_source = chosen["source"] in ("", *match["source"].split(", "))
    return is_source and all(chosen[name] in ("", match[name]) for name in ("sport", "status"))


@open_page
def match(request: HttpRequest, name: str) -> HttpResponse:
    """GET /match/{key}: one match, for everyone who may see the scores of the status page."""
    if not access.may_see_scores(request):
        return answer(request, 403, SCORES_ARE_HIDDEN)
    try:
        with database_read():
            return render(request, "status/match.html", match_page(name, timezone.now()))
    except DatabaseReadError:
        return answer(request, 503)


def _json(body: bytes, status: int = 200) -> HttpResponse:
    return HttpResponse(body, status=status, content_type="application/json")
