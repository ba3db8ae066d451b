"""The sessions through which sources are read, and the proxies (by their hashes) behind them. To look at only."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from unfold.decorators import display

from scraping.models import ProxySession
from victoryline.lib.admin import BAD, CAREFUL, GOOD, NEWS, HistoryAdmin


@admin.register(ProxySession)
class ProxySessionAdmin(HistoryAdmin):
    list_display = (
        "session_id", "source", "shown_state", "shown_proxy", "geo", "successes", "failures", "shown_bytes",
        "created_at", "last_used_at", "end_reason",
    )  # fmt: skip
    list_filter = ("source", "geo", "end_reason")
    list_select_related = ("source",)
    search_fields = ("session_id", "proxy_hash", "worker_id")
    ordering = ("-last_used_at",)
    fields = (
        "session_id", "source", "worker_id", "shown_state", "shown_proxy", "geo", "created_at", "last_used_at",
        "ended_at", "end_reason", "successes", "failures", "shown_bytes", "quarantined_until",
    )  # fmt: skip
    readonly_fields = ("shown_state", "shown_proxy", "shown_bytes")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProxySession]:
        rows: QuerySet[ProxySession] = super().get_queryset(request)
        return rows.select_related("source")

    @display(  # type: ignore[untyped-decorator]
        description="state", label={"open": GOOD, "refused": BAD, "quarantine": CAREFUL, "ended": NEWS}
    )
    def shown_state(self, session: ProxySession) -> tuple[str, str]:
        if session.quarantined_until is not None and session.quarantined_until > timezone.now():
            return "quarantine", "in quarantine"
        if session.ended_at is None:
            return "open", "open"
        return ("refused", "refused") if session.end_reason.startswith("blocked") else ("ended", "ended")

    @admin.display(description="proxy", ordering="proxy_hash", empty_value="none")
    def shown_proxy(self, session: ProxySession) -> str:
        return session.proxy_hash or "none"

    @admin.display(description="received", ordering="bytes_in")
    def shown_bytes(self, session: ProxySession) -> str:
        return str(filesizeformat(session.bytes_in))
