"""Sources: the one thing of scraping that operators edit. Takes effect at the next scheduler tick."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from scraping.admin.source_forms import SourceForm
from scraping.models import Source
from victoryline.lib.admin import ConsoleAdmin, json_block


@admin.register(Source)
class SourceAdmin(ConsoleAdmin):
    form = SourceForm
    list_display = (
        "name",
        "key",
        "sport",
        "is_enabled",
        "precedence_weight",
        "max_concurrency",
        "min_interval_seconds",
        "robots_policy",
        "last_discovery_at",
    )
    list_editable = ("is_enabled",)
    list_filter = ("is_enabled", "sport", "robots_policy")
    search_fields = ("key", "name", "base_url")
    readonly_fields = (
        *("key", "sport", "base_url", "last_discovery_at", "shown_metadata"),
        *("adapter_key", "shown_hosts", "allows_private_addresses", "token_url"),  # config/sources.yaml says these
    )
    fieldsets = (
        (None, {"fields": ("name", "key", "sport", "base_url", "is_enabled", "last_discovery_at")}),
        (
            "Limits",
            {
                "fields": (
                    "max_concurrency",
                    "min_interval_seconds",
                    "burst_allowance",
                    "daily_megabytes",
                    "max_attempts",
                    "retry_base_seconds",
                    "robots_policy",
                )
            },
        ),
        ("Reading", {"fields": ("adapter_key", "read_way", "selectors")}),
        ("Reach", {"fields": ("shown_hosts", "allows_private_addresses", "uses_proxy", "token_url")}),
        ("Trust", {"fields": ("precedence_weight", "shown_metadata")}),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """A source needs an adapter, so it comes with the code and its configuration."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Source | None = None) -> bool:
        """Its history hangs on it: switch it off instead."""
        return False

    @admin.display(description="hosts that may be reached")
    def shown_hosts(self, source: Source) -> str:
        return ", ".join(sorted(source.site.hosts))

    @admin.display(description="metadata")
    def shown_metadata(self, source: Source) -> str:
        return json_block(source.metadata)
