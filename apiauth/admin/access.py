"""Admin pages of consumers and keys; `key_pages` issues and rotates."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, Max, Q, QuerySet
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from unfold.decorators import action

from apiauth import consumers, keys
from apiauth.admin import key_pages
from apiauth.errors import RefusedError
from apiauth.keys import KeyState
from apiauth.limits import limit_of
from apiauth.models import ApiKey, Consumer
from victoryline.lib.admin import (
    BAD,
    CAREFUL,
    GOOD,
    NEWS,
    ConsoleAdmin,
    HistoryAdmin,
    HistoryInline,
    choice_filter,
    column,
    username,
)
from victoryline.lib.operator_actions import OperatorAction, OperatorActionsMixin, OperatorCall, for_each

STATE_COLOURS = {
    KeyState.IN_USE.value: GOOD,
    KeyState.EXPIRES_SOON.value: CAREFUL,
    KeyState.ROTATED.value: NEWS,
    KeyState.EXPIRED.value: BAD,
    KeyState.REVOKED.value: BAD,
    KeyState.INACTIVE.value: BAD,
}


STATE = column("state", lambda key: keys.state_of(key, timezone.now()).value, label=STATE_COLOURS)
SCOPES = column("scopes", lambda key: ", ".join(key.scopes) or "-")
HAS_ENDED = Q(revoked_at__isnull=False) | Q(expires_at__lte=Now())
StateFilter = choice_filter(
    "state",
    {
        "usable": ("can be used", lambda: ~HAS_ENDED & Q(consumer__is_active=True)),
        "soon": (
            "expires within 7 days",
            lambda: ~HAS_ENDED & Q(expires_at__lte=timezone.now() + keys.EXPIRES_SOON, replaced_by__isnull=True),
        ),
        "ended": ("has ended", lambda: HAS_ENDED),
    },
)


def _link_to_key(key: ApiKey) -> str:
    """Links to the page with Rotate and Revoke; unfold's own link shows only on hover."""
    url = reverse("admin:apiauth_apikey_change", args=[key.pk])
    return format_html('<a class="underline" href="{}">{}</a>', url, key.prefix)


def _usage_links(consumer: Consumer) -> str:
    return format_html(
        '<a class="underline" href="{}?consumer__id__exact={}">charts</a>, '
        '<a class="underline" href="{}?consumer__id__exact={}">access log</a>',
        *(reverse("admin:apiauth_usagehour_changelist"), consumer.pk),
        *(reverse("admin:apiauth_accesslog_changelist"), consumer.pk),
    )


class KeyInline(HistoryInline):
    model = ApiKey
    fk_name = "consumer"
    fields = ("to_key", "label", "shown_state", "shown_scopes", "created_at", "expires_at", "last_used_at")
    ordering = ("-created_at",)
    verbose_name_plural = "keys"
    to_key = column("prefix", _link_to_key)
    shown_state, shown_scopes = STATE, SCOPES


class ConsumerForm(forms.ModelForm):  # type: ignore[type-arg]  # unfold's admin wants the class itself
    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        try:
            consumers.check_name(name)
        except RefusedError as refusal:
            raise forms.ValidationError(str(refusal)) from refusal
        return name

    def clean(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().clean() or self.cleaned_data
        if {"tier", "requests_per_minute"} <= fields.keys():
            try:
                consumers.check_limit(fields["tier"], fields["requests_per_minute"])
            except RefusedError as refusal:
                self.add_error("requests_per_minute", str(refusal))
        return fields

    class Meta:
        model = Consumer
        fields = ("name", "contact", "tier", "requests_per_minute", "is_active")


@admin.register(Consumer)
class ConsumerAdmin(ConsoleAdmin):
    form = ConsumerForm
    list_display = ("name", "tier", "shown_limit", "is_active", "keys_in_use", "last_used", "contact", "created_at")
    list_filter = ("tier", "is_active")
    search_fields = ("name", "contact", "consumer_id")
    ordering = ("name",)
    fields = (
        *("name", "contact", "tier", "requests_per_minute", "is_active"),
        *("consumer_id", "created_at", "last_used", "asked"),
    )
    readonly_fields = ("consumer_id", "created_at", "last_used", "asked")
    inlines = (KeyInline,)
    actions_detail = ("issue_key",)
    none_yet = "No consumers yet. Add one, then issue a key for it."
    shown_limit = column("requests a minute", limit_of)
    keys_in_use = column("keys in use", lambda row: row.usable_keys if row.is_active else 0, ordering="usable_keys")
    last_used = column("last token", lambda row: row.keys_last_used_at or "-", ordering="keys_last_used_at")
    asked = column("requests", _usage_links)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Consumer]:
        rows: QuerySet[Consumer] = super().get_queryset(request)
        is_current = Q(keys__expires_at__isnull=True) | Q(keys__expires_at__gt=timezone.now())
        return rows.annotate(
            usable_keys=Count("keys", filter=Q(keys__revoked_at__isnull=True) & is_current),
            keys_last_used_at=Max("keys__last_used_at"),
        )

    def get_fields(self, request: HttpRequest, obj: Consumer | None = None) -> Any:
        """Without history for a new one."""
        return self.fields if obj else self.fields[:5]

    def get_inlines(self, request: HttpRequest, obj: Consumer | None = None) -> Any:
        return self.inlines if obj else ()

    def save_model(self, request: HttpRequest, obj: Consumer, form: forms.ModelForm[Consumer], change: bool) -> None:
        now = timezone.now()
        if not change:
            obj.created_at = now
        super().save_model(request, obj, form, change)
        if form.changed_data:
            changes = {name: form.cleaned_data[name] for name in form.changed_data}
            consumers.announce(obj, changes, now=now, actor=username(request))

    def has_delete_permission(self, request: HttpRequest, obj: Consumer | None = None) -> bool:
        """Its access log refers to it: make it inactive instead."""
        return False

    def has_issue_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(request.user.has_perm("apiauth.add_apikey"))

    @action(description="Issue a key", icon="key", permissions=["issue"])  # type: ignore[untyped-decorator]
    def issue_key(self, request: HttpRequest, object_id: Any) -> HttpResponse:
        return key_pages.issue_page(self, request, _found(self, request, object_id))


def _revoke(pk: int, call: OperatorCall) -> None:
    key = ApiKey.objects.get(pk=pk)
    if not keys.revoke(prefix=key.prefix, now=call.now, reason=call.reason, actor=call.actor):
        raise RefusedError(f"the key {key.prefix} is revoked already")


@admin.register(ApiKey)
class ApiKeyAdmin(OperatorActionsMixin, HistoryAdmin):
    list_display = (
        *("prefix", "consumer", "label", "shown_state", "shown_scopes"),
        *("expires_at", "last_used_at", "created_at", "revoked_at"),
    )
    list_filter = (StateFilter, "consumer__tier")
    list_select_related = ("consumer",)
    search_fields = ("prefix", "label", "consumer__name")
    ordering = ("-created_at",)
    fields = (
        *("prefix", "consumer", "label", "shown_state", "shown_scopes", "created_at", "expires_at", "last_used_at"),
        *("replaced_by", "revoked_at", "revoke_reason"),
    )
    actions_detail = ("rotate_one",)
    operate_permission = "apiauth.change_apikey"
    operated_noun = ("key", "keys")
    operator_actions = (
        OperatorAction(
            name="revoke",
            label="Revoke",
            applied="Revoked",
            explanation="Every token made from it stops working within seconds, everywhere. This is final.",
            icon="block",
            form=key_pages.RevokeForm,
            is_for_selection=False,
            run=for_each(_revoke),
        ),
    )
    none_yet = "No keys yet. Open a consumer, and issue one for it."
    shown_state, shown_scopes = STATE, SCOPES

    def has_rotate_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(request.user.has_perms(["apiauth.add_apikey", "apiauth.change_apikey"]))

    @action(description="Rotate", icon="autorenew", permissions=["rotate"])  # type: ignore[untyped-decorator]
    def rotate_one(self, request: HttpRequest, object_id: Any) -> HttpResponse:
        return key_pages.rotate_page(self, request, _found(self, request, object_id))


def _found(model_admin: Any, request: HttpRequest, object_id: Any) -> Any:
    """Returns the row of a page; raises 404 for an id that does not exist, number or not."""
    row = model_admin.get_object(request, object_id)
    if row is None:
        raise Http404
    return row
