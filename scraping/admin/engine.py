"""Admin of scrapers, workers, worker commands and the scheduler's lease."""

from __future__ import annotations

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from scraping.models import HealthStatus, Lease, Scraper, Worker, WorkerOrder
from scraping.recovery import worker_commands
from victoryline.lib.admin import BAD, CAREFUL, GOOD, HistoryAdmin, column, megabytes, presence_filter, username
from victoryline.lib.operator_actions import OperatorAction, OperatorActionsMixin, OperatorCall, for_each
from victoryline.lib.operators import OperationRefused

RECYCLE_PERMISSION = "scraping.add_workerorder"
HEALTH_COLOURS = {
    HealthStatus.HEALTHY.value: GOOD,
    HealthStatus.DEGRADED.value: CAREFUL,
    HealthStatus.FAILING.value: BAD,
}


def _health(scraper: Scraper) -> str:
    return "-" if scraper.stopped_at else scraper.health_status(timezone.now()).value


@admin.register(Scraper)
class ScraperAdmin(HistoryAdmin):
    list_display = (
        "ref", "match", "health", "total_updates", "error_count", "total_errors", "last_latency_ms", "polling_interval",
        "worker_id", "start_time", "last_update_time", "stopped_at", "stop_reason",
    )  # fmt: skip
    list_filter = (presence_filter("active", "stopped_at", absent="yes", present="no"), "ref__source")
    joined = ("ref__match", "ref__source")
    search_fields = ("ref__source_event_id", "ref__match__title", "worker_id", "scraper_id")
    ordering = ("-start_time",)
    match = column("match", lambda scraper: scraper.ref.match)
    health = column("health", _health, label=HEALTH_COLOURS)


def _recycle(pk: int, call: OperatorCall) -> None:
    name = Worker.objects.values_list("worker_id", flat=True).get(pk=pk)
    request = worker_commands.recycle(name, reason="requested in the admin", actor=call.actor, now=call.now)
    if not request.workers:
        raise OperationRefused(f"{name} is not running")


@admin.register(Worker)
class WorkerAdmin(OperatorActionsMixin, HistoryAdmin):
    list_display = (
        "worker_id", "is_alive", "active_tasks", "memory", "peak_memory", "cpu_percent", "browser_launches",
        "started_at", "heartbeat_at", "stopped_at", "process_count", "context_count", "page_count", "host", "pid",
    )  # fmt: skip
    list_filter = ("host",)
    search_fields = ("worker_id", "host")
    ordering = ("-heartbeat_at",)
    operate_permission = RECYCLE_PERMISSION
    operated_noun = ("worker's browser", "workers' browsers")
    operator_actions = (
        OperatorAction(
            name="recycle",
            label="Replace the browser",
            applied="Replacing",
            explanation="The browser is replaced when its running visits have finished. Reads go on meanwhile.",
            icon="autorenew",
            is_on_page=False,
            run=for_each(_recycle),
        ),
    )
    is_alive = column("alive", lambda worker: worker.is_at_work(timezone.now()), boolean=True)
    memory = column("memory", lambda worker: megabytes(worker.memory_bytes), ordering="memory_bytes")
    peak_memory = column("peak", lambda worker: megabytes(worker.peak_memory_bytes), ordering="peak_memory_bytes")


def _outcome(order: WorkerOrder) -> str:
    if order.done_at:
        return f"{order.outcome or 'done'}, after {(order.done_at - order.asked_at).total_seconds():.0f} s"
    return "running" if order.taken_at else "not taken yet"


@admin.register(WorkerOrder)
class WorkerOrderAdmin(HistoryAdmin):
    list_display = ("asked_at", "kind", "source_key", "worker_id", "reason", "actor", "shown_outcome")
    none_yet = (
        "No worker was commanded to change a session or a browser yet, neither by the scheduler nor by an operator."
    )
    list_filter = ("kind", "actor")
    search_fields = ("worker_id", "reason")
    ordering = ("-asked_at",)
    shown_outcome = column("outcome", _outcome)


@admin.register(Lease)
class LeaseAdmin(HistoryAdmin):
    list_display = ("name", "holder", "fence", "expires_at")
    search_fields = ("name", "holder")
    ordering = ("name",)


@never_cache
@require_POST
def recycle(request: HttpRequest) -> HttpResponse:
    """POST /admin/recycle, for staff: replaces the browser of all workers, or of `worker_id`. `reason` is audited."""
    if not request.user.is_staff or not request.user.has_perm(RECYCLE_PERMISSION):
        raise PermissionDenied
    wanted = request.POST.get("worker_id", "")
    reason = request.POST.get("reason", "").strip() or "requested in the admin"
    requested = worker_commands.recycle(wanted, reason=reason, actor=username(request), now=timezone.now())
    if not requested.workers:
        detail = f"No running worker is named {wanted}." if wanted else "No worker is running, so there is no browser."
        return JsonResponse({"status": "nothing to do", "detail": detail}, status=404 if wanted else 409)
    return JsonResponse({"status": "asked", "workers": requested.workers, "orders": requested.orders}, status=202)
