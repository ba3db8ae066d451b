"""Every request to a protected endpoint, for audit and for the consumers' usage figures. Sole writer: access_log."""

from __future__ import annotations

from django.db import models


class AccessLog(models.Model):
    consumer = models.ForeignKey("apiauth.Consumer", on_delete=models.SET_NULL, null=True, related_name="+")
    timestamp = models.DateTimeField()
    method = models.CharField(max_length=8)
    endpoint = models.CharField(max_length=200)
    response_status = models.PositiveSmallIntegerField()
    data_age_seconds = models.FloatField(null=True, blank=True)
    duration_ms = models.PositiveIntegerField(default=0)
    request_id = models.CharField(max_length=64)

    class Meta:
        indexes = (
            models.Index(fields=("consumer", "timestamp"), name="access_consumer_time"),
            models.Index(fields=("timestamp",), name="access_time"),
        )

    def __str__(self) -> str:
        return f"{self.method} {self.endpoint} {self.response_status}"
