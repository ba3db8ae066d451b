"""Forms of consumers and keys. `keys` and `consumers` validate, and give the reasons of refusals."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.conf import settings
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextInputWidget,
)

from apiauth import consumers, keys
from apiauth.errors import RefusedError
from apiauth.models import Consumer

SCOPE_LABELS = {
    "read": "read: matches, events, line-ups, usage",
    "ingest": "ingest: sends data in",
    "operate": "operate: pauses and resumes matches, starts jobs",
}


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
        self.fields["overlap_hours"].initial = settings.CONFIG.key_overlap_hours


class RevokeForm(forms.Form):
    reason = forms.CharField(
        max_length=keys.LONGEST_REASON,
        widget=UnfoldAdminTextInputWidget,
        help_text="Stored with the key and in the audit.",
    )
