"""Starts and ends the watches over matches: at the request of a person, and by the memory that is left."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from scraping.matches import admission, poll_times, scrapers
from scraping.matches.lifecycle import NotAllowed
from scraping.models import Match, MatchLifecycle, MatchRef
from scraping.models.source import PUSHED
from scraping.signals import watch_began, watch_ended, watch_put_off
from victoryline.lib.operators import OperationRefused

BATCH = 5  # at a time: what a watch takes shows only with the next heartbeats


class PutOff(OperationRefused):
    """There is no room for another watch now; it begins by itself when there is. The message is for people."""

    def __init__(self, message: str, *, retry_seconds: float) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


def begin(*, match_id: int, actor: str, now: datetime) -> Match:
    """Read a match from now on. PutOff where there is too little memory: it is noted, and begins later by itself."""
    room = admission.room(now)
    with transaction.atomic():
        match = Match.objects.select_for_update().get(pk=match_id)
        refs = _refs_to_watch(match)
        waiting = [ref.pk for ref in refs if not ref.is_watched]
        poll_times.keep_called_in(match.refs.all())
        if not waiting:
            return match
        if room.is_free:
            poll_times.start_watching(MatchRef.objects.filter(pk__in=waiting), now)
        else:
            MatchRef.objects.filter(pk__in=waiting, watch_at__isnull=True).update(watch_at=now)
    if not room.is_free:
        watch_put_off.send_robust(sender=Match, match_id=match.pk, reason=room.words, actor=actor)
        raise PutOff(
            f"Insufficient memory resources: {room.words}. Nothing is lost: the watch over {match} is noted and begins "
            f"by itself when there is room",
            retry_seconds=admission.retry_seconds(),
        )
    watch_began.send_robust(sender=Match, match_id=match.pk, reason="asked for", actor=actor)
    return match


def end(*, match_id: int, reason: str, actor: str, now: datetime) -> Match:
    """Read a match no more, until somebody asks for it again. What is known of it stays served, with its age."""
    with transaction.atomic():
        match = Match.objects.select_for_update().get(pk=match_id)
        refs = list(match.refs.filter(Q(is_watched=True) | Q(watch_at__isnull=False)))
        if not refs:
            raise NotAllowed(f"{match} is not watched")
        _end(refs, reason=reason, begin_again_at=None, now=now)
    watch_ended.send_robust(sender=Match, match_id=match.pk, reason=reason, actor=actor)
    return match


def begin_waiting(*, now: datetime) -> int:
    """Begin the watches that wait for room, the oldest first; how many."""
    waiting = MatchRef.objects.filter(watch_at__lte=now, is_watched=False).order_by("watch_at", "pk")
    begun = 0
    for ref in waiting.select_related("match")[:BATCH]:
        is_over = ref.match.lifecycle in (MatchLifecycle.COMPLETED, MatchLifecycle.ARCHIVED)
        waits = MatchRef.objects.filter(pk=ref.pk, is_watched=False, watch_at__isnull=False)
        if is_over:
            waits.update(watch_at=None)
        elif poll_times.start_watching(waits, now):
            watch_began.send_robust(
                sender=Match, match_id=ref.match_id, reason="there is room again", actor="the scheduler"
            )
            begun += 1
    return begun


def put_off_waiting(*, until: datetime) -> int:
    """There is still no room: those whose time has come wait on."""
    return MatchRef.objects.filter(watch_at__lt=until, is_watched=False).update(watch_at=until)


def end_idle(*, now: datetime) -> int:
    """For want of memory: end the watches over matches in which nothing has happened for long. They come back later."""
    idle_since = now - timedelta(minutes=admission.idle_minutes())
    idle = MatchRef.objects.filter(
        Q(match__last_changed_at__lt=idle_since) | Q(match__last_changed_at__isnull=True, created_at__lt=idle_since),
        is_watched=True,
        scrapers__stopped_at__isnull=True,
        scrapers__start_time__lt=idle_since,
    )
    reason = f"no change for {admission.idle_minutes()} minutes, and memory is needed"
    refs = list(idle.select_related("match"))
    # A delay by rain is idle too. Once there is room again, and the new ones have had theirs, it is watched again.
    again_at = now + timedelta(minutes=admission.idle_minutes())
    with transaction.atomic():
        _end(refs, reason=reason, begin_again_at=again_at, now=now)
    for ref in refs:
        watch_ended.send_robust(sender=Match, match_id=ref.match_id, reason=reason, actor="the scheduler")
    return len(refs)


def _refs_to_watch(match: Match) -> list[MatchRef]:
    if match.lifecycle == MatchLifecycle.ARCHIVED:
        raise NotAllowed(f"{match} is archived: nothing new is to be learnt about it")
    refs = list(match.refs.filter(source__is_enabled=True).exclude(source__key=PUSHED))
    if not refs and match.refs.filter(source__key=PUSHED).exists():
        raise NotAllowed(f"{match} is sent in and at no source that is enabled: there is nothing to be read")
    if not refs:
        raise NotAllowed(f"{match} is known at no source that is enabled")
    return refs


def _end(refs: list[MatchRef], *, reason: str, begin_again_at: datetime | None, now: datetime) -> None:
    poll_times.stop_watching(MatchRef.objects.filter(pk__in=[ref.pk for ref in refs]), watch_again_at=begin_again_at)
    for ref in refs:
        scrapers.stop(ref, reason=reason, now=now)
