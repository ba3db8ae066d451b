"""Rounds and lists of matches over HTTP: start them, see how far they are, ask again for what failed.

Nothing is read from a source here: requests write the journal, workers do the rest.
"""

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
        "Needs the scope operate. Answers at once (202); workers do the reading. Every match is written down as "
        "expected before the first is read, matches that are complete already are skipped. Asked for again while the "
        "same round or list is open, or with the same Idempotency-Key, it answers 200 with that job.",
        JobDocument,
        tag="jobs",
        answers={202: JobDocument},
        problems=(400, 409, 413, 415),
        parameters=idempotency_parameters(
            KEY_LENGTH,
            f"Up to {KEY_LENGTH} characters of your choice. The same key again gives the same job back, for ever.",
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
        "Needs the scope operate. Newest first, with how far each is.",
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
        before = params.read_cursor(asked.get("cursor"))
        if before is not None:
            rows = rows.filter(pk__lt=before)
        found = list(rows[: asked["limit"] + 1])
        shown, has_more = found[: asked["limit"]], len(found) > asked["limit"]
        next_page = address(request, cursor=params.make_cursor(shown[-1].pk)) if has_more else None
        summaries = [JobSummary.render(one) for one in jobs.views(shown)]
        return Response(JobList.render(jobs=summaries, next=next_page), headers=NO_STORE)


class JobView(ApiView):
    required_scope = "operate"

    @describe(
        "read_job",
        "See how far a job is",
        "Needs the scope operate. What is expected, what is done, and each missing match with the reason.",
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
        "Ask again for what failed",
        "Needs the scope operate. Opens failed and dead tasks again: those of a job, of a source, of a class of "
        "errors, of a group of equal errors, or all of these at once. Twice is once; where another task for the same "
        "match is open, or has done it since, nothing is opened and the answer says so.",
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
