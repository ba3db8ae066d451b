"""Who is at work: scrapers, workers, and the scheduler's lease."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.decorators import display

from scraping.models import HealthStatus, Lease, Scraper, Worker, WorkerOrder
from scraping.recovery import worker_commands
from victoryline.lib.admin import BAD, CAREFUL, GOOD, HistoryAdmin, megabytes, username

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


@admin.register(Worker)
class WorkerAdmin(HistoryAdmin):
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
    actions = ("recycle_selected",)

    def has_operate_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(request.user.has_perm("scraping.add_workerorder"))

    @admin.action(description="Replace the browser by a fresh one", permissions=["operate"])
    def recycle_selected(self, request: HttpRequest, workers: QuerySet[Worker]) -> None:
        now, asked = timezone.now(), []
        for name in workers.values_list("worker_id", flat=True):
            asked += worker_commands.recycle(
                name, reason="asked for in the console", actor=username(request), now=now
            ).workers
        if asked:
            words = (
                "1 worker replaces its browser" if len(asked) == 1 else f"{len(asked)} workers replace their browsers"
            )
            messages.success(request, f"{words} when the visits under way are done. Reads go on meanwhile.")
        else:
            messages.warning(request, "None of these workers is at work: nothing was done.")

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
    list_display = ("asked_at", "kind", "source_key", "worker_id", "reason", "actor", "came_of_it")
    none_yet = (
        "No worker was asked for a fresh session or a fresh browser yet, neither by the scheduler nor by a person."
    )
    list_filter = ("kind", "actor")
    search_fields = ("worker_id", "reason")
    ordering = ("-asked_at",)

    @admin.display(description="what came of it")
    def came_of_it(self, order: WorkerOrder) -> str:
        if order.done_at:
            return f"{order.outcome or 'done'}, after {(order.done_at - order.asked_at).total_seconds():.0f} s"
        return "under way" if order.taken_at else "waits for its worker"


@admin.register(Lease)
class LeaseAdmin(HistoryAdmin):
    list_display = ("name", "holder", "fence", "expires_at")
    search_fields = ("name", "holder")
    ordering = ("name",)
