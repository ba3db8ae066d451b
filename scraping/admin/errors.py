"""Failed attempts and the groups that they fall into."""

from __future__ import annotations

from django.contrib import admin

from scraping.models import ErrorGroup, ScrapeError
from victoryline.lib.admin import HistoryAdmin, block


@admin.register(ErrorGroup)
class ErrorGroupAdmin(HistoryAdmin):
    list_display = ("error_type", "error_class", "source", "count", "sample_message", "first_seen_at", "last_seen_at")
    list_filter = ("error_class", "error_type", "source")
    list_select_related = ("source",)
    search_fields = ("sample_message", "error_type", "fingerprint")
    ordering = ("-last_seen_at",)


@admin.register(ScrapeError)
class ScrapeErrorAdmin(HistoryAdmin):
    list_display = (
        "timestamp",
        "error_class",
        "error_type",
        "match",
        "operation",
        "http_status",
        "retry_attempt",
        "resolved",
        "error_message",
    )
    list_filter = ("error_class", "error_type", "resolved", "resolution_method")
    list_select_related = ("match",)
    search_fields = ("error_message", "error_type", "match__title", "url")
    ordering = ("-id",)
    exclude = ("stack_trace", "evidence", "error_message")
    readonly_fields = ("shown_message", "shown_stack", "shown_evidence")

    @admin.display(description="message")
    def shown_message(self, error: ScrapeError) -> str:
        return block(error.error_message)

    @admin.display(description="stack trace")
    def shown_stack(self, error: ScrapeError) -> str:
        return block(error.stack_trace)

    @admin.display(description="evidence")
    def shown_evidence(self, error: ScrapeError) -> str:
        return block(error.evidence)
