"""Alerts in the admin: state, notifications, acknowledgement. Read-only apart from the actions."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.forms import BaseDialogForm

from monitoring.admin.messages import keys_of, links, page_of, state_of
from monitoring.alerts import alert_keys
from monitoring.alerts.alert_keys import kind_of
from monitoring.alerts.registry import acknowledge, mute, unmute
from monitoring.models import Alert, Severity
from victoryline.lib.admin import (
    BAD,
    CAREFUL,
    GOOD,
    HistoryAdmin,
    after_dialog,
    asks_first,
    json_block,
    report_outcome,
    span,
    username,
)

SEVERITY_COLOURS = {Severity.CRITICAL.value: BAD, Severity.WARNING.value: CAREFUL}
MORNING = time(6, 0)
MAX_SHOWN = 10


class IsOpen(admin.SimpleListFilter):
    title = "open"
    parameter_name = "open"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [("yes", "Yes"), ("no", "No")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Alert]) -> QuerySet[Alert]:
        if self.value() in {"yes", "no"}:
            return queryset.filter(closed_at__isnull=self.value() == "yes")
        return queryset


@admin.register(Alert)
class AlertAdmin(HistoryAdmin):
    none_yet = "No alert has been raised yet."
    list_display = (
        "shown_severity",
        "summary",
        "shown_state",
        "shown_notified",
        "shown_handling",
        "opened_at",
        "count",
    )
    list_display_links = ("summary",)
    list_filter = (IsOpen, "severity")
    search_fields = ("key", "summary", "acknowledged_by")
    ordering = (F("closed_at").desc(nulls_first=True), "severity", "-opened_at")
    date_hierarchy = "opened_at"
    actions = ("acknowledge", "mute_for_an_hour", "mute_until_tomorrow", "unmute")
    actions_detail = ("acknowledge_one", "mute_one", "unmute_one")
    fieldsets = (
        (None, {"fields": ("summary", "severity", "state", "what_is_safe", "what_to_do", "see_also")}),
        ("Seen", {"fields": ("key", "opened_at", "last_seen_at", "closed_at", "count", "shown_detail")}),
        ("Notifications", {"fields": ("shown_notified", "told_over_at", "shown_handling", "shown_messages")}),
    )
    readonly_fields = (
        *(
            "state",
            "what_is_safe",
            "what_to_do",
            "see_also",
            "shown_detail",
            "shown_notified",
            "shown_handling",
            "shown_messages",
        ),
    )

    @display(description="severity", label=SEVERITY_COLOURS)  # type: ignore[untyped-decorator]
    def shown_severity(self, alert: Alert) -> str:
        return alert.severity

    @display(description="state", label={"open": BAD, "closed": GOOD})  # type: ignore[untyped-decorator]
    def shown_state(self, alert: Alert) -> tuple[str, str]:
        return "open" if alert.closed_at is None else "closed", self.state(alert)

    @admin.display(description="state")
    def state(self, alert: Alert) -> str:
        if alert.closed_at is None:
            return f"open for {span(alert.opened_at, timezone.now())}"
        return f"closed after {span(alert.opened_at, alert.closed_at)}"

    @admin.display(description="notified")
    def shown_notified(self, alert: Alert) -> str:
        if not alert.told_count or alert.told_at is None:
            return "when it closed" if alert.told_over_at else "not yet"
        times = "once" if alert.told_count == 1 else f"{alert.told_count} times"
        return f"{times}, {span(alert.told_at, timezone.now())} ago"

    @admin.display(description="handling")
    def shown_handling(self, alert: Alert) -> str:
        notes = [f"acknowledged by {alert.acknowledged_by}"] if alert.acknowledged_by else []
        if alert.muted_until and alert.muted_until > timezone.now():
            notes.append(f"muted until {alert.muted_until:%d %b %H:%M} UTC")
        return ", ".join(notes) or "-"

    @admin.display(description="what is safe")
    def what_is_safe(self, alert: Alert) -> str:
        return kind_of(alert.key).safe

    @admin.display(description="what to do")
    def what_to_do(self, alert: Alert) -> str:
        return kind_of(alert.key).action

    @admin.display(description="see also")
    def see_also(self, alert: Alert) -> SafeString:
        url = cause_url(alert)
        return links([(url, "the page that shows its cause")] if url != page_of(alert) else [])

    @admin.display(description="detail")
    def shown_detail(self, alert: Alert) -> SafeString:
        return json_block(alert.detail)

    @admin.display(description="messages")
    def shown_messages(self, alert: Alert) -> SafeString:
        rows = alert.messages.order_by("-pk")[:MAX_SHOWN]
        return links(
            (page_of(row), f"{row.created_at:%d %b %H:%M:%S} by {row.channel}: {row.subject} ({state_of(row)[1]})")
            for row in rows
        )

    def has_operate_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(request.user.has_perm("monitoring.change_alert"))

    @admin.action(description="Acknowledge", permissions=["operate"])
    def acknowledge(self, request: HttpRequest, alerts: QuerySet[Alert]) -> None:
        _acknowledge(request, keys_of(alerts))

    @admin.action(description="Mute for an hour", permissions=["operate"])
    def mute_for_an_hour(self, request: HttpRequest, alerts: QuerySet[Alert]) -> None:
        _mute(request, keys_of(alerts), timezone.now() + timedelta(hours=1))

    @admin.action(description="Mute until tomorrow, 06:00 UTC", permissions=["operate"])
    def mute_until_tomorrow(self, request: HttpRequest, alerts: QuerySet[Alert]) -> None:
        now = timezone.now()
        _mute(request, keys_of(alerts), datetime.combine(now.date() + timedelta(days=1), MORNING, now.tzinfo))

    @admin.action(description="Unmute", permissions=["operate"])
    def unmute(self, request: HttpRequest, alerts: QuerySet[Alert]) -> None:
        _unmute(request, keys_of(alerts))

    @asks_first(
        "Acknowledge",
        icon="person_check",
        permission="operate",
        title="Acknowledge this alert",
        explanation="No repeated messages are sent while it is open; its end is. Your name is shown with the alert.",
        button="Acknowledge",
    )
    def acknowledge_one(self, request: HttpRequest, form: BaseDialogForm, object_id: int) -> HttpResponse:
        _acknowledge(request, [object_id])
        return after_dialog(request, _alert_url(object_id))

    @asks_first(
        "Mute for an hour",
        icon="notifications_off",
        permission="operate",
        title="Mute this alert for an hour",
        explanation="No message is sent until then, also if it closes and opens again. It stays in this list.",
        button="Mute",
    )
    def mute_one(self, request: HttpRequest, form: BaseDialogForm, object_id: int) -> HttpResponse:
        _mute(request, [object_id], timezone.now() + timedelta(hours=1))
        return after_dialog(request, _alert_url(object_id))

    @asks_first(
        "Unmute",
        icon="notifications_active",
        permission="operate",
        title="Unmute this alert",
        explanation="Messages are sent again, at once if none was sent yet.",
        button="Unmute",
    )
    def unmute_one(self, request: HttpRequest, form: BaseDialogForm, object_id: int) -> HttpResponse:
        _unmute(request, [object_id])
        return after_dialog(request, _alert_url(object_id))


def _alert_url(object_id: int) -> str:
    return reverse("admin:monitoring_alert_change", args=[object_id])


def _acknowledge(request: HttpRequest, keys: list[int]) -> None:
    done = acknowledge(keys, actor=username(request), now=timezone.now())
    _report(request, done, len(keys), "{} acknowledged by you: no repeated messages until closed.")


def _mute(request: HttpRequest, keys: list[int], until: datetime) -> None:
    done = mute(keys, until=until, actor=username(request), now=timezone.now())
    _report(request, done, len(keys), f"{{}} muted until {until:%d %b %H:%M} UTC.")


def _unmute(request: HttpRequest, keys: list[int]) -> None:
    done = unmute(keys, actor=username(request), now=timezone.now())
    _report(request, done, len(keys), "{} no longer muted.")


def _report(request: HttpRequest, done: int, chosen: int, text: str) -> None:
    many = "1 alert is" if done == 1 else f"{done} alerts are"
    left = f"{chosen - done} of them {'is' if chosen - done == 1 else 'are'} closed: nothing to do."
    report_outcome(request, done=text.format(many) if done else "", refused=left if chosen > done else "")


def cause_url(alert: Alert) -> str:
    """Returns the admin page that shows the cause of an alert; its own page if there is none."""
    match_id, task_id = alert.detail.get("match_id"), alert.detail.get("task_id")
    if match_id and alert.key.startswith(alert_keys.DEAD):
        return f"{reverse('admin:scraping_scrapetask_changelist')}?ref__match__id__exact={match_id}&state__exact=DEAD"
    if match_id and alert.key.startswith((alert_keys.ERROR_RATE, alert_keys.LAYOUT)):
        return f"{reverse('admin:scraping_scrapeerror_changelist')}?match__id__exact={match_id}"
    if match_id:
        return reverse("admin:scraping_match_change", args=[match_id])
    if task_id:
        return reverse("admin:scraping_scrapetask_change", args=[task_id])
    if alert.key.startswith(alert_keys.TRAFFIC):
        return reverse("admin:scraping_sourceday_changelist")
    if alert.key.startswith((alert_keys.DRIFT, alert_keys.SPARSE)):
        return reverse("admin:scraping_fieldfill_changelist")
    if alert.key.startswith(alert_keys.CHANGED):
        return f"{reverse('admin:scraping_scrapeerror_changelist')}?error_class__exact=drift"
    if alert.key.startswith(alert_keys.DELIVERY):
        return reverse("admin:monitoring_alertmessage_changelist")
    if alert.key == alert_keys.NO_WORKER or alert.key.startswith((alert_keys.MEMORY, alert_keys.QUEUE)):
        return reverse("admin:scraping_worker_changelist")
    if alert.key == alert_keys.GRADE:
        return reverse("admin:monitoring_gradechange_changelist")
    return reverse("admin:monitoring_alert_change", args=[alert.pk])
