"""Breakers, with what an operator may do to them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.text import Truncator
from unfold.decorators import display
from unfold.forms import BaseDialogForm

from scraping.configuration import policies
from scraping.models import Breaker, BreakerState, Forced, OutcomeBucket
from scraping.policies.breaker import live_probes
from scraping.policies.budget import retries_left
from scraping.policies.window import Window
from scraping.recovery import breakers, outcomes
from victoryline.lib.admin import (
    BAD,
    CAREFUL,
    GOOD,
    HistoryAdmin,
    LimitedForm,
    after_dialog,
    asks_first,
    tell,
    username,
)

STATE_COLOURS = {
    "closed": GOOD,
    "half open": CAREFUL,
    "open": BAD,
    "forced open": BAD,
    "forced closed": CAREFUL,
}
STATE_WORDS = {
    BreakerState.CLOSED.value: "closed",
    BreakerState.HALF_OPEN.value: "half open",
    BreakerState.OPEN.value: "open",
}
Operation = Callable[[Breaker], object]


class Kind(admin.SimpleListFilter):
    title = "kind"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [("source", "Of a source"), ("match", "Of a match")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Breaker]) -> QuerySet[Breaker]:
        if self.value() in {"source", "match"}:
            return queryset.filter(source__isnull=self.value() == "match")
        return queryset


@admin.register(Breaker)
class BreakerAdmin(HistoryAdmin):
    list_display = (
        "name",
        "shown_state",
        "why",
        "until",
        "permits",
        "failure_count",
        "success_count",
        "total_calls",
        "total_failures",
        "total_rejections",
        "total_opens",
        "last_state_change",
    )
    list_filter = ("state", "forced", Kind)
    search_fields = ("name",)
    ordering = ("-last_state_change",)
    actions = ("reset_selected", "probe_selected")
    actions_detail = ("force_open_one", "force_closed_one", "reset_one", "probe_one")
    readonly_fields = ("shown_state", "until", "permits", "lately")
    fieldsets = (
        (None, {"fields": ("name", "ref", "source", "shown_state", "reason", "until", "permits", "lately")}),
        ("Decided by a person", {"fields": ("forced", "forced_until", "forced_reason", "forced_by")}),
        (
            "Counted",
            {
                "fields": (
                    "failure_count",
                    "success_count",
                    "total_calls",
                    "total_successes",
                    "total_failures",
                    "total_rejections",
                    "total_opens",
                    "last_failure_time",
                    "last_state_change",
                )
            },
        ),
    )

    @display(description="state", label=STATE_COLOURS, ordering="state")  # type: ignore[untyped-decorator]
    def shown_state(self, breaker: Breaker) -> str:
        is_forced = breaker.forced and breaker.forced_until and breaker.forced_until > timezone.now()
        return Forced(breaker.forced).label if is_forced else STATE_WORDS[breaker.state]

    @admin.display(description="why")
    def why(self, breaker: Breaker) -> str:
        return Truncator(breaker.reason).chars(120) or "-"

    @admin.display(description="until", ordering="open_until")
    def until(self, breaker: Breaker) -> str:
        end = breaker.open_until or breaker.forced_until
        return f"{end:%Y-%m-%d %H:%M:%S} UTC" if end else "-"

    @admin.display(description="permits")
    def permits(self, breaker: Breaker) -> str:
        """Which tasks are probing it."""
        live = live_probes(breakers.view_of(breaker), timezone.now())
        return ", ".join(f"task {task} until {end:%H:%M:%S}" for task, end in live.items()) or "-"

    @admin.display(description="lately")
    def lately(self, breaker: Breaker) -> str:
        """The window it is judged by, and its budget of retries."""
        if breaker.source_id is None:
            return "-"
        now, limits = timezone.now(), policies.current()
        since = now - timedelta(seconds=limits.window.window_seconds)
        window = outcomes.windows([breaker.source_id], since=since).get(breaker.source_id, Window())
        return (
            f"{window.calls} calls in {limits.window.window_seconds / 60:g} min, {window.bad} bad "
            f"({window.bad_percent:.0f} %; {limits.window.bad_percent:g} % of at least {limits.window.min_calls} open "
            f"it), {window.retries} of them retries ({retries_left(window, limits.budget)} more allowed)"
        )

    def has_operate_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(request.user.has_perm("scraping.change_breaker"))

    @admin.action(description="Reset and leave to itself", permissions=["operate"])
    def reset_selected(self, request: HttpRequest, rows: QuerySet[Breaker]) -> None:
        _operate(request, list(rows), "Reset", lambda row: _reset(request, row))

    @admin.action(description="Probe now", permissions=["operate"])
    def probe_selected(self, request: HttpRequest, rows: QuerySet[Breaker]) -> None:
        _operate(request, list(rows), "Let probes through", lambda row: _probe(request, row))

    @asks_first(
        "Open",
        icon="block",
        permission="operate",
        title="Open this breaker",
        explanation="No request is made until then; then a few probes decide. Tasks wait; nothing is lost.",
        button="Open",
        form=LimitedForm,
    )
    def force_open_one(self, request: HttpRequest, form: LimitedForm, object_id: int) -> HttpResponse:
        return _force(request, form, object_id, "Opened", breakers.force_open)

    @asks_first(
        "Keep closed",
        icon="check_circle",
        permission="operate",
        title="Keep this breaker closed",
        explanation="Every request is made until then, whatever fails; after that it is judged afresh.",
        button="Keep closed",
        form=LimitedForm,
    )
    def force_closed_one(self, request: HttpRequest, form: LimitedForm, object_id: int) -> HttpResponse:
        return _force(request, form, object_id, "Closed", breakers.force_closed)

    @asks_first(
        "Leave to itself",
        icon="restart_alt",
        permission="operate",
        title="Reset this breaker",
        explanation="It is closed, its failures are forgotten, and it acts by itself again.",
        button="Reset",
    )
    def reset_one(self, request: HttpRequest, form: BaseDialogForm, object_id: int) -> HttpResponse:
        _operate(request, _rows(object_id), "Reset", lambda row: _reset(request, row))
        return _back(request, object_id)

    @asks_first(
        "Probe now",
        icon="troubleshoot",
        permission="operate",
        title="Probe now",
        explanation="It no longer waits: the next tasks are let through, and decide whether it closes.",
        button="Probe",
    )
    def probe_one(self, request: HttpRequest, form: BaseDialogForm, object_id: int) -> HttpResponse:
        _operate(request, _rows(object_id), "Let probes through", lambda row: _probe(request, row))
        return _back(request, object_id)


@admin.register(OutcomeBucket)
class OutcomeBucketAdmin(HistoryAdmin):
    """What the breakers of sources are judged by."""

    list_display = ("starts_at", "source", "calls", "bad", "retries")
    list_filter = ("source",)
    list_select_related = ("source",)
    search_fields = ("source__key", "source__name")
    ordering = ("-starts_at",)


def _reset(request: HttpRequest, row: Breaker) -> object:
    return breakers.reset(row, actor=username(request), now=timezone.now())


def _probe(request: HttpRequest, row: Breaker) -> object:
    return breakers.probe_now(row, actor=username(request), now=timezone.now())


def _force(
    request: HttpRequest, form: LimitedForm, object_id: int, done: str, force: Callable[..., object]
) -> HttpResponse:
    asked = form.cleaned_data

    def operation(row: Breaker) -> object:
        return force(row, minutes=asked["minutes"], reason=asked["reason"], actor=username(request), now=timezone.now())

    _operate(request, _rows(object_id), done, operation)
    return _back(request, object_id)


def _rows(object_id: int) -> list[Breaker]:
    return list(Breaker.objects.filter(pk=object_id))


def _back(request: HttpRequest, object_id: int) -> HttpResponse:
    return after_dialog(request, reverse("admin:scraping_breaker_change", args=[object_id]))


def _operate(request: HttpRequest, rows: list[Breaker], done: str, operation: Operation) -> None:
    refusals = []
    for row in rows:
        try:
            operation(row)
        except breakers.BreakerOperationRefused as refusal:
            refusals.append(str(refusal))
    number = len(rows) - len(refusals)
    tell(
        request,
        done=f"{done}: {number} {'breaker' if number == 1 else 'breakers'}." if number else "",
        refused=f"Not done: {'; '.join(refusals[:5])}." if refusals else "",
    )
