"""The access log, for audit, and its hourly sums, which are kept longer. Only writer: access_log."""

from django.db import models


class AccessLog(models.Model):
    consumer = models.ForeignKey("apiauth.Consumer", on_delete=models.SET_NULL, null=True, related_name="+")
    key_prefix = models.CharField(
        max_length=16, blank=True, default="", db_default="", help_text="Of the key that was used, valid or not."
    )
    timestamp = models.DateTimeField()
    method = models.CharField(max_length=8)
    endpoint = models.CharField(max_length=200)
    route = models.CharField(
        max_length=60,
        blank=True,
        default="",
        db_default="",
        help_text="Which address it was, by its name: match, matches.",
    )
    response_status = models.PositiveSmallIntegerField()
    data_age_seconds = models.FloatField(null=True, blank=True)
    data_state = models.CharField(max_length=10, blank=True, default="", db_default="")
    duration_ms = models.PositiveIntegerField(default=0)
    request_id = models.CharField(max_length=64)

    class Meta:
        verbose_name = "request"
        verbose_name_plural = "access log"
        indexes = (
            models.Index(fields=("consumer", "timestamp"), name="access_consumer_time"),
            models.Index(fields=("timestamp",), name="access_time"),
        )

    def __str__(self) -> str:
        return f"{self.method} {self.endpoint} {self.response_status}"


class UsageHour(models.Model):
    """Requests of one consumer to one route in one hour (UTC). Unsaved, with the sums alone: of several hours."""

    consumer = models.ForeignKey("apiauth.Consumer", on_delete=models.CASCADE, related_name="usage")
    hour = models.DateTimeField(help_text="Its beginning.")
    route = models.CharField(max_length=60, blank=True)
    requests = models.PositiveIntegerField(default=0)
    not_modified = models.PositiveIntegerField(default=0, help_text="Answers of 304, which cost no quota.")
    throttled = models.PositiveIntegerField(default=0, help_text="Answers of 429.")
    refused = models.PositiveIntegerField(default=0, help_text="Other answers of 4xx.")
    failed = models.PositiveIntegerField(default=0, help_text="Answers of 5xx.")
    duration_ms_total = models.PositiveBigIntegerField(default=0)
    duration_ms_most = models.PositiveIntegerField(default=0)
    aged = models.PositiveIntegerField(default=0, help_text="Answers with an age.")
    age_seconds_total = models.FloatField(default=0)
    age_seconds_most = models.FloatField(default=0)

    class Meta:
        verbose_name = "usage of an hour"
        verbose_name_plural = "usage"
        constraints = (models.UniqueConstraint(fields=("consumer", "hour", "route"), name="usage_once_an_hour"),)
        indexes = (models.Index(fields=("hour",), name="usage_hour"),)

    @property
    def answered(self) -> int:
        """Requests answered in full."""
        return self.requests - self.not_modified - self.throttled - self.refused - self.failed

    @property
    def mean_ms(self) -> float | None:
        return self.duration_ms_total / self.requests if self.requests else None

    @property
    def mean_age_seconds(self) -> float | None:
        return self.age_seconds_total / self.aged if self.aged else None

    @property
    def most_age_seconds(self) -> float | None:
        return self.age_seconds_most if self.aged else None

    def __str__(self) -> str:
        return f"{self.consumer} {self.hour:%Y-%m-%d %H} {self.route}: {self.requests}"
