"""Retries are a part of a source's traffic, and no more than that: what goes beyond it waits its turn.

Its turn comes at the latest when the match would be polled anyway, or after a minute (see policies/retry_budget.py).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import F, Q

from scraping.configuration import policies
from scraping.models import OPEN_STATES, ScrapeTask, TaskState
from scraping.payloads import Resource
from scraping.policies.retry_budget import is_retry, retries_left
from scraping.policies.source_breaker import CallWindow
from scraping.recovery import outcomes

logger = logging.getLogger(__name__)

# Workers write what they count with their heartbeats: retries of the last seconds are looked up in the journal. Some
# are counted twice that way, which only makes the budget a little tighter just after they were made.
UNWRITTEN_SECONDS = 5.0
TELL_EVERY = timedelta(seconds=30)

_told: dict[int, datetime] = {}


def within(ids: Sequence[int], *, now: datetime) -> list[int]:
    """Of these due tasks, in their order: all first attempts, and the retries that their sources can bear."""
    retries = _retries(ids, now)
    if not retries:
        return list(ids)
    left = _left(set(retries.values()), now)
    held: Counter[int] = Counter()
    chosen = []
    for task_id in ids:
        source_id = retries.get(task_id)
        if source_id is None or left[source_id] > 0:
            chosen.append(task_id)
            left[source_id or 0] -= 1
        else:
            held[source_id] += 1
    _tell(held, now)
    return chosen


def _retries(ids: Sequence[int], now: datetime) -> dict[int, int]:
    """Those that are retries on top of the schedule, with their sources."""
    tried = ScrapeTask.objects.filter(pk__in=ids, charged_attempts__gt=0).annotate(scheduled_at=F("ref__next_poll_at"))
    return {
        task.pk: task.source_id
        for task in tried.defer("error")
        if is_retry(
            charged_attempts=task.charged_attempts,
            due_at=task.run_at,
            scheduled_at=task.scheduled_at if task.resource == Resource.SCORECARD else None,
            now=now,
        )
    }


def _left(source_ids: set[int], now: datetime) -> Counter[int]:
    limits = policies.current()
    windows = outcomes.windows(source_ids, since=now - timedelta(seconds=limits.window.window_seconds))
    under_way = _under_way(source_ids, now)
    return Counter(
        {
            source_id: retries_left(windows.get(source_id, CallWindow()), limits.budget, under_way=under_way[source_id])
            for source_id in source_ids
        }
    )


def _under_way(source_ids: Iterable[int], now: datetime) -> Counter[int]:
    """Retries in work, and those that ended so lately that nobody may have written them down yet."""
    since = now - timedelta(seconds=UNWRITTEN_SECONDS)
    tried = ScrapeTask.objects.filter(source_id__in=source_ids, attempt__gt=1, charged_attempts__gt=0)
    open_ones = tried.filter(Q(started_at__gt=since) | Q(state=TaskState.EXECUTING), state__in=OPEN_STATES)
    ended = tried.filter(state__in=[state for state in TaskState if state not in OPEN_STATES], finished_at__gt=since)
    return Counter([*open_ones.values_list("source_id", flat=True), *ended.values_list("source_id", flat=True)])


def _tell(held: Mapping[int, int], now: datetime) -> None:
    share = policies.current().budget.percent
    for source_id, number in held.items():
        if source_id in _told and now - _told[source_id] < TELL_EVERY:
            continue
        _told[source_id] = now
        logger.warning(
            "%d retries of source %s wait: retries may be %g %% of its calls, and they are. Nothing is lost; they go "
            "on with the next polls of their matches",
            number,
            source_id,
            share,
            extra={"action": "retries_wait", "source": source_id, "waiting": number},
        )
