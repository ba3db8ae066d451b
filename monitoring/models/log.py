"""Log lines of severity ERROR and CRITICAL as rows, so that they outlive the log files."""

from __future__ import annotations

from django.db import models


class LogEntry(models.Model):
    """One line of a process's log, redacted. Sole writer: monitoring.log_rows."""

    timestamp = models.DateTimeField()
    level = models.CharField(max_length=10)
    service = models.CharField(max_length=20, blank=True)
    action = models.CharField(max_length=60, blank=True)
    match_id = models.CharField(max_length=160, blank=True, help_text="The match's name at a source: crex_13KM.")
    event = models.CharField(max_length=500)
    line = models.JSONField(help_text="The whole line with its context and stack.")

    class Meta:
        verbose_name_plural = "log entries"
        indexes = (
            models.Index(fields=("-timestamp",), name="log_entry_time"),
            models.Index(fields=("level", "-timestamp"), name="log_entry_level"),
        )

    def __str__(self) -> str:
        return f"{self.level} {self.event[:80]}"
