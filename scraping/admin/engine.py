"""Admin of scrapers, workers, worker commands, and breakers with their overrides."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.utils.text import Truncator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from scraping.configuration import policies
from scraping.models import Breaker, HealthStatus, Scraper, Worker, WorkerCommand
from scraping.policies.breaker import live_probes
from scraping.policies.source_breaker import CallWindow
from scraping.recovery import breakers, worker_commands
from victoryline.lib.admin import (
    BAD,
    CAREFUL,
    GOOD,
    HistoryAdmin,
    LimitedForm,
    ReasonForm,
    column,
    megabytes,
    presence_filter,
    username,
)
from victoryline.lib.operator_actions import OperatorAction, OperatorActionsMixin, OperatorCall, Run, for_each
from victoryline.lib.operators import OperationRefused

RECYCLE_PERMISSION = "scraping.add_workercommand"
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
    request = worker_commands.recycle(name, reason=call.reason, actor=call.actor, now=call.now)
    if not request.workers:
        raise OperationRefused(f"{name} is not running")


def _last_command(worker: Worker) -> str:
    """Describes the newest command to the worker: what was asked, why, and what came of it."""
    command = WorkerCommand.objects.filter(worker_id=worker.worker_id).order_by("-pk").first()
    if command is None:
        return "-"
    return f"{command.get_kind_display()} by {command.actor}, {command.asked_at:%H:%M:%S} UTC: {_outcome(command)}"


@admin.register(Worker)
class WorkerAdmin(OperatorActionsMixin, HistoryAdmin):
    list_display = (
        "worker_id", "is_alive", "active_tasks", "memory", "peak_memory", "cpu_percent", "browser_launches",
        "started_at", "heartbeat_at", "stopped_at",
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
            form=ReasonForm,
            run=for_each(_recycle),
        ),
    )
    readonly_fields = ("last_command",)
    last_command = column("last command", _last_command)
    is_alive = column("alive", lambda worker: worker.is_at_work(timezone.now()), boolean=True)
    memory = column("memory", lambda worker: megabytes(worker.memory_bytes), ordering="memory_bytes")
    peak_memory = column("peak", lambda worker: megabytes(worker.peak_memory_bytes), ordering="peak_memory_bytes")


def _outcome(command: WorkerCommand) -> str:
    if command.done_at:
        return f"{command.outcome or 'done'}, after {(command.done_at - command.asked_at).total_seconds():.0f} s"
    return "running" if command.taken_at else "not taken yet"


@admin.register(WorkerCommand)
class WorkerCommandAdmin(HistoryAdmin):
    list_display = ("asked_at", "kind", "source_key", "worker_id", "reason", "actor", "shown_outcome")
    none_yet = (
        "No worker was commanded to change a session or a browser yet, neither by the scheduler nor by an operator."
    )
    list_filter = ("kind", "actor")
    search_fields = ("worker_id", "reason")
    ordering = ("-asked_at",)
    shown_outcome = column("outcome", _outcome)


@never_cache
@require_POST
def recycle(request: HttpRequest) -> HttpResponse:
    """POST /admin/recycle, for staff: replaces the browser of all workers, or of `worker_id`. `reason` is audited."""
    if not admin.site.has_permission(request) or not request.user.has_perm(RECYCLE_PERMISSION):
        raise PermissionDenied
    wanted = request.POST.get("worker_id", "")
    reason = request.POST.get("reason", "").strip() or "requested in the admin"
    requested = worker_commands.recycle(wanted, reason=reason, actor=username(request), now=timezone.now())
    if not requested.workers:
        detail = f"No running worker is named {wanted}." if wanted else "No worker is running, so there is no browser."
        return JsonResponse({"status": "nothing to do", "detail": detail}, status=404 if wanted else 409)
    return JsonResponse({"status": "asked", "workers": requested.workers, "commands": requested.commands}, status=202)


STATE_COLOURS = {"closed": GOOD, "half open": CAREFUL, "open": BAD, "forced open": BAD, "forced closed": CAREFUL}


def _breaker(pk: int) -> Breaker:
    return Breaker.objects.get(pk=pk)


def _force(force: Callable[..., object]) -> Run:
    def apply(pk: int, call: OperatorCall) -> None:
        force(_breaker(pk), minutes=call.values["minutes"], reason=call.reason, actor=call.actor, now=call.now)

    return for_each(apply)


def _state(breaker: Breaker) -> str:
    return breaker.shown_state(timezone.now())


def _until(breaker: Breaker) -> str:
    end = breaker.open_until or breaker.forced_until
    return f"{end:%Y-%m-%d %H:%M:%S} UTC" if end else "-"


def _permits(breaker: Breaker) -> str:
    live = live_probes(breakers.view_of(breaker), timezone.now())
    return ", ".join(f"task {task} until {end:%H:%M:%S}" for task, end in live.items()) or "-"


def _lately(breaker: Breaker) -> str:
    """Describes the window that decides about opening."""
    if breaker.source_id is None:
        return "-"
    limits = policies.current()
    since = timezone.now() - timedelta(seconds=limits.window.window_seconds)
    window = breakers.windows(since=since).get(breaker.source_id, CallWindow())
    return (
        f"{window.calls} calls in {limits.window.window_seconds / 60:g} min, {window.bad} bad "
        f"({window.bad_percent:.0f} %; {limits.window.bad_percent:g} % of at least {limits.window.min_calls} open "
        f"it), {window.retries} of them retries"
    )


@admin.register(Breaker)
class BreakerAdmin(OperatorActionsMixin, HistoryAdmin):
    list_display = (
        "name", "shown_state", "why", "until", "permits", "failure_count", "success_count", "total_calls",
        "total_failures", "total_rejections", "total_opens", "last_state_change",
    )  # fmt: skip
    list_filter = ("state", "forced", presence_filter("kind", "source", absent="match", present="source"))
    search_fields = ("name",)
    ordering = ("-last_state_change",)
    operate_permission = "scraping.change_breaker"
    operated_noun = ("breaker", "breakers")
    operator_actions = (
        OperatorAction(
            name="force_open",
            label="Force open",
            applied="Opened",
            explanation="No request is made until the end you give; then probes decide. Tasks wait, nothing is lost.",
            icon="block",
            form=LimitedForm,
            undo="reset",
            run=_force(breakers.force_open),
        ),
        OperatorAction(
            name="force_closed",
            label="Force closed",
            applied="Closed",
            explanation="Every request passes until the end you give, even if requests fail; then counting starts from "
            "zero.",
            icon="check_circle",
            form=LimitedForm,
            undo="reset",
            run=_force(breakers.force_closed),
        ),
        OperatorAction(
            name="reset",
            label="Reset",
            applied="Reset",
            explanation="The breaker is closed, its failure count is cleared, and it acts automatically again.",
            icon="restart_alt",
            run=for_each(lambda pk, call: breakers.reset(_breaker(pk), actor=call.actor, now=call.now)),
        ),
        OperatorAction(
            name="probe",
            label="Probe now",
            applied="Probing",
            explanation="The next tasks pass as probes at once and decide whether the breaker closes.",
            icon="troubleshoot",
            run=for_each(lambda pk, call: breakers.probe_now(_breaker(pk), actor=call.actor, now=call.now)),
        ),
    )
    counters = (
        "failure_count", "success_count", "total_calls", "total_successes", "total_failures", "total_rejections",
        "total_opens", "last_failure_time", "last_state_change",
    )  # fmt: skip
    fieldsets = (
        (None, {"fields": ("name", "ref", "source", "shown_state", "reason", "until", "permits", "lately")}),
        ("Override", {"fields": ("forced", "forced_until", "forced_reason", "forced_by")}),
        ("Counted", {"fields": counters}),
    )
    shown_state = column("state", _state, label=STATE_COLOURS, ordering="state")
    why = column("why", lambda breaker: Truncator(breaker.reason).chars(120) or "-")
    until = column("until", _until, ordering="open_until")
    permits = column("permits", _permits)
    lately = column("lately", _lately)
