"""What consumers have sent in, and what became of it."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from scraping.models import Submission, SubmissionState
from victoryline.lib.admin import BAD, GOOD, NEWS, HistoryAdmin, json_block

STATE_COLOURS = {
    SubmissionState.ACCEPTED.value: NEWS,
    SubmissionState.DONE.value: GOOD,
    SubmissionState.REFUSED.value: BAD,
}


@admin.register(Submission)
class SubmissionAdmin(HistoryAdmin):
    none_yet = (
        "Nobody has sent anything in. A consumer whose key has the scope ingest does so with POST /cricket-data; each "
        "match of it is a row here, before anything is done with it."
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

    @display(description="state", label=STATE_COLOURS, ordering="state")  # type: ignore[untyped-decorator]
    def shown_state(self, submission: Submission) -> str:
        return submission.state

    @admin.display(description="what it came to")
    def shown_result(self, submission: Submission) -> str:
        return json_block(submission.result)

    @admin.display(description="as it was sent")
    def shown_body(self, submission: Submission) -> str:
        return json_block(submission.body)
