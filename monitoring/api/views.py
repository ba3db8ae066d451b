"""The open pages about the system itself: /, /health, /health/live, /health/ready, /status, /metrics."""

from __future__ import annotations

from typing import Any

import orjson
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from monitoring import metrics
from monitoring.health import rendered
from monitoring.health.readiness import reasons_not_ready
from monitoring.warm import WarmBrief, keeper

_health = WarmBrief(lambda: rendered.health(is_shared=keeper.is_on), age_of=lambda answer: answer.age_seconds)
_status = WarmBrief(lambda: rendered.status(is_shared=keeper.is_on), age_of=lambda answer: answer.age_seconds)


@csrf_exempt
@require_safe
@never_cache
def health(_: HttpRequest) -> HttpResponse:
    if not settings.CONFIG.health_check_enabled:
        raise Http404
    answer = _health.get()
    return _json(answer.body, status=answer.code)


@csrf_exempt
@require_safe
@never_cache
def live(_: HttpRequest) -> HttpResponse:
    """The process answers; asks nobody else."""
    return _json(b'{"status":"live"}')


@csrf_exempt
@require_safe
@never_cache
def ready(_: HttpRequest) -> HttpResponse:
    reasons = reasons_not_ready(timezone.now())
    answer: dict[str, Any] = {"status": "not ready" if reasons else "ready", "reasons": reasons}
    return _json(orjson.dumps(answer), status=503 if reasons else 200)


@csrf_exempt
@require_safe
@never_cache
def status(_: HttpRequest) -> HttpResponse:
    return _json(_status.get().body)


@csrf_exempt
@require_safe
@never_cache
def prometheus(_: HttpRequest) -> HttpResponse:
    if not settings.CONFIG.enable_prometheus_metrics:
        raise Http404
    return HttpResponse(metrics.render(), content_type=CONTENT_TYPE_LATEST)


@csrf_exempt
@require_safe
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    summary = orjson.loads(_status.get().body)
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
