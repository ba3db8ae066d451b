"""Data that a consumer sent by POST /cricket-data, stored before it is processed.

Sole writer: submissions. The row is the journal entry; the scheduler opens a task for a match that has a waiting one.
"""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q


class SubmissionState(models.TextChoices):
    ACCEPTED = "accepted"  # stored; waits for a worker
    DONE = "done"
    REFUSED = "refused"  # a worker found it invalid; `reason` says why


class Submission(models.Model):
    submission_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    sender = models.CharField(max_length=64, help_text="The consumer's id.")
    sender_name = models.CharField(max_length=120, blank=True)
    idempotency_key = models.CharField(max_length=200)
    body_hash = models.CharField(max_length=64)
    body = models.JSONField()
    ref = models.ForeignKey("scraping.MatchRef", on_delete=models.CASCADE, related_name="submissions")
    task = models.ForeignKey(
        "scraping.ScrapeTask", on_delete=models.SET_NULL, null=True, blank=True, related_name="submissions"
    )
    state = models.CharField(max_length=10, choices=SubmissionState, default=SubmissionState.ACCEPTED)
    reason = models.CharField(max_length=500, blank=True)
    result = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("sender", "idempotency_key"), name="submission_once_per_key"),
            models.CheckConstraint(condition=Q(state__in=SubmissionState.values), name="submission_state_known"),
        )
        indexes = (
            models.Index(fields=("ref", "id"), name="submission_waiting", condition=Q(state=SubmissionState.ACCEPTED)),
            models.Index(fields=("created_at",), name="submission_created"),
        )

    def __str__(self) -> str:
        return f"submission {self.submission_id} {self.state}"
