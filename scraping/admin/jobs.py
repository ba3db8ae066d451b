"""Admin of jobs (start a round or a list of URLs, see progress, retry failures) and of submissions.

The package `jobs` validates; its refusals are shown at the field they concern.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from unfold.decorators import action
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from scraping import jobs
from scraping.admin.tasks import retry_selections
from scraping.journal import TaskSelection
from scraping.models import JobKind, ScrapeJob, Source, Submission, SubmissionState
from scraping.sources import ADAPTERS
from victoryline.lib.admin import (
    BAD,
    CAREFUL,
    GOOD,
    NEWS,
    HistoryAdmin,
    after_dialog,
    column,
    username,
)
from victoryline.lib.operator_actions import OperatorAction, OperatorActionsMixin

ROUND_FIELDS = tuple(dict.fromkeys(name for adapter in ADAPTERS.values() for name in adapter.round_fields))


STATE_COLOURS = {
    jobs.JobState.COMPLETE.value: GOOD,
    jobs.JobState.RUNNING.value: NEWS,
    jobs.JobState.DISCOVERING.value: NEWS,
    jobs.JobState.INCOMPLETE.value: CAREFUL,
    jobs.JobState.FAILED.value: BAD,
}
STANDING_COLOURS = {
    jobs.Standing.DONE.value: GOOD,
    jobs.Standing.EXECUTING.value: NEWS,
    jobs.Standing.FAILED.value: CAREFUL,
    jobs.Standing.GIVEN_UP.value: CAREFUL,
    jobs.Standing.DEAD.value: BAD,
}
SUBMISSION_COLOURS = {
    SubmissionState.ACCEPTED.value: NEWS,
    SubmissionState.DONE.value: GOOD,
    SubmissionState.REFUSED.value: BAD,
}


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


def _started(request: HttpRequest, form: StartForm) -> HttpResponse:
    job = form.started.job
    known = "" if form.started.is_new else " It was open already; nothing new was started."
    messages.success(request, f"Job {job.pk}: {job.name}.{known}")
    if form.started.shortage:
        messages.warning(request, f"It begins when there is memory: {form.started.shortage}.")
    return after_dialog(request, reverse("admin:scraping_scrapejob_change", args=[job.pk]))


def _view(job: ScrapeJob) -> jobs.JobView:
    found: jobs.JobView | None = getattr(job, "view", None)
    return found or jobs.views([job])[0]


def _page(job: ScrapeJob) -> dict[str, Any]:
    view = jobs.view(job)
    items = sorted(view.items, key=lambda item: item.standing in (jobs.Standing.DONE, jobs.Standing.SKIPPED))
    return {
        "view": view,
        "state_colour": STATE_COLOURS[view.state.value],
        "is_open": job.finished_at is None,
        "counts": [
            {"name": standing.value.replace("_", " "), "number": view.counts[standing]}
            for standing in jobs.Standing
            if view.counts[standing]
        ],
        "items": [{"is": item, "colour": STANDING_COLOURS.get(item.standing.value, "default")} for item in items],
    }


def _progress(job: ScrapeJob) -> str:
    view = _view(job)
    return f"{view.has_all} of {view.expected}" if job.kind != JobKind.WATCH and view.expected else "-"


@admin.register(ScrapeJob)
class ScrapeJobAdmin(OperatorActionsMixin, HistoryAdmin):
    list_display = ("name", "shown_state", "shown_progress", "requested_by", "created_at", "finished_at")
    list_filter = ("kind", "source")
    joined = ("source",)
    search_fields = ("=id", "name", "requested_by")
    ordering = ("-created_at",)
    actions_list = ("start_round", "start_urls")
    operate_permission = "scraping.change_scrapetask"
    operated_noun = ("task", "tasks")
    operator_actions = (
        OperatorAction(
            name="retry",
            label="Retry what failed",
            applied="Retried",
            explanation="Failed and dead tasks of this job are due at once, with all of their attempts. What is done "
            "stays done.",
            icon="refresh",
            is_for_selection=False,
            run=retry_selections(lambda pk: TaskSelection(job_id=int(pk))),
        ),
    )
    change_form_before_template = "admin/scraping/job.html"
    fields = (
        "name", "kind", "source", "requested_by", "parameters", "created_at", "discovered_at", "finished_at",
    )  # fmt: skip
    shown_state = column(
        "state", lambda job: "-" if job.kind == JobKind.WATCH else _view(job).state.value, label=STATE_COLOURS
    )
    shown_progress = column("progress", _progress)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Counts the progress of all jobs on the page together."""
        response = super().changelist_view(request, extra_context)
        shown = (getattr(response, "context_data", None) or {}).get("cl")
        if shown is not None:
            views = {view.job.pk: view for view in jobs.views(shown.result_list)}
            for job in shown.result_list:
                job.view = views[job.pk]
        return response

    def page_context(self, row: ScrapeJob) -> dict[str, Any]:
        return {"job_page": _page(row)} if row.kind != JobKind.WATCH else {}

    def has_start_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        # A method: unfold's check of a dotted name reads the database, which has no tables before the first migration.
        return bool(request.user.has_perm("scraping.add_scrapejob"))

    @action(  # type: ignore[untyped-decorator]  # unfold publishes no types
        description="Start a round",
        icon="play_arrow",
        permissions=["start"],
        dialog={
            "title": "Start a round",
            "description": "The matches of the round are listed and journaled; then the workers read each of them "
            "completely. Complete matches are skipped.",
            "form_class": RoundForm,
            "form_submit_text": "Start",
        },
    )
    def start_round(self, request: HttpRequest, form: RoundForm) -> HttpResponse:
        return _started(request, form)

    @action(  # type: ignore[untyped-decorator]  # unfold publishes no types
        description="Start by URL",
        icon="link",
        permissions=["start"],
        dialog={
            "title": "Read matches by URL",
            "description": "Each URL must be a match page of a configured source. If one is not, nothing is started.",
            "form_class": UrlsForm,
            "form_submit_text": "Start",
        },
    )
    def start_urls(self, request: HttpRequest, form: UrlsForm) -> HttpResponse:
        return _started(request, form)


@admin.register(Submission)
class SubmissionAdmin(HistoryAdmin):
    none_yet = (
        "No submissions yet. A consumer whose key has the scope ingest sends matches with POST /cricket-data; each "
        "match is a row here before it is processed."
    )
    list_display = ("created_at", "sender_name", "match", "shown_state", "reason", "finished_at")
    list_filter = ("state", "sender_name")
    joined = ("ref__match", "ref__source")
    search_fields = ("submission_id", "sender", "sender_name", "idempotency_key", "reason", "ref__match__title")
    fields = (
        "submission_id", "sender_name", "sender", "idempotency_key", "match", "ref", "task", "shown_state", "reason",
        "created_at", "finished_at", "result", "body",
    )  # fmt: skip
    match = column("match", lambda submission: submission.ref.match, ordering="ref__match__title")
    shown_state = column("state", lambda submission: submission.state, label=SUBMISSION_COLOURS, ordering="state")
