"""After an outage of the database: workers held readings on disk, and somebody should know.

While it is away nothing can be written down: workers log it, and the couriers tell people directly (alerts.courier).
What is seen here is the return, as each worker reports it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from monitoring.alerts import causes
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import AuditEntry, Severity

NEWS_FOR = timedelta(minutes=15)


def watch_spool(now: datetime) -> int:
    """How many workers have written what they held lately."""
    returned = AuditEntry.objects.filter(action_type="spool_replay", timestamp__gt=now - NEWS_FOR)
    rows = list(returned.values_list("duration_seconds", "metadata"))
    if not rows:
        close_alert(causes.SPOOL, now)
        return 0
    seconds = max(duration for duration, _ in rows)
    written = sum(metadata.get("written", 0) for _, metadata in rows)
    dropped = sum(metadata.get("dropped", 0) for _, metadata in rows)
    kept = f"{written} readings were held and have been written"
    lost = f", {dropped} were dropped" if dropped else ", none was dropped"
    workers = "a worker" if len(rows) == 1 else f"{len(rows)} workers"
    summary = f"The database was away from {workers} for {seconds:.0f} s: {kept}{lost}"
    detail = {"workers": len(rows), "seconds": round(seconds), "written": written, "dropped": dropped}
    raise_alert(causes.SPOOL, Severity.CRITICAL if dropped else Severity.WARNING, summary, detail, now)
    return len(rows)
