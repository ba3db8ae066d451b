"""Consumers are edited here; keys are only ended here (`manage.py issue_api_key` makes them, and shows them once)."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils import timezone

from apiauth import keys
from apiauth.models import AccessLog, ApiKey, Consumer
from victoryline.lib.admin import ConsoleAdmin, HistoryAdmin, tell


@admin.register(Consumer)
class ConsumerAdmin(ConsoleAdmin):
    list_display = ("name", "tier", "is_active", "contact", "created_at")
    list_filter = ("tier", "is_active")
    search_fields = ("name", "contact", "consumer_id")
    ordering = ("name",)
    fields = ("name", "contact", "tier", "is_active", "consumer_id", "created_at")
    readonly_fields = ("consumer_id", "created_at")

    def save_model(self, request: HttpRequest, obj: Consumer, form: ModelForm[Consumer], change: bool) -> None:
        if not change:
            obj.created_at = timezone.now()
        super().save_model(request, obj, form, change)

    def has_delete_permission(self, request: HttpRequest, obj: Consumer | None = None) -> bool:
        """Its access log hangs on it: make it inactive instead."""
        return False


@admin.register(ApiKey)
class ApiKeyAdmin(HistoryAdmin):
    list_display = ("prefix", "consumer", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at")
    list_filter = ("consumer__tier", ("revoked_at", admin.EmptyFieldListFilter))
    list_select_related = ("consumer",)
    search_fields = ("prefix", "consumer__name")
    ordering = ("-created_at",)
    exclude = ("secret_hash",)
    actions = ("revoke_selected",)

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("apiauth.change_apikey"))

    @admin.action(description="Revoke", permissions=["operate"])
    def revoke_selected(self, request: HttpRequest, selected: QuerySet[ApiKey]) -> None:
        now = timezone.now()
        prefixes = list(selected.values_list("prefix", flat=True))
        ended = sum(keys.revoke(prefix=prefix, now=now) for prefix in prefixes)
        tell(
            request,
            done=f"Revoked {ended} {'key' if ended == 1 else 'keys'}." if ended else "",
            refused=f"{len(prefixes) - ended} had been revoked already." if ended < len(prefixes) else "",
        )


@admin.register(AccessLog)
class AccessLogAdmin(HistoryAdmin):
    list_display = (
        "timestamp",
        "consumer",
        "method",
        "endpoint",
        "response_status",
        "data_age_seconds",
        "duration_ms",
        "request_id",
    )
    list_filter = ("response_status", "method")
    list_select_related = ("consumer",)
    search_fields = ("endpoint", "request_id", "consumer__name")
    ordering = ("-id",)
