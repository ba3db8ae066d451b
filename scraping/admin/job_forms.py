"""Forms that start jobs. The package `jobs` validates; its refusals are shown at the field they concern."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils import timezone
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from scraping import jobs
from scraping.models import Source
from scraping.sources import ADAPTERS
from victoryline.lib.admin import username

ROUND_FIELDS = tuple(dict.fromkeys(name for adapter in ADAPTERS.values() for name in adapter.round_fields))


class StartForm(BaseDialogForm):  # type: ignore[misc]  # unfold publishes no types
    """Starts the job while it is validated, because only the start can refuse it."""

    started: jobs.Started

    def start(self, fields: dict[str, Any]) -> jobs.Started:
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return fields
        try:
            self.started = self.start(fields)
        except jobs.Refused as refusal:
            place = refusal.field if refusal.field in self.fields else list(self.fields)[-1]
            self.add_error(place, list(refusal.reasons))
        return fields


class RoundForm(StartForm):
    source = forms.ChoiceField(widget=UnfoldAdminSelectWidget)
    matches = forms.IntegerField(
        min_value=1,
        max_value=1000,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Number of matches in the round, optional. A list with another number is rejected.",
    )
    field_order = ("source", *ROUND_FIELDS, "matches")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        with_rounds = {key for key, one in ADAPTERS.items() if one.round_fields}
        sources = [source for source in Source.objects.all() if source.adapter_key in with_rounds]
        choices = [(one.key, one.name if one.is_enabled else f"{one.name} (switched off)") for one in sources]
        self.fields["source"].choices = choices
        for name in ROUND_FIELDS:
            self.fields[name] = forms.IntegerField(min_value=1, widget=UnfoldAdminIntegerFieldWidget)
        self.order_fields(self.field_order)

    def start(self, fields: dict[str, Any]) -> jobs.Started:
        wanted = ADAPTERS[Source.objects.get(key=fields["source"]).adapter_key].round_fields
        return jobs.start_round(
            source_key=fields["source"],
            asked={name: fields[name] for name in wanted},
            matches=fields["matches"],
            requested_by=username(self.request),
            now=timezone.now(),
        )


class UrlsForm(StartForm):
    urls = forms.CharField(
        label="URLs",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 8}),
        help_text=f"One per line, at most {jobs.MAX_URLS}.",
    )

    def start(self, fields: dict[str, Any]) -> jobs.Started:
        return jobs.start_urls(
            urls=fields["urls"].splitlines(), requested_by=username(self.request), now=timezone.now()
        )
