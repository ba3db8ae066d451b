"""Tables of health, grades, alerts and audit."""

from monitoring.models.alert import Alert, AlertMessage, Channel, Severity
from monitoring.models.audit import AuditEntry, AuditOutcome
from monitoring.models.health import Grade, GradeChange, HealthLog

__all__ = [
    "Alert",
    "AlertMessage",
    "AuditEntry",
    "AuditOutcome",
    "Channel",
    "Grade",
    "GradeChange",
    "HealthLog",
    "Severity",
]
