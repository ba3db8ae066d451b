"""Jobs over HTTP: start a round or a list of matches, read its progress, retry failed tasks."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from scraping import jobs
from scraping.api import params
from scraping.api.fresh_view import address
from scraping.api.job_bodies import JobDocument, JobList, JobSummary, RetryAnswer, RetryRequest, ScrapeRequest
from scraping.api.operations import actor_of
from scraping.api.params import JobListParams
from scraping.documents.queries import MAX_ID
from scraping.errors import ErrorClass
from scraping.journal import TaskSelection
from scraping.matches.watches import ADMISSION_RETRY_SECONDS
from scraping.models import JobKind, ScrapeJob
from victoryline.lib.http.headers import NO_STORE
from victoryline.lib.http.openapi import describe, idempotency_parameters
from victoryline.lib.http.problems import ApiProblem
from victoryline.lib.http.views import ApiView, idempotency_key, read_params

KEY_LENGTH = 200


class ScrapeView(ApiView):
    required_scope = "operate"

    @describe(
        "start_job",
        "Start a round, or a list of matches",
        "Needs the scope operate. The answer (202) comes at once; workers read the matches. Every expected match is "
        "stored before the first is read; matches that are complete already are skipped. A repeated request for an "
        "open round or list, or with the same Idempotency-Key, returns that job (200). While the "
        "workers' machines have too little memory a new job is answered with 503 `insufficient-memory` and its number "
        "in `job`: it is written down, and begins by itself when there is room.",
        JobDocument,
        tag="jobs",
        answers={202: JobDocument},
        problems=(400, 409, 413, 415),
        parameters=idempotency_parameters(
            KEY_LENGTH,
            f"Up to {KEY_LENGTH} characters of your choice. The same key always returns the same job.",
            location="The address of the job.",
        ),
        request=ScrapeRequest,
    )
    def post(self, request: Request) -> Response:
        asked = ScrapeRequest(data=request.data)
        asked.is_valid(raise_exception=True)
        try:
            started = _start(asked.validated_data, actor_of(request), idempotency_key(request, KEY_LENGTH))
        except jobs.Refused as refusal:
            raise ValidationError({refusal.field: list(refusal.reasons)}) from refusal
        except jobs.KeyReused as reuse:
            raise ApiProblem("conflict", str(reuse), job=reuse.job_id) from reuse
        if started.shortage:
            raise ApiProblem(
                "insufficient-memory",
                f"Insufficient memory resources: {started.shortage}. Nothing is lost: job {started.job.pk} is written "
                "down and begins by itself when there is room.",
                retry_after=ADMISSION_RETRY_SECONDS,
                job=started.job.pk,
            )
        address = request.build_absolute_uri(reverse("scrape-job", args=[started.job.pk]))
        return Response(
            JobDocument.render(jobs.view(started.job)),
            status=202 if started.is_new else 200,
            headers={"Location": address, **NO_STORE},
        )


class JobListView(ApiView):
    required_scope = "operate"

    @describe(
        "list_jobs",
        "List jobs",
        "Needs the scope operate. Newest first, each with its progress.",
        JobList,
        tag="jobs",
        problems=(400,),
        parameters=[JobListParams],
    )
    def get(self, request: Request) -> Response:
        asked = read_params(JobListParams, request)
        rows = _all()
        if "kind" in asked:
            rows = rows.filter(kind=asked["kind"])
        if "source" in asked:
            rows = rows.filter(source__key=asked["source"])
        if "open" in asked:
            rows = rows.filter(finished_at__isnull=asked["open"] == "true")
        place = params.read_cursor(asked.get("cursor"))
        before = None if place is None else -place[1]
        if before is not None:
            rows = rows.filter(pk__lt=before)
        found = list(rows[: asked["limit"] + 1])
        shown, has_more = found[: asked["limit"]], len(found) > asked["limit"]
        next_page = address(request, cursor=params.make_cursor((0, -shown[-1].pk))) if has_more else None
        summaries = [JobSummary.render(one) for one in jobs.views(shown)]
        return Response(JobList.render(jobs=summaries, next=next_page), headers=NO_STORE)


class JobDetailView(ApiView):
    required_scope = "operate"

    @describe(
        "read_job",
        "Read the progress of a job",
        "Needs the scope operate. The numbers of expected and finished matches, and each missing match with the "
        "reason.",
        JobDocument,
        tag="jobs",
        problems=(404,),
        parameters=[OpenApiParameter("job_id", str, OpenApiParameter.PATH, description="The job's number.")],
    )
    def get(self, request: Request, job_id: str) -> Response:
        is_number = job_id.isascii() and job_id.isdigit() and len(job_id) <= 19 and int(job_id) <= MAX_ID
        job = _all().filter(pk=int(job_id)).first() if is_number else None
        if job is None:
            raise NotFound(f"There is no job {job_id[:100]}. GET /api/scrape/jobs lists those that there are.")
        return Response(JobDocument.render(jobs.view(job)), headers=NO_STORE)


class RetryFailedView(ApiView):
    required_scope = "operate"

    @describe(
        "retry_failed",
        "Retry failed tasks",
        "Needs the scope operate. Reopens failed and dead tasks that match all given filters: job, source, error "
        "class, error group. A repeated request changes nothing. A task is refused, with the reason, if another task "
        "for the same match is open or has succeeded since.",
        RetryAnswer,
        tag="jobs",
        problems=(400, 413, 415),
        request=RetryRequest,
    )
    def post(self, request: Request) -> Response:
        asked = RetryRequest(data=request.data)
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data
        which = TaskSelection(
            job_id=wanted.get("job"),
            source_key=wanted.get("source", ""),
            error_class=ErrorClass(wanted["error_class"]) if "error_class" in wanted else None,
            fingerprint=wanted.get("fingerprint", ""),
        )
        is_dry_run = wanted["dry_run"]
        try:
            outcome = jobs.retry_failed(which, actor=actor_of(request), now=timezone.now(), is_dry_run=is_dry_run)
        except jobs.Refused as refusal:
            raise ValidationError({refusal.field: list(refusal.reasons)}) from refusal
        return Response(RetryAnswer.render(outcome, dry_run=is_dry_run), headers=NO_STORE)


def _start(asked: dict[str, Any], actor: str, key: str) -> jobs.Started:
    now = timezone.now()
    if "urls" in asked:
        return jobs.start_urls(urls=asked["urls"], requested_by=actor, idempotency_key=key, now=now)
    return jobs.start_round(
        source_key=asked["source"],
        asked=asked["round"],
        matches=asked.get("matches"),
        requested_by=actor,
        idempotency_key=key,
        now=now,
    )


def _all() -> QuerySet[ScrapeJob]:
    return ScrapeJob.objects.exclude(kind=JobKind.WATCH).select_related("source").order_by("-pk")
