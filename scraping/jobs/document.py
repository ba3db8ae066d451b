"""A job as plain JSON values: what the API answers and `manage.py job --json` prints."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scraping.jobs.progress import ItemView, JobView, Standing
from victoryline.lib.times import as_utc_iso

Document = dict[str, Any]


def summary(view: JobView) -> Document:
    job, progress = view.job, view.progress
    return {
        "id": job.pk,
        "kind": job.kind,
        "name": job.name,
        "source": job.source.key if job.source else None,
        "state": view.state.value,
        "parameters": job.parameters,
        "requested_by": job.requested_by,
        "started_at": as_utc_iso(job.created_at),
        "discovered_at": _time(job.discovered_at),
        "finished_at": _time(job.finished_at),
        "expected": progress.expected,
        **{standing.value: progress.counts[standing] for standing in Standing},
        "percent": progress.percent,
        "problem": view.problem,
    }


def document(view: JobView) -> Document:
    return {**summary(view), "missing": [_missing(item) for item in view.missing]}


def _missing(item: ItemView) -> Document:
    return {
        "key": item.key,
        "title": item.title,
        "url": item.url,
        "state": item.standing.value,
        "reason": item.reason,
        "attempts": item.attempts,
        "next_attempt_at": _time(item.next_attempt_at),
        "task_id": item.task_id,
    }


def _time(moment: datetime | None) -> str | None:
    return as_utc_iso(moment) if moment else None
