"""Admin of match references, snapshots and events."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from scraping.models import MatchEvent, MatchRef, Snapshot
from victoryline.lib.admin import HistoryAdmin, json_block


@admin.register(MatchRef)
class MatchRefAdmin(HistoryAdmin):
    list_display = (
        "key",
        "match",
        "source",
        "is_watched",
        "next_poll_at",
        "polling_interval_seconds",
        "read_mode",
        "read_mode_reason",
        "events_through",
        "events_seen",
    )
    list_filter = ("source", "is_watched", "read_mode")
    list_select_related = ("source", "match")
    search_fields = ("source_event_id", "url", "match__title")
    ordering = ("-id",)
    exclude = ("payload",)
    readonly_fields = ("shown_payload",)

    @admin.display(description="payload")
    def shown_payload(self, ref: MatchRef) -> str:
        return json_block(ref.payload)


@admin.register(Snapshot)
class SnapshotAdmin(HistoryAdmin):
    list_display = ("match", "sequence", "data_source", "update_latency_ms", "captured_at", "created_at")
    list_filter = ("data_source",)
    list_select_related = ("match",)
    search_fields = ("match__title", "checksum")
    ordering = ("-id",)
    fields = (
        "match",
        "sequence",
        "checksum",
        "data_source",
        "scraper_id",
        "update_latency_ms",
        "captured_at",
        "created_at",
        "shown_delta",
        "shown_payload",
        "shown_provenance",
    )
    readonly_fields = ("shown_delta", "shown_payload", "shown_provenance")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Snapshot]:
        rows: QuerySet[Snapshot] = super().get_queryset(request)
        return rows.defer("match__payload", "match__provenance").select_related("match")

    @admin.display(description="delta")
    def shown_delta(self, snapshot: Snapshot) -> str:
        return json_block(snapshot.delta)

    @admin.display(description="payload")
    def shown_payload(self, snapshot: Snapshot) -> str:
        return json_block(snapshot.payload)

    @admin.display(description="provenance")
    def shown_provenance(self, snapshot: Snapshot) -> str:
        return json_block(snapshot.provenance)


@admin.register(MatchEvent)
class MatchEventAdmin(HistoryAdmin):
    list_display = (
        "event_id",
        "match",
        "kind",
        "action",
        "revision",
        "is_current",
        "innings",
        "over",
        "minute",
        "description",
        "created_at",
    )
    list_filter = ("action", "is_current", "is_critical", "source")
    list_select_related = ("match", "source")
    search_fields = ("event_id", "kind", "description", "match__title")
    ordering = ("-id",)
    exclude = ("detail",)
    readonly_fields = ("shown_detail",)

    @admin.display(description="detail")
    def shown_detail(self, event: MatchEvent) -> str:
        return json_block(event.detail)
