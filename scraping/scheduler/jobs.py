"""Jobs whose last task has ended are closed, and what became of each match is kept before retention takes its task."""

from __future__ import annotations

import logging
from datetime import datetime

from scraping import jobs

logger = logging.getLogger(__name__)


def close_finished_jobs(now: datetime) -> int:
    closed = jobs.views(jobs.close_finished(now=now))
    for one in closed:
        progress, is_good = one.progress, one.state is jobs.JobState.COMPLETE
        logger.log(
            logging.INFO if is_good else logging.ERROR,
            "Job %d ended %s: %d of %d matches are there (%s)%s",
            one.job.pk,
            one.state.value,
            progress.has_all,
            progress.expected,
            one.job.name,
            "" if is_good else "; look at it in the admin, and retry what failed when the cause is gone",
            extra={"action": "job_ended", "job_id": one.job.pk},
        )
    return len(closed)
