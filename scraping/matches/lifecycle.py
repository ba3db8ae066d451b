"""The lifecycle of a match: discovered, active, paused, completed, archived. One table of legal transitions.

The only writer of the lifecycle and pause columns.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime, timedelta

from django.db import transaction

from scraping import journal
from scraping.errors import ERROR_RULES, ErrorClass
from scraping.matches import poll_times, scrapers
from scraping.models import Match, MatchLifecycle, MatchRef, Priority, ScraperStatus, ScrapeTask, TaskState
from scraping.payloads import Resource, Status
from scraping.signals import match_paused, match_resumed
from victoryline.lib.operators import OperationRefused

logger = logging.getLogger(__name__)

ALLOWED_TRANSITIONS: dict[str, frozenset[str]] = {
    MatchLifecycle.DISCOVERED: frozenset({MatchLifecycle.ACTIVE, MatchLifecycle.PAUSED, MatchLifecycle.COMPLETED}),
    MatchLifecycle.ACTIVE: frozenset({MatchLifecycle.PAUSED, MatchLifecycle.COMPLETED}),
    MatchLifecycle.PAUSED: frozenset({MatchLifecycle.ACTIVE, MatchLifecycle.COMPLETED}),
    # A source may reopen a match.
    MatchLifecycle.COMPLETED: frozenset({MatchLifecycle.ACTIVE, MatchLifecycle.ARCHIVED}),
    MatchLifecycle.ARCHIVED: frozenset(),
}
FAILURE_WINDOW = timedelta(minutes=10)
PAUSING_CLASSES = tuple(one for one, rule in ERROR_RULES.items() if rule.pauses_match)
IMMINENT = timedelta(hours=1)
OVERDUE = timedelta(hours=6)  # a match that has not begun by then is no longer imminent
ARCHIVE_AFTER = timedelta(hours=24)  # after its end


class NotAllowed(OperationRefused):
    """The match's state does not allow this; the message is shown to operators."""


def _move(match: Match, to: MatchLifecycle) -> None:
    if match.lifecycle != to and to not in ALLOWED_TRANSITIONS[match.lifecycle]:
        raise NotAllowed(f"{match} is {match.lifecycle} and cannot become {to}")
    match.lifecycle = to


def pause(*, match_id: int, until: datetime, reason: str, actor: str, now: datetime) -> Match:
    """Stops polling a match until a time, when it resumes by itself."""
    if until <= now:
        raise NotAllowed("a pause must end in the future")
    with transaction.atomic():
        match = Match.objects.select_for_update().get(pk=match_id)
        if match.lifecycle == MatchLifecycle.PAUSED:
            raise NotAllowed(f"{match} is paused already, until {match.pause_until:%H:%M:%S} UTC")
        _move(match, MatchLifecycle.PAUSED)
        match.pause_until, match.pause_reason = until, f"{reason} (by {actor})"[:200]
        match.scraper_status = ScraperStatus.STOPPED
        match.save(update_fields=("lifecycle", "pause_until", "pause_reason", "scraper_status"))
        for ref in match.refs.all():
            scrapers.stop(ref, reason=f"paused: {reason}", now=now)
    match_paused.send_robust(sender=Match, match_id=match.pk, reason=reason, actor=actor)
    return match


def resume(*, match_id: int, actor: str, now: datetime, reason: str = "resumed") -> Match:
    """Polls a paused match again, at once, with its failure counters reset."""
    with transaction.atomic():
        match = Match.objects.select_for_update().get(pk=match_id)
        if match.lifecycle != MatchLifecycle.PAUSED:
            raise NotAllowed(f"{match} is not paused but {match.lifecycle}")
        _move(match, MatchLifecycle.ACTIVE)
        match.pause_until, match.pause_reason = None, ""
        match.consecutive_failure_count, match.failing_since = 0, None
        match.save(
            update_fields=("lifecycle", "pause_until", "pause_reason", "consecutive_failure_count", "failing_since")
        )
        poll_times.restart_wait(match.refs.all(), now)
        journal.make_tasks_due([ref.pk for ref in match.refs.all()], now=now, resource=Resource.SCORECARD)
    match_resumed.send_robust(sender=Match, match_id=match.pk, reason=reason, actor=actor)
    return match


def mark_stale(match_id: int) -> None:
    read = Match.objects.filter(pk=match_id, scraper_status__in=(ScraperStatus.ACTIVE, ScraperStatus.UNKNOWN))
    read.update(scraper_status=ScraperStatus.STALE)


def after_reading(match: Match, *, now: datetime, is_read: bool) -> None:
    """Sets the lifecycle columns of a match that was just read (the caller saves).

    A reading under way does not end a pause. Data that was sent to us resets no failures of our own polls.
    """
    if match.status in (Status.COMPLETED, Status.ABANDONED):
        _complete(match, now)
    elif match.lifecycle in (MatchLifecycle.DISCOVERED, MatchLifecycle.COMPLETED):
        match.lifecycle, match.completed_at = MatchLifecycle.ACTIVE, None
    match.priority = priority_of(Status(match.status), match.start_time, now)
    if not is_read and match.lifecycle == MatchLifecycle.ACTIVE:
        return
    match.scraper_status = ScraperStatus.ACTIVE if match.lifecycle == MatchLifecycle.ACTIVE else ScraperStatus.STOPPED
    match.consecutive_failure_count, match.failing_since = 0, None


def _complete(match: Match, now: datetime) -> None:
    if match.lifecycle != MatchLifecycle.ARCHIVED:
        match.lifecycle, match.pause_until, match.pause_reason = MatchLifecycle.COMPLETED, None, ""
        match.completed_at = match.completed_at or now


def complete_gone(match: Match, *, now: datetime) -> None:
    """Completes a match that its source no longer has. The caller has locked the match."""
    _complete(match, now)
    match.scraper_status = ScraperStatus.STOPPED
    match.priority = Priority.COMPLETED
    if match.status in (Status.LIVE, Status.UPCOMING):
        match.status = Status.COMPLETED if match.status == Status.LIVE else Status.ABANDONED
    columns = ("lifecycle", "pause_until", "pause_reason", "completed_at", "scraper_status", "priority", "status")
    match.save(update_fields=columns)
    for ref in match.refs.all():
        scrapers.stop(ref, reason="the source no longer has the match", now=now)


def priority_of(status: Status, start: datetime | None, now: datetime) -> Priority:
    if status is Status.LIVE:
        return Priority.LIVE
    if status is Status.UPCOMING and start is not None and -OVERDUE <= start - now <= IMMINENT:
        return Priority.IMMINENT
    return Priority.COMPLETED


def after_failed_attempt(
    match_id: int, *, reason: str, is_dead: bool, pause_after: int, pause_seconds: float, now: datetime
) -> datetime | None:
    """Counts a failed poll. At the fifth in a row within ten minutes the match is paused; returns until when.

    In a row: since the last good reading, from whichever source. `is_dead`: the poll will not be tried again.
    """
    with transaction.atomic():
        match = Match.objects.select_for_update().get(pk=match_id)
        match.failing_since = match.failing_since or now
        match.consecutive_failure_count = min(match.consecutive_failure_count, _recent_failures(match, now)) + 1
        match.total_failures += 1
        if is_dead and match.lifecycle in (MatchLifecycle.DISCOVERED, MatchLifecycle.ACTIVE):
            match.scraper_status = ScraperStatus.ERROR
        match.save(update_fields=("failing_since", "consecutive_failure_count", "total_failures", "scraper_status"))
        can_pause = MatchLifecycle.PAUSED in ALLOWED_TRANSITIONS[match.lifecycle]
        if match.consecutive_failure_count < pause_after or not can_pause:
            return None
        until = now + timedelta(seconds=pause_seconds)
        earlier = match.errors.order_by("-timestamp").values_list("error_message", flat=True)[:2]
        logger.error(
            "%s is paused until %s UTC: %d attempts in a row failed since %s UTC, the last ones: %s. Its last state "
            "stays served with its age; it is read again then, with a new scraper",
            match,
            f"{until:%H:%M:%S}",
            match.consecutive_failure_count,
            f"{match.failing_since:%H:%M:%S}",
            "; ".join(text[:200] for text in (reason, *earlier)),
            extra={"action": "match_paused", "match_id": match.key, "failures": match.consecutive_failure_count},
        )
        why = f"{match.consecutive_failure_count} failed attempts within ten minutes"
        pause(match_id=match.pk, until=until, reason=why, actor="lifecycle", now=now)
    return until


def _recent_failures(match: Match, now: datetime) -> int:
    """Returns the polls that failed in the last ten minutes: error rows, and tasks that died with their worker."""
    since = now - FAILURE_WINDOW
    errors = match.errors.filter(timestamp__gt=since, operation=Resource.SCORECARD, error_class__in=PAUSING_CLASSES)
    polls = ScrapeTask.objects.filter(ref__match=match, resource=Resource.SCORECARD, finished_at__gt=since)
    return errors.count() + polls.filter(state=TaskState.DEAD, error_class=ErrorClass.RESOURCE).count()


def end_pauses(*, now: datetime) -> int:
    """Resumes the matches whose pause is over; returns how many."""
    ended = 0
    for match_id in list(Match.objects.paused().filter(pause_until__lte=now).values_list("pk", flat=True)[:200]):
        with suppress(NotAllowed, Match.DoesNotExist):  # resumed or deleted meanwhile
            resume(match_id=match_id, actor="scheduler", reason="the pause is over", now=now)
            ended += 1
    return ended


def archive_merged(match: Match, *, into: Match, now: datetime) -> None:
    """Archives a match that was merged into another one, from any state. The caller saves."""
    match.merged_into, match.lifecycle, match.scraper_status = into, MatchLifecycle.ARCHIVED, ScraperStatus.STOPPED
    match.pause_until, match.pause_reason = None, ""
    match.completed_at, match.last_changed_at = match.completed_at or now, now


def archive_old_matches(now: datetime) -> int:
    """Scheduler step: archives matches completed a day ago, which are served but no longer polled; returns how many."""
    old = Match.objects.filter(lifecycle=MatchLifecycle.COMPLETED, completed_at__lt=now - ARCHIVE_AFTER).order_by("pk")
    with transaction.atomic():
        ids = list(old.select_for_update().values_list("pk", flat=True)[:500])
        poll_times.stop_watching(MatchRef.objects.filter(match_id__in=ids))
        return Match.objects.filter(pk__in=ids).update(lifecycle=MatchLifecycle.ARCHIVED)
