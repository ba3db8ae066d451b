"""Where in the admin the cause of an alert is seen best."""

from __future__ import annotations

from django.urls import reverse

from monitoring.alerts import causes
from monitoring.models import Alert


def place_of(alert: Alert) -> str:
    """The alert itself when we know no better place."""
    match_id, task_id = alert.detail.get("match_id"), alert.detail.get("task_id")
    if match_id and alert.key.startswith(causes.DEAD):
        return f"{reverse('admin:scraping_scrapetask_changelist')}?ref__match__id__exact={match_id}&state__exact=DEAD"
    if match_id and alert.key.startswith((causes.ERROR_RATE, causes.LAYOUT)):
        return f"{reverse('admin:scraping_scrapeerror_changelist')}?match__id__exact={match_id}"
    if match_id:
        return reverse("admin:scraping_match_change", args=[match_id])
    if task_id:
        return reverse("admin:scraping_scrapetask_change", args=[task_id])
    if alert.key.startswith(causes.TRAFFIC):
        return reverse("admin:scraping_sourceday_changelist")
    if alert.key.startswith((causes.DRIFT, causes.SPARSE)):
        return reverse("admin:scraping_fieldfill_changelist")
    if alert.key.startswith(causes.CHANGED):
        return f"{reverse('admin:scraping_scrapeerror_changelist')}?error_class__exact=drift"
    if alert.key.startswith(causes.DELIVERY):
        return reverse("admin:monitoring_alertmessage_changelist")
    if alert.key == causes.NO_WORKER or alert.key.startswith((causes.MEMORY, causes.QUEUE)):
        return reverse("admin:scraping_worker_changelist")
    if alert.key == causes.GRADE:
        return reverse("admin:monitoring_gradechange_changelist")
    return reverse("admin:monitoring_alert_change", args=[alert.pk])
