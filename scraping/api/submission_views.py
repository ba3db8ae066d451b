"""Data that is sent in: POST /cricket-data, and what became of it. Requests write it down, workers do the rest."""

from __future__ import annotations

import uuid
from typing import Any

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from scraping.api import submission_params
from scraping.api.submission_described import SUBMISSION, SUBMIT
from scraping.jobs import submissions
from scraping.jobs.submissions import Sender
from scraping.models import Submission
from victoryline.lib.http.problems import Conflict, Unavailable
from victoryline.lib.http.views import ApiView
from victoryline.lib.times import as_utc_iso

NO_STORE = {"Cache-Control": "no-store"}
OFF_SECONDS = 300


class SubmitView(ApiView):
    required_scope = "ingest"

    @extend_schema(**SUBMIT)
    def post(self, request: Request) -> Response:
        now = timezone.now()
        asked = submission_params.read(request, now=now)
        try:
            accepted = submissions.accept(
                asked.matches, sender=_sender(request), key=asked.key, body_hash=asked.body_hash, now=now
            )
        except submissions.KeyReused as reuse:
            raise Conflict(f"{reuse}.", submission_id=str(reuse.submission.submission_id)) from reuse
        except submissions.SwitchedOff as refusal:
            raise Unavailable(f"{refusal}.", retry_after=OFF_SECONDS) from refusal
        found = [_document(request, one) for one in accepted.submissions]
        return Response(
            {"submissions": found} if asked.is_batch else found[0],
            status=202 if accepted.is_new else 200,
            headers={"Location": found[0]["href"], **NO_STORE},
        )


class SubmissionView(ApiView):
    required_scope = "ingest"

    @extend_schema(**SUBMISSION)
    def get(self, request: Request, submission_id: str) -> Response:
        asked = _uuid(submission_id)
        found = submissions.find(asked, sender=_sender(request)) if asked else None
        if found is None:
            raise NotFound(
                f"You have sent nothing that is known as {submission_id[:100]}. The id is in the answer to what you "
                "sent; what was sent long ago is not kept."
            )
        return Response(_document(request, found), headers=NO_STORE)


def _sender(request: Request) -> Sender:
    return Sender(str(request.user.consumer_id), str(request.user.name))  # type: ignore[union-attr]


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def _document(request: Request, one: Submission) -> dict[str, Any]:
    result = one.result
    return {
        "submission_id": str(one.submission_id),
        "state": one.state,
        "reason": one.reason,
        "match_id": one.body["match_id"],
        "match": one.ref.match_id,
        "key": one.ref.key,
        "received_at": as_utc_iso(one.created_at),
        "finished_at": as_utc_iso(one.finished_at) if one.finished_at else None,
        "sequence": result.get("sequence"),
        "is_changed": result.get("is_changed"),
        "is_taken": result.get("is_taken"),
        "events": result.get("events"),
        "href": request.build_absolute_uri(reverse("submission", args=[one.submission_id])),
    }
