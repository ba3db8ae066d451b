"""Tables of health, grades, alerts, audit and log lines."""

from monitoring.models.alert import Alert, Channel, Severity
from monitoring.models.audit import AuditEntry, AuditOutcome
from monitoring.models.health import Grade, GradeChange, HealthLog
from monitoring.models.log import LogEntry

__all__ = [
    "Alert",
    "AuditEntry",
    "AuditOutcome",
    "Channel",
    "Grade",
    "GradeChange",
    "HealthLog",
    "LogEntry",
    "Severity",
]
