"""Rounds and lists of matches over HTTP: start them, see how far they are, ask again for what failed.

Nothing is read from a source here: requests write the journal, workers do the rest.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from scraping import jobs
from scraping.api import params
from scraping.api.fresh_view import address
from scraping.api.job_schema import (
    JOB,
    JOBS,
    KEY_LENGTH,
    RETRY_FAILED,
    SCRAPE,
    JobList,
    JobListParams,
    RetryAnswer,
    RetryRequest,
    ScrapeRequest,
)
from scraping.api.operations import actor_of
from scraping.documents.queries import MAX_ID
from scraping.errors import ErrorClass
from scraping.journal import TaskSelection
from scraping.models import JobKind, ScrapeJob
from victoryline.lib.http.problems import BadParameter, Conflict
from victoryline.lib.http.views import ApiView, read_params

NO_STORE = {"Cache-Control": "no-store"}


class ScrapeView(ApiView):
    required_scope = "operate"

    @extend_schema(**SCRAPE)
    def post(self, request: Request) -> Response:
        asked = ScrapeRequest(data=request.data)
        asked.is_valid(raise_exception=True)
        try:
            started = _start(asked.validated_data, actor_of(request), _idempotency_key(request))
        except jobs.Refused as refusal:
            raise ValidationError({refusal.field: list(refusal.reasons)}) from refusal
        except jobs.KeyReused as reuse:
            raise Conflict(str(reuse), job=reuse.job_id) from reuse
        address = request.build_absolute_uri(reverse("scrape-job", args=[started.job.pk]))
        return Response(
            jobs.document(jobs.view(started.job)),
            status=202 if started.is_new else 200,
            headers={"Location": address, **NO_STORE},
        )


class JobListView(ApiView):
    required_scope = "operate"

    @extend_schema(**JOBS)
    def get(self, request: Request) -> Response:
        asked = read_params(JobListParams, request)
        rows = _listed(asked)
        before = params.read_cursor(asked.get("cursor"))
        if before is not None:
            rows = rows.filter(pk__lt=before)
        found = list(rows[: asked["limit"] + 1])
        shown, has_more = found[: asked["limit"]], len(found) > asked["limit"]
        next_page = address(request, cursor=params.make_cursor(shown[-1].pk)) if has_more else None
        summaries = [jobs.summary(one) for one in jobs.views(shown)]
        return Response(JobList.render(jobs=summaries, next=next_page), headers=NO_STORE)


class JobView(ApiView):
    required_scope = "operate"

    @extend_schema(**JOB)
    def get(self, request: Request, job_id: str) -> Response:
        is_number = job_id.isascii() and job_id.isdigit() and len(job_id) <= 19 and int(job_id) <= MAX_ID
        job = _all().filter(pk=int(job_id)).first() if is_number else None
        if job is None:
            raise NotFound(f"There is no job {job_id[:100]}. GET /api/scrape/jobs lists those that there are.")
        return Response(jobs.document(jobs.view(job)), headers=NO_STORE)


class RetryFailedView(ApiView):
    required_scope = "operate"

    @extend_schema(**RETRY_FAILED)
    def post(self, request: Request) -> Response:
        asked = RetryRequest(data=request.data)
        asked.is_valid(raise_exception=True)
        which, is_dry_run = _which(asked.validated_data), asked.validated_data["dry_run"]
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


def _idempotency_key(request: Request) -> str:
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > KEY_LENGTH or not key.isprintable():
        said = f"`Idempotency-Key` can't be used: it has up to {KEY_LENGTH} printable characters."
        raise BadParameter("Idempotency-Key", said)
    return key


def _all() -> QuerySet[ScrapeJob]:
    return ScrapeJob.objects.exclude(kind=JobKind.WATCH).select_related("source").order_by("-pk")


def _listed(asked: dict[str, Any]) -> QuerySet[ScrapeJob]:
    rows = _all()
    if "kind" in asked:
        rows = rows.filter(kind=asked["kind"])
    if "source" in asked:
        rows = rows.filter(source__key=asked["source"])
    if "open" in asked:
        rows = rows.filter(finished_at__isnull=asked["open"] == "true")
    return rows


def _which(asked: dict[str, Any]) -> TaskSelection:
    return TaskSelection(
        job_id=asked.get("job"),
        source_key=asked.get("source", ""),
        error_class=ErrorClass(asked["error_class"]) if "error_class" in asked else None,
        fingerprint=asked.get("fingerprint", ""),
    )
