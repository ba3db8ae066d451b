"""Ask again for what has failed, and open the jobs again that wait for it."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from scraping import journal
from scraping.jobs.ending import reopen
from scraping.jobs.refusal import Refused
from scraping.journal import RetryOutcome, Which
from scraping.models import ErrorGroup, ScrapeJob, Source


def retry_failed(which: Which, *, actor: str, now: datetime, is_dry_run: bool = False) -> RetryOutcome:
    """Retry failed and dead tasks by job, source, class of error or fingerprint. Refused where that names nothing."""
    _refuse_the_unknown(which)
    with transaction.atomic():
        outcome = journal.retry_matching(which, actor=actor, now=now, is_dry_run=is_dry_run)
        if not is_dry_run:
            reopen(outcome.retried)
    return outcome


def _refuse_the_unknown(which: Which) -> None:
    """A misspelled name must not look like nothing to do."""
    if not which:
        raise Refused("body", "say which: give at least one of job, source, error_class, fingerprint")
    if which.job_id is not None and not ScrapeJob.objects.filter(pk=which.job_id).exists():
        raise Refused("job", f"there is no job {which.job_id}")
    if which.source_key and not Source.objects.filter(key=which.source_key).exists():
        known = ", ".join(Source.objects.values_list("key", flat=True))
        raise Refused("source", f"there is no source {which.source_key!r}; there are: {known or 'none'}")
    if which.fingerprint and not ErrorGroup.objects.filter(fingerprint=which.fingerprint).exists():
        raise Refused("fingerprint", "no group of errors has this fingerprint; the admin lists them")
