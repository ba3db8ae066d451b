"""Alert messages in the admin. Read-only; undelivered messages can be sent again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import display

from monitoring import audit
from monitoring.alerts import message_queue
from monitoring.alerts.channels import configured
from monitoring.models import Alert, AlertMessage
from victoryline.lib.admin import BAD, GOOD, NEWS, HistoryAdmin, json_block, report_outcome, username

MAX_SHOWN = 50


def page_of(row: Alert | AlertMessage) -> str:
    return reverse(f"admin:monitoring_{type(row).__name__.lower()}_change", args=[row.pk])


def links(rows: Iterable[tuple[str, str]]) -> SafeString:
    lines = format_html_join("", '<li><a class="text-primary-600 dark:text-primary-500" href="{}">{}</a></li>', rows)
    return format_html("<ul>{}</ul>", lines) if lines else format_html("{}", "none")


def keys_of(rows: QuerySet[Any]) -> list[int]:
    return list(rows.values_list("pk", flat=True))


def state_of(message: AlertMessage) -> tuple[str, str]:
    """Returns the state for the label's colour, and its text."""
    if message.sent_at:
        return "sent", f"sent after {(message.sent_at - message.created_at).total_seconds():.0f} s"
    if message.given_up_at:
        return "given up", "given up"
    times = {0: "waits", 1: "tried once"}
    return "waits", times.get(message.attempts, f"tried {message.attempts} times")


class WasSent(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [("sent", "Sent"), ("waits", "Waits"), ("given_up", "Given up")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AlertMessage]) -> QuerySet[AlertMessage]:
        if self.value() == "sent":
            return queryset.filter(sent_at__isnull=False)
        if self.value() == "waits":
            return queryset.filter(message_queue.UNSENT)
        return queryset.filter(given_up_at__isnull=False) if self.value() == "given_up" else queryset


@admin.register(AlertMessage)
class AlertMessageAdmin(HistoryAdmin):
    list_display = ("created_at", "channel", "shown_state", "subject", "error")
    list_display_links = ("subject",)
    list_filter = (WasSent, "channel", "severity")
    search_fields = ("subject", "error")
    ordering = ("-id",)
    date_hierarchy = "created_at"
    actions = ("send_again",)
    fieldsets = (
        (None, {"fields": ("subject", "channel", "severity", "state", "error", "shown_alerts")}),
        ("Times", {"fields": ("created_at", "attempts", "next_attempt_at", "sent_at", "given_up_at")}),
        ("Document", {"fields": ("shown_document",)}),
    )
    readonly_fields = ("state", "shown_alerts", "shown_document")

    @property
    def none_yet(self) -> str:  # type: ignore[override]  # a constant elsewhere
        """Returns the text of the empty list: no message yet, or no channel configured."""
        if channels := configured(settings.CONFIG):
            names = ", ".join(channel.label.lower() for channel in channels)
            return f"No message was needed yet. Channels: {names}. Test them: manage.py alerts --test."
        return "No channel is configured. Set ALERT_WEBHOOK_URL, SMTP_URL with ALERT_EMAIL_TO, or SENTRY_DSN."

    def get_queryset(self, request: HttpRequest) -> QuerySet[AlertMessage]:
        rows: QuerySet[AlertMessage] = super().get_queryset(request)
        return rows.prefetch_related(Prefetch("alerts", Alert.objects.only("pk", "summary")))

    @display(description="state", label={"sent": GOOD, "given up": BAD, "waits": NEWS})  # type: ignore[untyped-decorator]
    def shown_state(self, message: AlertMessage) -> tuple[str, str]:
        return state_of(message)

    @admin.display(description="state")
    def state(self, message: AlertMessage) -> str:
        return state_of(message)[1]

    @admin.display(description="alerts")
    def shown_alerts(self, message: AlertMessage) -> SafeString:
        return links((page_of(alert), alert.summary) for alert in message.alerts.all()[:MAX_SHOWN])

    @admin.display(description="document")
    def shown_document(self, message: AlertMessage) -> SafeString:
        return json_block(message.document)

    def has_operate_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(request.user.has_perm("monitoring.change_alertmessage"))

    @admin.action(description="Send again", permissions=["operate"])
    def send_again(self, request: HttpRequest, messages: QuerySet[AlertMessage]) -> None:
        now, chosen = timezone.now(), keys_of(messages)
        done = message_queue.send_again(chosen, now)
        if done:
            audit.record(
                actor=username(request),
                action_type="message_again",
                trigger_condition="requested by an operator",
                target=f"{done} {'message' if done == 1 else 'messages'}",
                now=now,
            )
        left = len(chosen) - done
        report_outcome(
            request,
            done=f"{done} {'is' if done == 1 else 'are'} tried again now." if done else "",
            refused=f"{left} had been sent already." if left else "",
        )
