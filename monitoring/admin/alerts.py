"""Alerts in the admin. Read-only apart from the operator actions."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import admin
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from monitoring.alerts import alert_keys
from monitoring.alerts.alert_keys import kind_of
from monitoring.alerts.registry import acknowledge, mute, unmute
from monitoring.models import Alert, Channel, Severity
from monitoring.queries import live_matches, open_alerts
from scraping.models import Breaker
from victoryline.lib.admin import BAD, CAREFUL, GOOD, HistoryAdmin, LimitedForm, column, presence_filter, span
from victoryline.lib.operator_actions import OperatorAction, OperatorActionsMixin, for_each

SEVERITY_COLOURS = {Severity.CRITICAL.value: BAD, Severity.WARNING.value: CAREFUL}
OF_SOURCES = (alert_keys.BLOCKED, alert_keys.CHALLENGE, alert_keys.ROBOTS)


def _page_of(alert: Alert) -> str:
    return reverse("admin:monitoring_alert_change", args=[alert.pk])


def _links(rows: Iterable[tuple[str, str]]) -> SafeString:
    lines = format_html_join("", '<li><a class="text-primary-600 dark:text-primary-500" href="{}">{}</a></li>', rows)
    return format_html("<ul>{}</ul>", lines) if lines else format_html("{}", "none")


def cause_url(alert: Alert) -> str:
    """Returns the admin page that shows the cause of an alert; its own page if there is none."""
    kind, match_id, task_id = kind_of(alert.key), alert.detail.get("match_id"), alert.detail.get("task_id")
    if kind == alert_keys.BREAKER:
        found = Breaker.objects.filter(name=alert.key.removeprefix(kind)).values_list("pk", flat=True).first()
        return reverse("admin:scraping_breaker_change", args=[found]) if found else _page_of(alert)
    if match_id and kind == alert_keys.DEAD:
        return f"{reverse('admin:scraping_scrapetask_changelist')}?ref__match__id__exact={match_id}&state__exact=DEAD"
    if match_id and kind in (alert_keys.ERROR_RATE, alert_keys.LAYOUT):
        return f"{reverse('admin:scraping_scrapeerror_changelist')}?match__id__exact={match_id}"
    if match_id:
        return reverse("admin:scraping_match_change", args=[match_id])
    if task_id:
        return reverse("admin:scraping_scrapetask_change", args=[task_id])
    if kind == alert_keys.CHANGED:
        return f"{reverse('admin:scraping_scrapeerror_changelist')}?error_class__exact=drift"
    if kind in OF_SOURCES:
        return alert_keys.incident_path(alert)
    table = {
        alert_keys.TRAFFIC: "scraping_sourceday",
        alert_keys.DRIFT: "scraping_fieldfill",
        alert_keys.SPARSE: "scraping_fieldfill",
        alert_keys.MEMORY: "scraping_worker",
        alert_keys.QUEUE: "scraping_worker",
        alert_keys.GRADE: "monitoring_gradechange",
    }.get(kind)
    return reverse(f"admin:{table}_changelist") if table else _page_of(alert)


def _alert_state(alert: Alert) -> tuple[str, str]:
    """Returns the state for the label's colour, and its text."""
    if alert.closed_at is None:
        return "open", f"open for {span(alert.opened_at, timezone.now())}"
    return "closed", f"closed after {span(alert.opened_at, alert.closed_at)}"


def _notified(alert: Alert) -> str:
    names = [channel.label for channel in Channel if getattr(alert, channel.sent_column)]
    if not names or alert.notified_at is None:
        return "not yet"
    return f"{' and '.join(names)}, {span(alert.notified_at, timezone.now())} ago"


def _handling(alert: Alert) -> str:
    notes = [f"acknowledged by {alert.acknowledged_by}"] if alert.acknowledged_by else []
    if alert.muted_until and alert.muted_until > timezone.now():
        notes.append(f"muted until {alert.muted_until:%d %b %H:%M} UTC")
    return ", ".join(notes) or "-"


def _see_also(alert: Alert) -> SafeString:
    url, path = cause_url(alert), alert_keys.incident_path(alert)
    pages = [(path, "what happened: the time line")] if path else []
    return _links([*pages, (url, "the page that shows its cause")] if url != _page_of(alert) else pages)


@admin.register(Alert)
class AlertAdmin(OperatorActionsMixin, HistoryAdmin):
    none_yet = "No alert has been raised yet."
    list_display = (
        *("shown_severity", "summary", "shown_state", "shown_notified", "shown_handling"),
        *("opened_at", "count"),
    )
    list_display_links = ("summary",)
    list_filter = (presence_filter("open", "closed_at", absent="yes", present="no"), "severity")
    search_fields = ("key", "summary", "acknowledged_by")
    ordering = (F("closed_at").desc(nulls_first=True), "severity", "-opened_at")
    date_hierarchy = "opened_at"
    fieldsets = (
        (None, {"fields": ("summary", "severity", "shown_state", "what_is_safe", "what_to_do", "see_also")}),
        ("Seen", {"fields": ("key", "opened_at", "last_seen_at", "closed_at", "count", "detail")}),
        ("Notifications", {"fields": ("shown_notified", "shown_handling")}),
    )
    operate_permission = "monitoring.change_alert"
    operated_noun = ("alert", "alerts")
    operator_actions = (
        OperatorAction(
            name="acknowledge",
            label="Acknowledge",
            applied="Acknowledged",
            explanation="Your name is shown with the alert until it closes. Messages are not affected.",
            icon="person_check",
            run=for_each(lambda pk, call: acknowledge(pk, actor=call.actor, now=call.now)),
        ),
        OperatorAction(
            name="mute",
            label="Mute",
            applied="Muted",
            explanation="No message is sent until the end you give, also if it closes and opens again. It stays in "
            "this list.",
            icon="notifications_off",
            form=LimitedForm,
            undo="unmute",
            run=for_each(
                lambda pk, call: mute(pk, until=call.until, reason=call.reason, actor=call.actor, now=call.now)
            ),
        ),
        OperatorAction(
            name="unmute",
            label="Unmute",
            applied="Unmuted",
            explanation="Messages are sent again, at once if none was sent yet.",
            icon="notifications_active",
            run=for_each(lambda pk, call: unmute(pk, actor=call.actor, now=call.now)),
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Alert]:
        """The list leaves out alerts that are over and not closed yet."""
        rows = super().get_queryset(request)
        if not (request.resolver_match and str(request.resolver_match.url_name).endswith("_changelist")):
            return rows
        return rows.filter(Q(closed_at__isnull=False) | Q(pk__in=open_alerts(live_matches(timezone.now()))))

    shown_severity = column("severity", lambda alert: alert.severity, label=SEVERITY_COLOURS)
    shown_state = column("state", _alert_state, label={"open": BAD, "closed": GOOD})
    shown_notified = column("notified", _notified)
    shown_handling = column("handling", _handling)
    what_is_safe = column("what is safe", lambda alert: kind_of(alert.key).safe)
    what_to_do = column("what to do", lambda alert: kind_of(alert.key).action)
    see_also = column("see also", _see_also)
