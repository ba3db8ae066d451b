"""Failed attempts, one row each, and the groups of equal ones. Sole writer: journal.error_log."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from scraping.errors import ErrorClass, ErrorType


class ErrorGroup(models.Model):
    fingerprint = models.CharField(max_length=64, unique=True)
    source = models.ForeignKey("scraping.Source", on_delete=models.PROTECT, related_name="error_groups")
    error_class = models.CharField(max_length=12, choices=[(c.value, c.value) for c in ErrorClass])
    error_code = models.CharField(max_length=50)
    sample_message = models.CharField(max_length=500)
    count = models.PositiveIntegerField(default=0)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    muted_until = models.DateTimeField(
        null=True, blank=True, help_text="Dead tasks with it send no message until then."
    )
    assigned_to = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    resolved_at = models.DateTimeField(null=True, blank=True, help_text="Empty again after a later error.")
    resolved_in = models.CharField(
        max_length=20, blank=True, help_text="Only errors of a newer version than this one reopen it; empty: any."
    )

    class Meta:
        indexes = (models.Index(fields=("-last_seen_at",), name="errorgroup_last_seen"),)

    def __str__(self) -> str:
        return f"{self.error_code}: {self.sample_message[:80]}"


class ScrapeError(models.Model):
    scraper_id = models.UUIDField(null=True, blank=True)
    task = models.ForeignKey("scraping.ScrapeTask", on_delete=models.SET_NULL, null=True, related_name="errors")
    match = models.ForeignKey(
        "scraping.Match", on_delete=models.CASCADE, null=True, related_name="errors", db_column="match_number"
    )
    match_key = models.CharField(
        "match id",
        max_length=160,
        blank=True,
        db_column="match_id",
        help_text="The match's name at the source that failed: crex_13KM.",
    )
    group = models.ForeignKey(ErrorGroup, on_delete=models.CASCADE, null=True, related_name="errors")
    timestamp = models.DateTimeField()
    error_class = models.CharField(max_length=12, choices=[(c.value, c.value) for c in ErrorClass])
    error_type = models.CharField(max_length=50, choices=[(t.value, t.value) for t in ErrorType])
    error_code = models.CharField(max_length=50, help_text="More exact than the class: timeout, layout, schema.")
    error_message = models.TextField(blank=True)
    stack_trace = models.TextField(blank=True)
    url = models.CharField(max_length=500, blank=True)
    operation = models.CharField(max_length=100, blank=True)
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)
    retry_attempt = models.PositiveSmallIntegerField(default=0)
    duration_ms = models.PositiveIntegerField("took (ms)", null=True, blank=True)
    stage = models.CharField(max_length=14, blank=True, help_text="The stage that the attempt had reached.")
    requests = models.JSONField(
        default=list, blank=True, help_text="The attempt's requests: method, address, status, bytes, ms, error."
    )
    evidence = models.TextField(blank=True, help_text="The beginning of the document that was read, redacted.")
    resolved = models.BooleanField(default=False)
    resolution_time = models.DateTimeField(null=True, blank=True)
    resolution_method = models.CharField(
        max_length=20, blank=True, choices=[(w, w) for w in ("auto_retry", "circuit_breaker", "manual", "restart")]
    )

    class Meta:
        verbose_name = "error"
        db_table = "scraper_errors"
        indexes = (
            models.Index(fields=("scraper_id", "timestamp"), name="error_scraper_time"),
            models.Index(fields=("error_type", "timestamp"), name="error_type_time"),
            models.Index(fields=("error_class", "timestamp"), name="error_class_time"),
            models.Index(fields=("group", "task"), name="error_open_of_group", condition=models.Q(resolved=False)),
            models.Index(fields=("resolved", "timestamp"), name="error_unresolved"),
            models.Index(fields=("match", "timestamp"), name="error_match_time"),
            models.Index(fields=("timestamp",), name="error_time"),
        )

    def __str__(self) -> str:
        return f"{self.error_code} at {self.timestamp:%H:%M:%S}"


class EvidenceKind(models.TextChoices):
    PAGE = "page", "the page as it was read"
    SCREENSHOT = "screenshot", "what a person would have seen"
    ANSWER = "answer", "the JSON answer that was refused"


class Evidence(models.Model):
    """A file with what a failed attempt received: redacted, capped, never rendered as markup."""

    error = models.ForeignKey(ScrapeError, on_delete=models.CASCADE, related_name="files")
    kind = models.CharField(max_length=10, choices=EvidenceKind)
    path = models.CharField(max_length=200, unique=True, help_text="Below STORAGE_DIR.")
    size_bytes = models.PositiveIntegerField()
    is_truncated = models.BooleanField(default=False)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "evidence"
        constraints = (
            models.CheckConstraint(condition=models.Q(kind__in=EvidenceKind.values), name="evidence_kind_known"),
        )
        indexes = (models.Index(fields=("created_at",), name="evidence_time"),)

    def __str__(self) -> str:
        return self.path
