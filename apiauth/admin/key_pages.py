"""Admin pages that issue and rotate keys: a form that says what will happen, then the key, shown once.

The key is in the answer to the form and nowhere else: not in a message (those are stored in a cookie or the session),
not in an address, not in a log. So there is no redirect after the form; a form that is sent twice is refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
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
from victoryline.lib.admin import DialogForm, username

ModelAdmin = admin.ModelAdmin[Any]
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
        initial=keys.USUAL_DAYS,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Empty: never.",
    )
    form_id = forms.UUIDField(widget=forms.HiddenInput, initial=uuid.uuid4)


class RotateForm(forms.Form):
    overlap_hours = forms.FloatField(
        min_value=0,
        max_value=8760,
        initial=keys.OVERLAP_HOURS,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text="How long the old key goes on working beside the new one. 0: it ends at once.",
    )


class RevokeForm(DialogForm):
    reason = forms.CharField(
        max_length=keys.LONGEST_REASON,
        widget=UnfoldAdminTextInputWidget,
        help_text="Stored with the key and in the audit.",
    )


def issue_page(model_admin: ModelAdmin, request: HttpRequest, consumer: Consumer) -> HttpResponse:
    form = IssueForm(request.POST or None)
    if form.is_valid():
        with _refusal_shown_in(form):
            issued = _issue(request, consumer, form.cleaned_data)
            return _key_page(model_admin, request, issued, title=f"A new key for {consumer}")
    shown = {
        "form": form,
        "facts": [
            ("Consumer", consumer.name),
            ("Tier", _tier(consumer)),
            ("Keys in use", str(keys.usable(consumer, timezone.now()))),
        ],
        "title": "Issue a key",
        "explanation": "The key is shown once, on the next page. Only a hash of it is stored.",
        "button": "Issue",
        "back": reverse("admin:apiauth_consumer_change", args=[consumer.pk]),
    }
    return _page(model_admin, request, "key_form", shown)


def _issue(request: HttpRequest, consumer: Consumer, wanted: dict[str, Any]) -> keys.IssuedKey:
    now, form_id, days = timezone.now(), str(wanted["form_id"]), wanted["expires_in_days"]
    used: list[str] = request.session.get(USED_FORMS, [])
    if form_id in used:
        raise RefusedError(SENT_TWICE)
    issued = keys.issue(
        consumer_name=consumer.name,
        scopes=wanted["scopes"],
        label=wanted["label"],
        now=now,
        expires_at=now + timedelta(days=days) if days else None,
        actor=username(request),
    )
    request.session[USED_FORMS] = [*used, form_id][-USED_FORMS_KEPT:]
    return issued


def rotate_page(model_admin: ModelAdmin, request: HttpRequest, key: ApiKey) -> HttpResponse:
    form = RotateForm(request.POST or None)
    if form.is_valid():
        overlap = timedelta(hours=form.cleaned_data["overlap_hours"])
        with _refusal_shown_in(form):
            issued = keys.rotate(prefix=key.prefix, overlap=overlap, now=timezone.now(), actor=username(request))
            key.refresh_from_db()
            note = f"The old key {key.prefix} and its tokens work until {_moment(key.expires_at)}."
            return _key_page(model_admin, request, issued, title=f"The new key of {key.consumer}", note=note)
    shown = {
        "form": form,
        "facts": _facts(key, timezone.now()),
        "title": f"Rotate the key {key.prefix}",
        "explanation": "A new key with the same scopes, label and length of life takes its place, and is shown once, "
        "on the next page. Until the overlap is over both work; tokens of the old one end with it.",
        "button": "Rotate",
        "back": reverse("admin:apiauth_apikey_change", args=[key.pk]),
    }
    return _page(model_admin, request, "key_form", shown)


@contextmanager
def _refusal_shown_in(form: forms.Form) -> Iterator[None]:
    try:
        yield
    except RefusedError as refusal:
        form.add_error(refusal.field if refusal.field in form.fields else None, str(refusal))


def _key_page(
    model_admin: ModelAdmin, request: HttpRequest, issued: keys.IssuedKey, *, title: str, note: str = ""
) -> HttpResponse:
    back = reverse("admin:apiauth_consumer_change", args=[issued.key.consumer_id])
    shown = {"key_text": issued.text, "key": issued.key, "title": title, "note": note, "back": back}
    return _page(model_admin, request, "key_shown", shown)


def _page(model_admin: ModelAdmin, request: HttpRequest, template: str, shown: dict[str, Any]) -> HttpResponse:
    context = {**model_admin.admin_site.each_context(request), "opts": model_admin.opts, **shown}
    response = TemplateResponse(request, f"admin/apiauth/{template}.html", context)
    response.headers["Cache-Control"] = "no-store"
    return response


def _facts(key: ApiKey, now: datetime) -> list[tuple[str, str]]:
    return [
        ("Key", f"{key.prefix} ({keys.state_of(key, now).value})"),
        ("Consumer", f"{key.consumer.name} ({_tier(key.consumer)})"),
        ("Label", key.label or "-"),
        ("Scopes", ", ".join(key.scopes) or "-"),
        ("Expires", _moment(key.expires_at)),
        ("Last token", _moment(key.last_used_at)),
    ]


def _tier(consumer: Consumer) -> str:
    return f"custom, {consumer.requests_per_minute} a minute" if consumer.requests_per_minute else consumer.tier


def _moment(moment: datetime | None) -> str:
    return f"{date_format(moment, 'DATETIME_FORMAT')} UTC" if moment else "never"
