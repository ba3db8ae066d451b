"""Admin of sources, their proxy sessions and unknown values. Edits take effect at the next scheduler tick."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from scraping.admin import switchboard
from scraping.models import ProxySession, Source, SourceOverride, UnknownValue
from scraping.signals import source_changed
from scraping.sources import ADAPTERS, reading_problem
from victoryline.lib.admin import (
    BAD,
    CAREFUL,
    GOOD,
    NEWS,
    ConsoleAdmin,
    HistoryAdmin,
    column,
    json_block,
    username,
)
from victoryline.lib.operator_actions import OperatorActionsMixin


class SourceForm(forms.ModelForm[Source]):
    class Meta:
        model = Source
        fields = ("read_way", "selectors")  # the fieldsets of the admin add the others

    def clean_canary_matches(self) -> list[str]:
        ids = self.cleaned_data["canary_matches"] or []
        if not isinstance(ids, list) or not all(isinstance(one, str) and one for one in ids):
            raise ValidationError('must be a list of ids, such as ["13KM", "14AB"]')
        return ids

    def clean(self) -> dict[str, Any] | None:
        """Refuses selectors that do not parse and read modes that the adapter does not have."""
        cleaned = super().clean() or {}
        adapter = ADAPTERS.get(self.instance.adapter_key)
        if adapter is not None and not self.errors:
            selectors = cleaned.get("selectors", self.instance.selectors) or {}
            read_way = cleaned.get("read_way", self.instance.read_way)
            if problem := reading_problem(adapter, read_way, selectors):
                field = "selectors" if problem.startswith("selectors") else "read_way"
                self.add_error(field, ValidationError(problem.removeprefix("selectors: ")))
        return cleaned


@admin.register(Source)
class SourceAdmin(OperatorActionsMixin, ConsoleAdmin):
    form = SourceForm
    list_display = (
        "name", "sport", "shown_state", "sent_now", "shown_breaker", "mode", "max_concurrency", "min_interval_seconds",
        "last_discovery_at",
    )  # fmt: skip
    operate_permission = "scraping.add_sourceoverride"
    operated_noun = ("source", "sources")
    operator_actions = switchboard.ACTIONS
    list_filter = ("is_enabled", "sport", "robots_policy")
    search_fields = ("key", "name", "base_url")
    readonly_fields = (
        "what_happened",
        *("key", "sport", "base_url", "last_discovery_at", "shown_metadata", "learned_mode"),
        *("shown_state", "sent_now", "shown_breaker", "shown_overrides"),
        *("adapter_key", "shown_hosts", "allows_private_addresses", "token_url"),  # set in config/sources.yaml
    )
    limits = (
        "max_concurrency", "min_interval_seconds", "burst_allowance", "daily_megabytes", "max_attempts",
        "retry_base_seconds", "retry_jitter_seconds", "robots_policy",
    )  # fmt: skip
    fieldsets = (
        (None, {"fields": ("name", "key", "what_happened", "sport", "base_url", "is_enabled", "last_discovery_at")}),
        ("Now", {"fields": ("shown_state", "sent_now", "shown_breaker", "shown_overrides")}),
        ("Limits", {"fields": (*limits, "canary_matches")}),
        ("Reading", {"fields": ("adapter_key", "read_way", "learned_mode", "selectors")}),
        ("Reach", {"fields": ("shown_hosts", "allows_private_addresses", "uses_proxy", "token_url")}),
        ("Trust", {"fields": ("precedence_weight", "shown_metadata")}),
    )
    what_happened = column(
        "what happened",
        lambda source: format_html(
            '<a class="underline" href="{}">time line</a>', reverse("incident", args=["source", source.key])
        ),
    )
    shown_hosts = column("allowed hosts", lambda source: ", ".join(sorted(source.site.hosts)))
    shown_state = column(
        "state", switchboard.state, label={"enabled": GOOD, "limited": CAREFUL, "paused": CAREFUL, "disabled": BAD}
    )
    sent_now = column("sent now", switchboard.sent_now)
    shown_overrides = column("overrides", switchboard.overrides)
    shown_breaker = column("breaker", switchboard.breaker)
    mode = column("mode", lambda source: source.request_mode or source.read_way)
    shown_metadata = column("metadata", lambda source: json_block(source.metadata))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Source]:
        rows: QuerySet[Source] = super().get_queryset(request)
        current = SourceOverride.objects.filter(ended_at=None)
        return rows.select_related("breaker").prefetch_related(Prefetch("overrides", current))

    def save_model(self, request: HttpRequest, obj: Source, form: forms.ModelForm[Source], change: bool) -> None:
        super().save_model(request, obj, form, change)
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        if changes:
            source_changed.send_robust(
                sender=Source, source_key=obj.key, actor=username(request), now=timezone.now(), **changes
            )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """A source needs an adapter, so it comes with the code and its configuration."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Source | None = None) -> bool:
        """Its history refers to it: disable it instead."""
        return False


@admin.register(UnknownValue)
class UnknownValueAdmin(HistoryAdmin):
    none_yet = "Every value that the sources sent is known. A value that no schema knows is listed and counted here."
    list_display = ("path", "value", "source", "payload_schema", "times_seen", "first_seen_at", "last_seen_at")
    list_filter = ("source", "payload_schema")
    search_fields = ("path", "value", "payload_schema")
    ordering = ("-last_seen_at",)


def _session_state(session: ProxySession) -> tuple[str, str]:
    if session.quarantined_until is not None and session.quarantined_until > timezone.now():
        return "quarantine", "in quarantine"
    if session.ended_at is None:
        return "open", "open"
    return ("refused", "refused") if session.end_reason.startswith("blocked") else ("ended", "ended")


@admin.register(ProxySession)
class ProxySessionAdmin(HistoryAdmin):
    list_display = (
        "session_id", "source", "shown_state", "shown_proxy", "geo", "successes", "failures", "shown_bytes",
        "created_at", "last_used_at", "end_reason",
    )  # fmt: skip
    list_filter = ("source", "geo", "end_reason")
    search_fields = ("session_id", "proxy_hash", "worker_id")
    ordering = ("-last_used_at",)
    fields = (
        "session_id", "source", "worker_id", "shown_state", "shown_proxy", "geo", "created_at", "last_used_at",
        "ended_at", "end_reason", "successes", "failures", "shown_bytes", "quarantined_until",
    )  # fmt: skip
    shown_state = column(
        "state", _session_state, label={"open": GOOD, "refused": BAD, "quarantine": CAREFUL, "ended": NEWS}
    )
    shown_proxy = column("proxy", lambda session: session.proxy_hash or "none", ordering="proxy_hash")
    shown_bytes = column("received", lambda session: filesizeformat(session.bytes_in), ordering="bytes_in")
