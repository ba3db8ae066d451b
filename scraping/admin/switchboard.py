"""The switchboard of sources: what is sent to each now; pause it or limit it until a time, enable and disable it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Count, Sum
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget

from scraping.models import OPEN_STATES, Source, TaskState
from scraping.recovery import source_overrides
from scraping.recovery.source_overrides import LIMITS, PAUSABLE
from victoryline.lib.admin import LimitedForm, ReasonForm
from victoryline.lib.operator_actions import OperatorAction, OperatorCall, for_each
from victoryline.lib.shown import ago

SHOWN_OVERRIDES = 10


class PreviewedForm(ReasonForm):
    """Says in numbers what the loss of the source would do."""

    form_before_template = "admin/scraping/source_preview.html"

    def get_before_template_context(self, request: HttpRequest, object_id: Any = None) -> dict[str, Any]:
        live, only_here = source_overrides.live_matches_of(int(object_id))
        return {**super().get_before_template_context(request, object_id), "live": live, "only_here": only_here}


class PauseForm(PreviewedForm, LimitedForm):
    resource = forms.ChoiceField(
        label="what",
        choices=[("", "the whole source"), *((one, f"only tasks of the type {one}") for one in PAUSABLE)],
        required=False,
        widget=UnfoldAdminSelectWidget,
    )
    field_order: tuple[str, ...] = ("resource", "minutes", "reason")


class LimitsForm(LimitedForm):
    max_concurrency = forms.IntegerField(
        min_value=1,
        max_value=1000,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        label="tasks at the same time",
    )
    min_interval_seconds = forms.FloatField(
        min_value=0, max_value=3600, required=False, widget=UnfoldAdminDecimalFieldWidget, label="seconds between tasks"
    )
    daily_megabytes = forms.IntegerField(
        min_value=0,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        label="megabytes a day",
        help_text="0: no limit.",
    )
    field_order: tuple[str, ...] = (*LIMITS, "minutes", "reason")

    def clean(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and all(fields.get(name) is None for name in LIMITS):
            raise ValidationError("Fill in one limit at least; an empty one stays as it is.")
        return fields


def _decision(call: OperatorCall) -> dict[str, Any]:
    return {"reason": call.reason, "actor": call.actor, "now": call.now}


def _pause(pk: int, call: OperatorCall) -> None:
    source_overrides.pause(pk, call.values.get("resource", ""), until=call.until, **_decision(call))


def _limit(pk: int, call: OperatorCall) -> None:
    values = {name: call.values[name] for name in LIMITS if call.values[name] is not None}
    source_overrides.override(pk, values, until=call.until, **_decision(call))


def sent_now(source: Source) -> str:
    """Returns the calls of the last minute, and the tasks under way and waiting."""
    since = timezone.now() - timedelta(minutes=1)
    calls = source.outcomes.filter(starts_at__gt=since).aggregate(number=Sum("calls"))["number"] or 0
    tasks = dict(
        source.tasks.filter(state__in=OPEN_STATES).order_by().values_list("state").annotate(number=Count("pk"))
    )
    return (
        f"{calls:,} calls in the last minute, {tasks.get(TaskState.EXECUTING, 0)} tasks running, "
        f"{tasks.get(TaskState.PENDING, 0)} waiting"
    )


def state(source: Source) -> tuple[str, str]:
    ends = {one.setting: one for one in source.overrides.all() if one.ended_at is None}
    if not source.is_enabled:
        pause = ends.get("is_enabled")
        return ("paused", f"paused until {pause.until:%d %b %H:%M} UTC") if pause else ("disabled", "disabled")
    if ends:
        return "limited", "; ".join(f"{one} until {one.until:%d %b %H:%M} UTC" for one in ends.values())
    return "enabled", "enabled"


def breaker(source: Source) -> str:
    found = getattr(source, "breaker", None)
    return found.shown_state(timezone.now()) if found else "closed"


def overrides(source: Source) -> SafeString:
    """Returns the newest overrides, each in one line."""
    rows = source.overrides.order_by("-pk")[:SHOWN_OVERRIDES]
    lines = ((one, ago(one.until), one.reason, one.actor, ago(one.ended_at)) for one in rows)
    shown = format_html_join("", "<li>{}, until {}: {} ({}). Ended: {}</li>", lines)
    return format_html("<ul>{}</ul>", shown) if shown else format_html("{}", "-")


ACTIONS = (
    OperatorAction(
        name="pause",
        label="Pause",
        applied="Paused",
        explanation="Nothing more is sent until the end you give. Tasks wait in the journal; matches stay served, "
        "with their age. Running tasks end.",
        icon="pause",
        form=PauseForm,
        is_for_selection=False,
        run=for_each(_pause),
    ),
    OperatorAction(
        name="limit",
        label="Limit",
        applied="Limited",
        explanation="These limits replace those of the source until the end you give. An empty one stays.",
        icon="speed",
        form=LimitsForm,
        is_for_selection=False,
        run=for_each(_limit),
    ),
    OperatorAction(
        name="restore",
        label="End overrides",
        applied="Restored",
        explanation="Pauses and limits of this source end now. What was set before applies again.",
        icon="restart_alt",
        form=ReasonForm,
        is_offered=lambda source: source.overrides.filter(ended_at=None).exists(),
        is_for_selection=False,
        run=for_each(lambda pk, call: source_overrides.end_all(pk, **_decision(call))),
    ),
    OperatorAction(
        name="disable",
        label="Disable",
        applied="Disabled",
        explanation="Nothing is sent until it is enabled again. Its history stays.",
        icon="block",
        form=PreviewedForm,
        is_offered=lambda source: source.is_enabled,
        is_for_selection=False,
        run=for_each(lambda pk, call: source_overrides.switch(pk, is_enabled=False, **_decision(call))),
    ),
    OperatorAction(
        name="enable",
        label="Enable",
        applied="Enabled",
        explanation="Its matches are due at the next tick of the scheduler, within its limits.",
        icon="check_circle",
        form=ReasonForm,
        is_offered=lambda source: not source.is_enabled,
        is_for_selection=False,
        run=for_each(lambda pk, call: source_overrides.switch(pk, is_enabled=True, **_decision(call))),
    ),
)
