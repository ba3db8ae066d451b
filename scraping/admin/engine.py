"""Admin of scrapers, workers, worker commands and the scheduler's lease."""

from __future__ import annotations

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST
from unfold.decorators import display

from scraping.models import HealthStatus, Lease, Scraper, Worker, WorkerOrder
from scraping.recovery import worker_commands
from victoryline.lib.admin import BAD, CAREFUL, GOOD, HistoryAdmin, megabytes, username
from victoryline.lib.operator_actions import OperatorAction, OperatorActionsMixin, OperatorCall, for_each
from victoryline.lib.operators import OperationRefused

HEALTH_COLOURS = {
    HealthStatus.HEALTHY.value: GOOD,
    HealthStatus.DEGRADED.value: CAREFUL,
    HealthStatus.FAILING.value: BAD,
}


class IsActive(admin.SimpleListFilter):
    title = "active"
    parameter_name = "active"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [("yes", "Yes"), ("no", "No")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Scraper]) -> QuerySet[Scraper]:
        if self.value() in {"yes", "no"}:
            return queryset.filter(stopped_at__isnull=self.value() == "yes")
        return queryset


@admin.register(Scraper)
class ScraperAdmin(HistoryAdmin):
    list_display = (
        "ref",
        "match",
        "health",
        "total_updates",
        "error_count",
        "total_errors",
        "last_latency_ms",
        "polling_interval",
        "worker_id",
        "start_time",
        "last_update_time",
        "stopped_at",
        "stop_reason",
    )
    list_filter = (IsActive, "ref__source")
    list_select_related = ("ref__match", "ref__source")
    search_fields = ("ref__source_event_id", "ref__match__title", "worker_id", "scraper_id")
    ordering = ("-start_time",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Scraper]:
        rows: QuerySet[Scraper] = super().get_queryset(request)
        return rows.select_related("ref__match", "ref__source").defer(
            "ref__payload", "ref__match__payload", "ref__match__provenance"
        )

    @admin.display(description="match")
    def match(self, scraper: Scraper) -> str:
        return str(scraper.ref.match)

    @display(description="health", label=HEALTH_COLOURS)  # type: ignore[untyped-decorator]
    def health(self, scraper: Scraper) -> str:
        return "-" if scraper.stopped_at else scraper.health_status(timezone.now()).value


def _recycle(pk: int, call: OperatorCall) -> None:
    name = Worker.objects.values_list("worker_id", flat=True).get(pk=pk)
    request = worker_commands.recycle(name, reason="requested in the admin", actor=call.actor, now=call.now)
    if not request.workers:
        raise OperationRefused(f"{name} is not running")


@admin.register(Worker)
class WorkerAdmin(OperatorActionsMixin, HistoryAdmin):
    list_display = (
        "worker_id",
        "is_alive",
        "active_tasks",
        "memory",
        "peak_memory",
        "cpu_percent",
        "browser_launches",
        "started_at",
        "heartbeat_at",
        "stopped_at",
        "process_count",
        "context_count",
        "page_count",
        "host",
        "pid",
    )
    list_filter = ("host",)
    search_fields = ("worker_id", "host")
    ordering = ("-heartbeat_at",)
    operate_permission = "scraping.add_workerorder"
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

    @admin.display(description="alive", boolean=True)
    def is_alive(self, worker: Worker) -> bool:
        return worker.is_at_work(timezone.now())

    @admin.display(description="memory", ordering="memory_bytes")
    def memory(self, worker: Worker) -> str:
        return megabytes(worker.memory_bytes)

    @admin.display(description="peak", ordering="peak_memory_bytes")
    def peak_memory(self, worker: Worker) -> str:
        return megabytes(worker.peak_memory_bytes)


@admin.register(WorkerOrder)
class WorkerOrderAdmin(HistoryAdmin):
    list_display = ("asked_at", "kind", "source_key", "worker_id", "reason", "actor", "shown_outcome")
    none_yet = (
        "No worker was commanded to change a session or a browser yet, neither by the scheduler nor by an operator."
    )
    list_filter = ("kind", "actor")
    search_fields = ("worker_id", "reason")
    ordering = ("-asked_at",)

    @admin.display(description="outcome")
    def shown_outcome(self, order: WorkerOrder) -> str:
        if order.done_at:
            return f"{order.outcome or 'done'}, after {(order.done_at - order.asked_at).total_seconds():.0f} s"
        return "running" if order.taken_at else "not taken yet"


@admin.register(Lease)
class LeaseAdmin(HistoryAdmin):
    list_display = ("name", "holder", "fence", "expires_at")
    search_fields = ("name", "holder")
    ordering = ("name",)


RECYCLE_PERMISSION = "scraping.add_workerorder"


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
