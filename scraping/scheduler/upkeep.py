"""Steps that keep the rows of matches and jobs up to date: ages, importance, ended matches, ended jobs."""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce

from scraping import jobs
from scraping.matches import endings, importance, match_logs
from scraping.models import Match, match_key
from victoryline.lib import bulk_sql
from victoryline.lib.availability import DATABASE_AWAY

logger = logging.getLogger(__name__)

MAX_AGE_SECONDS = 2**31 - 1  # the largest number of the column
MATCH_LOGS_AT_ONCE = 2  # writing one takes a moment, and the other steps wait
MATCH_LOGS_TRIED = 10  # so that a few that cannot be written leave a turn to the others
_WRITE_AGES = bulk_sql.with_columns(
    Match, "UPDATE {table} SET {data_freshness_seconds} = v.column2 FROM (VALUES {{rows}}) AS v WHERE {id} = v.column1"
)

_are_rules_applied = False  # to all known matches, since the start of this process


def write_data_ages(now: datetime) -> int:
    """Writes the age of each live match's data into its column, for lists, reports and readers of the table.

    Two statements for any number of matches. A row that is locked is being written just now: its age follows with the
    next run. The API does not use the column; it computes the age of every response. A match that was never read is as
    old as its discovery. Returns how many ages have changed.
    """
    matches = Match.objects.live().watched().annotate(read_at=Coalesce(F("last_scraper_update"), F("created_at")))
    matches = matches.order_by("pk")  # the order in which every other writer locks matches
    if connection.features.has_select_for_update_skip_locked:
        matches = matches.select_for_update(skip_locked=True, no_key=True, of=("self",))
    with transaction.atomic():
        rows = [
            (pk, age)
            for pk, read_at, before in matches.values_list("pk", "read_at", "data_freshness_seconds")
            if (age := min(MAX_AGE_SECONDS, max(0, int((now - read_at).total_seconds())))) != before
        ]
        if not rows:
            return 0
        return bulk_sql.execute_rows(_WRITE_AGES, rows)


def apply_importance_rules(now: datetime) -> int:
    """Applies the rules of importance to all known matches, once: their file may have changed before the start."""
    global _are_rules_applied  # noqa: PLW0603 - a scheduler is one process, and does this once
    if _are_rules_applied:
        return 0
    changed = importance.apply_to_all()
    _are_rules_applied = True
    if changed:
        logger.info(
            "The importance of %d matches has changed, by the rules in %s",
            changed,
            importance.path().name,
            extra={"action": "importance_followed", "changed": changed},
        )
    return changed


def close_finished_jobs(now: datetime) -> int:
    """Closes jobs whose last task has ended, and keeps the outcome of each match before retention removes its task."""
    closed = jobs.views(jobs.close_finished(now=now))
    for one in closed:
        is_good = one.state is jobs.JobState.COMPLETE
        logger.log(
            logging.INFO if is_good else logging.ERROR,
            "Job %d ended %s: %d of %d matches are there (%s)%s",
            one.job.pk,
            one.state.value,
            one.has_all,
            one.expected,
            one.job.name,
            "" if is_good else "; see the job in the admin, and retry what failed when the cause is gone",
            extra={"action": "job_ended", "job_id": one.job.pk},
        )
    return len(closed)


def write_match_logs(now: datetime) -> int:
    """Writes the logs of settled matches, again after a correction; a few at a time.

    One that fails does not keep the others from their turn; a full disk does.
    """
    written = 0
    for match_id in match_logs.due(MATCH_LOGS_TRIED):
        try:
            endings.check_again(match_id, now)
            is_written = match_logs.write(match_id, now=now) is not None
        except DATABASE_AWAY:
            raise
        except Exception:
            key = match_key(match_id)
            extra = {"action": "match_log_failed", "match_id": key}
            logger.exception("The log file of %s could not be written", key, extra=extra)
            continue
        written += is_written
        if not is_written or written >= MATCH_LOGS_AT_ONCE:
            break
    return written
