"""Admin of jobs (start a round or a list of URLs, see progress, retry failures) and of submissions."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from unfold.decorators import display
from unfold.forms import BaseDialogForm

from scraping import jobs
from scraping.admin.job_forms import RoundForm, StartForm, UrlsForm
from scraping.journal import RetryOutcome, TaskSelection
from scraping.models import JobItem, JobKind, ScrapeJob, Submission, SubmissionState
from victoryline.lib.admin import (
    BAD,
    CAREFUL,
    GOOD,
    NEWS,
    HistoryAdmin,
    after_dialog,
    asks_first,
    json_block,
    report_outcome,
    username,
)

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


@admin.register(ScrapeJob)
class ScrapeJobAdmin(HistoryAdmin):
    list_display = ("name", "shown_state", "shown_progress", "requested_by", "created_at", "finished_at")
    list_filter = ("kind", "source")
    list_select_related = ("source",)
    search_fields = ("=id", "name", "requested_by")
    ordering = ("-created_at",)
    actions_list = ("start_round", "start_urls")
    actions_detail = ("retry_failed_of_job",)
    change_form_before_template = "admin/scraping/job.html"
    fields = (
        "name",
        "kind",
        "source",
        "requested_by",
        "shown_parameters",
        "created_at",
        "discovered_at",
        "finished_at",
    )
    readonly_fields = ("shown_parameters",)

    class Media:
        js = ("victoryline/job.js",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ScrapeJob]:
        rows: QuerySet[ScrapeJob] = super().get_queryset(request)
        return rows.select_related("source")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Counts the progress of all jobs on the page together."""
        response = super().changelist_view(request, extra_context)
        shown = (getattr(response, "context_data", None) or {}).get("cl")
        if shown is not None:
            views = {view.job.pk: view for view in jobs.views(shown.result_list)}
            for job in shown.result_list:
                job.view = views[job.pk]
        return response  # type: ignore[no-any-return]

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        job = self.get_object(request, object_id) if object_id else None
        shown = {"job_page": _page(job)} if job is not None and job.kind != JobKind.WATCH else {}
        return super().changeform_view(request, object_id, form_url, {**(extra_context or {}), **shown})

    @display(description="state", label=STATE_COLOURS)  # type: ignore[untyped-decorator]
    def shown_state(self, job: ScrapeJob) -> str:
        return "-" if job.kind == JobKind.WATCH else _view(job).state.value

    @admin.display(description="progress")
    def shown_progress(self, job: ScrapeJob) -> str:
        if job.kind == JobKind.WATCH:
            return "-"
        progress = _view(job).progress
        return f"{progress.has_all} of {progress.expected}" if progress.expected else "-"

    @admin.display(description="parameters")
    def shown_parameters(self, job: ScrapeJob) -> str:
        return json_block(job.parameters)

    def has_start_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(request.user.has_perm("scraping.add_scrapejob"))

    def has_operate_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(request.user.has_perm("scraping.change_scrapetask"))

    @asks_first(
        "Start a round",
        icon="play_arrow",
        permission="start",
        title="Start a round",
        explanation=(
            "The matches of the round are listed and journaled; then the workers read each of them completely. "
            "Complete matches are skipped."
        ),
        button="Start",
        form=RoundForm,
    )
    def start_round(self, request: HttpRequest, form: RoundForm) -> HttpResponse:
        return _started(request, form)

    @asks_first(
        "Start by URL",
        icon="link",
        permission="start",
        title="Read matches by URL",
        explanation="Each URL must be a match page of a configured source. If one is not, nothing is started.",
        button="Start",
        form=UrlsForm,
    )
    def start_urls(self, request: HttpRequest, form: UrlsForm) -> HttpResponse:
        return _started(request, form)

    @asks_first(
        "Retry what failed",
        icon="refresh",
        permission="operate",
        title="Retry what failed",
        explanation=(
            "Failed and dead tasks of this job are due at once, with all of their attempts. What is done stays done."
        ),
        button="Retry",
    )
    def retry_failed_of_job(self, request: HttpRequest, form: BaseDialogForm, object_id: int) -> HttpResponse:
        retry_and_tell(request, TaskSelection(job_id=int(object_id)))
        return after_dialog(request, reverse("admin:scraping_scrapejob_change", args=[object_id]))


@admin.register(JobItem)
class JobItemAdmin(HistoryAdmin):
    list_display = ("ref", "job", "task", "outcome", "skipped_because")
    list_filter = ("outcome",)
    search_fields = ("=job__id", "ref__source_event_id", "ref__match__title")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[JobItem]:
        rows: QuerySet[JobItem] = super().get_queryset(request)
        return rows.select_related("ref__source", "job", "task").defer("ref__payload", "task__error")


def retry_and_tell(request: HttpRequest, which: TaskSelection) -> None:
    """Retries failed tasks and shows the result as a message."""
    try:
        outcome = jobs.retry_failed(which, actor=username(request), now=timezone.now())
    except jobs.Refused as refusal:
        report_outcome(request, refused=f"Nothing was retried: {refusal}.")
        return
    report_outcome(request, done=_done(outcome), refused=_refused(outcome))


def _done(outcome: RetryOutcome) -> str:
    number = len(outcome.retried)
    if not number:
        return "" if outcome.refused else "No task has failed, so nothing was retried."
    more = " There are more: repeat the action." if outcome.has_more else ""
    return f"Retried {number} {'task' if number == 1 else 'tasks'}.{more}"


def _refused(outcome: RetryOutcome) -> str:
    reasons = [f"task {pk}: {why}" for pk, why in list(outcome.refused.items())[:5]]
    return f"{len(outcome.refused)} not retried. {'; '.join(reasons)}." if reasons else ""


def _started(request: HttpRequest, form: StartForm) -> HttpResponse:
    job = form.started.job
    known = "" if form.started.is_new else " It was open already; nothing new was started."
    report_outcome(request, done=f"Job {job.pk}: {job.name}.{known}")
    return after_dialog(request, reverse("admin:scraping_scrapejob_change", args=[job.pk]))


def _view(job: ScrapeJob) -> jobs.JobView:
    found: jobs.JobView | None = getattr(job, "view", None)
    return found or jobs.views([job])[0]


def _page(job: ScrapeJob) -> dict[str, Any]:
    """Returns the context of the job page."""
    view = jobs.view(job)
    items = sorted(view.items, key=lambda item: item.standing in (jobs.Standing.DONE, jobs.Standing.SKIPPED))
    return {
        "view": view,
        "state_colour": STATE_COLOURS[view.state.value],
        "is_open": job.finished_at is None,
        "counts": [
            {"name": standing.value.replace("_", " "), "number": view.progress.counts[standing]}
            for standing in jobs.Standing
            if view.progress.counts[standing]
        ],
        "items": [{"is": item, "colour": STANDING_COLOURS.get(item.standing.value, "default")} for item in items],
    }


SUBMISSION_COLOURS = {
    SubmissionState.ACCEPTED.value: NEWS,
    SubmissionState.DONE.value: GOOD,
    SubmissionState.REFUSED.value: BAD,
}


@admin.register(Submission)
class SubmissionAdmin(HistoryAdmin):
    none_yet = (
        "No submissions yet. A consumer whose key has the scope ingest sends matches with POST /cricket-data; each "
        "match is a row here before it is processed."
    )
    list_display = ("created_at", "sender_name", "match", "shown_state", "reason", "finished_at")
    list_filter = ("state", "sender_name")
    search_fields = ("submission_id", "sender", "sender_name", "idempotency_key", "reason", "ref__match__title")
    ordering = ("-id",)
    fields = (
        *("submission_id", "sender_name", "sender", "idempotency_key", "match", "ref", "task"),
        *("shown_state", "reason", "created_at", "finished_at", "shown_result", "shown_body"),
    )
    readonly_fields = ("match", "shown_state", "shown_result", "shown_body")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Submission]:
        rows: QuerySet[Submission] = super().get_queryset(request).select_related("ref__match", "ref__source")
        return rows.defer("ref__payload", "ref__match__payload", "ref__match__provenance", "ref__source__metadata")

    @admin.display(description="match", ordering="ref__match__title")
    def match(self, submission: Submission) -> str:
        return str(submission.ref.match)

    @display(description="state", label=SUBMISSION_COLOURS, ordering="state")  # type: ignore[untyped-decorator]
    def shown_state(self, submission: Submission) -> str:
        return submission.state

    @admin.display(description="result")
    def shown_result(self, submission: Submission) -> str:
        return json_block(submission.result)

    @admin.display(description="body")
    def shown_body(self, submission: Submission) -> str:
        return json_block(submission.body)
