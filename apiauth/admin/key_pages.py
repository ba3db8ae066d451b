"""Admin pages that issue, rotate and revoke keys: a form that says what will happen, then the key, shown once.

The key is in the answer to the form and nowhere else: not in a message (those are stored in a cookie or the session),
not in an address, not in a log. So there is no redirect after the form; a form that is sent twice is refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextInputWidget,
)

from apiauth import keys
from apiauth.errors import RefusedError
from apiauth.models import ApiKey, Consumer
from victoryline.lib.admin import report_outcome, username

ModelAdmin = admin.ModelAdmin[Any]
Facts = list[tuple[str, str]]
USED_FORMS = "issued_key_forms"  # in the session: ids of forms that were sent already
USED_FORMS_KEPT = 50
SENT_TWICE = "This form was sent already, and its key was shown then. If it is lost, revoke it and issue another."


SCOPE_LABELS = {
    "read": "read: matches, events, line-ups, usage",
    "ingest": "ingest: sends data in",
    "operate": "operate: pauses and resumes matches, starts jobs",
}


class IssueForm(forms.Form):
    label = forms.CharField(
        max_length=keys.LONGEST_LABEL,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="What the key is for.",
    )
    scopes = forms.MultipleChoiceField(
        choices=[(scope, SCOPE_LABELS[scope]) for scope in keys.SCOPES],
        initial=["read"],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="What the key may do. It can't be changed later: other scopes are another key.",
    )
    expires_in_days = forms.IntegerField(
        min_value=1,
        max_value=keys.LONGEST_LIFE.days,
        required=False,
        initial=365,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Empty: never.",
    )
    form_id = forms.UUIDField(widget=forms.HiddenInput, initial=uuid.uuid4)


class RotateForm(forms.Form):
    overlap_hours = forms.FloatField(
        min_value=0,
        max_value=8760,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text="How long the old key goes on working beside the new one. 0: it ends at once.",
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["overlap_hours"].initial = keys.OVERLAP_HOURS


class RevokeForm(forms.Form):
    reason = forms.CharField(
        max_length=keys.LONGEST_REASON,
        widget=UnfoldAdminTextInputWidget,
        help_text="Stored with the key and in the audit.",
    )


def issue_page(model_admin: ModelAdmin, request: HttpRequest, consumer: Consumer) -> HttpResponse:
    form = IssueForm(request.POST or None)
    if form.is_valid():
        try:
            return _key_page(model_admin, request, _issue(request, consumer, form), title=f"A new key for {consumer}")
        except RefusedError as refusal:
            form.add_error(refusal.field if refusal.field in form.fields else None, str(refusal))
    facts = [
        ("Consumer", consumer.name),
        ("Tier", _tier(consumer)),
        ("Keys in use", str(_in_use(consumer, timezone.now()))),
    ]
    return _form_page(
        model_admin,
        request,
        form,
        facts,
        title="Issue a key",
        explanation="The key is shown once, on the next page. Only a hash of it is stored.",
        button="Issue",
        back=reverse("admin:apiauth_consumer_change", args=[consumer.pk]),
    )


def rotate_page(model_admin: ModelAdmin, request: HttpRequest, key: ApiKey) -> HttpResponse:
    form = RotateForm(request.POST or None)
    if form.is_valid():
        overlap = timedelta(hours=form.cleaned_data["overlap_hours"])
        try:
            issued = keys.rotate(prefix=key.prefix, overlap=overlap, now=timezone.now(), actor=username(request))
        except RefusedError as refusal:
            form.add_error(refusal.field if refusal.field in form.fields else None, str(refusal))
        else:
            key.refresh_from_db()
            note = f"The old key {key.prefix} and its tokens work until {_moment(key.expires_at)}."
            return _key_page(model_admin, request, issued, title=f"The new key of {key.consumer}", note=note)
    return _form_page(
        model_admin,
        request,
        form,
        _facts(key, timezone.now()),
        title=f"Rotate the key {key.prefix}",
        explanation=(
            "A new key with the same scopes, label and length of life takes its place, and is shown once, on the next "
            "page. Until the overlap is over both work; tokens of the old one end with it."
        ),
        button="Rotate",
        back=reverse("admin:apiauth_apikey_change", args=[key.pk]),
    )


def revoke_page(
    model_admin: ModelAdmin,
    request: HttpRequest,
    chosen: Sequence[ApiKey],
    *,
    is_sent: bool,
    hidden: Facts | None = None,
) -> HttpResponse | None:
    """Returns None when it is done. `hidden`: fields that select the same keys again."""
    form = RevokeForm(request.POST if is_sent else None)
    if form.is_valid():
        try:
            _revoke(request, chosen, reason=form.cleaned_data["reason"])
            return None
        except RefusedError as refusal:
            form.add_error("reason", str(refusal))
    now = timezone.now()
    names = ", ".join(key.prefix for key in chosen)
    return _form_page(
        model_admin,
        request,
        form,
        [fact for key in chosen for fact in [*_facts(key, now), ("Effect", _effect(key, chosen, now))]],
        title=f"Revoke {'the key' if len(chosen) == 1 else 'keys'} {names}",
        explanation="Every token made from it stops working within seconds, everywhere. This is final.",
        button="Revoke",
        back=reverse("admin:apiauth_apikey_changelist"),
        hidden=hidden or [],
        is_dangerous=True,
    )


def _issue(request: HttpRequest, consumer: Consumer, form: IssueForm) -> keys.IssuedKey:
    wanted, now = form.cleaned_data, timezone.now()
    used: list[str] = request.session.get(USED_FORMS, [])
    if str(wanted["form_id"]) in used:
        raise RefusedError(SENT_TWICE)
    issued = keys.issue(
        consumer_name=consumer.name,
        scopes=wanted["scopes"],
        label=wanted["label"],
        now=now,
        expires_at=now + timedelta(days=wanted["expires_in_days"]) if wanted["expires_in_days"] else None,
        actor=username(request),
    )
    request.session[USED_FORMS] = [*used, str(wanted["form_id"])][-USED_FORMS_KEPT:]
    return issued


def _revoke(request: HttpRequest, chosen: Sequence[ApiKey], *, reason: str) -> None:
    now, actor = timezone.now(), username(request)
    ended = sum(keys.revoke(prefix=key.prefix, now=now, reason=reason, actor=actor) for key in chosen)
    before = len(chosen) - ended
    report_outcome(
        request,
        done=f"Revoked {ended} {'key' if ended == 1 else 'keys'}." if ended else "",
        refused=f"{before} had been revoked already." if before else "",
    )


def _form_page(
    model_admin: ModelAdmin,
    request: HttpRequest,
    form: forms.Form,
    facts: Facts,
    *,
    hidden: Facts | None = None,
    is_dangerous: bool = False,
    **texts: str,
) -> HttpResponse:
    shown = {"form": form, "facts": facts, "hidden": hidden or [], "is_dangerous": is_dangerous, **texts}
    return _page(model_admin, request, "admin/apiauth/key_form.html", shown)


def _key_page(
    model_admin: ModelAdmin, request: HttpRequest, issued: keys.IssuedKey, *, title: str, note: str = ""
) -> HttpResponse:
    key = issued.key
    back = reverse("admin:apiauth_consumer_change", args=[key.consumer_id])
    shown = {"key_text": issued.text, "key": key, "title": title, "note": note, "back": back}
    return _page(model_admin, request, "admin/apiauth/key_shown.html", shown)


def _page(model_admin: ModelAdmin, request: HttpRequest, template: str, shown: dict[str, Any]) -> HttpResponse:
    context = {**model_admin.admin_site.each_context(request), "opts": model_admin.opts, **shown}
    response = TemplateResponse(request, template, context)
    response.headers["Cache-Control"] = "no-store"
    return response


def _facts(key: ApiKey, now: datetime) -> Facts:
    return [
        ("Key", f"{key.prefix} ({keys.state_of(key, now).value})"),
        ("Consumer", f"{key.consumer.name} ({_tier(key.consumer)})"),
        ("Label", key.label or "-"),
        ("Scopes", ", ".join(key.scopes) or "-"),
        ("Expires", _moment(key.expires_at)),
        ("Last token", _moment(key.last_used_at)),
    ]


def _effect(key: ApiKey, chosen: Sequence[ApiKey], now: datetime) -> str:
    if not key.is_usable(now):
        return "None: it is not in use any more."
    gone = {each.pk for each in chosen}
    left = sum(other.is_usable(now) for other in key.consumer.keys.select_related("consumer") if other.pk not in gone)
    if not left:
        return f"{key.consumer.name} has no other key, and can't use the API then."
    return f"{key.consumer.name} can't use this key. {left} other {'key works' if left == 1 else 'keys work'} on."


def _in_use(consumer: Consumer, now: datetime) -> int:
    return sum(key.is_usable(now) for key in consumer.keys.select_related("consumer"))


def _tier(consumer: Consumer) -> str:
    return f"custom, {consumer.requests_per_minute} a minute" if consumer.requests_per_minute else consumer.tier


def _moment(moment: datetime | None) -> str:
    return f"{date_format(moment, 'DATETIME_FORMAT')} UTC" if moment else "never"
