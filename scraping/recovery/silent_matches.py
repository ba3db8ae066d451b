"""Finds silent live matches (no reading for longer than expected), and has them read at once. Used by the ladder.

Guards against silence that no error reports: a hint that was lost, a task that no worker takes, a read that hangs.
Only the age of the last reading counts, compared with the interval at which the match should be read.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Prefetch, Q

from scraping import journal
from scraping.matches import poll_times
from scraping.models import OPEN_STATES, BreakerState, Importance, Match, MatchLifecycle, MatchRef, ScrapeTask
from scraping.payloads import Resource, Status
from scraping.policies.ladder import IMPORTANT_SHARE, Rung, Silence

WATCHED = (MatchLifecycle.DISCOVERED, MatchLifecycle.ACTIVE)
MAX_MATCHES = 1000


def silent_matches(now: datetime, threshold: float) -> list[Match]:
    """Returns the matches on the ladder and those that may have to enter it. Usually there are none."""
    shortest = timedelta(seconds=Rung.HINT.share * IMPORTANT_SHARE * threshold)
    is_quiet = Q(last_scraper_update__lt=now - shortest) | Q(last_scraper_update=None, created_at__lt=now - shortest)
    watched = MatchRef.objects.filter(match=OuterRef("pk"), is_watched=True, source__is_enabled=True)
    is_watched = Q(Exists(watched), status=Status.LIVE, lifecycle__in=WATCHED, merged_into=None)
    # Frozen matches are skipped until a reading arrives: hundreds of them must cost nothing.
    is_unread = Q(last_scraper_update=None) | Q(last_scraper_update__lte=F("silent_since"))
    polls = ScrapeTask.objects.filter(ref=OuterRef("pk"), resource=Resource.SCORECARD, state__in=OPEN_STATES)
    refs = MatchRef.objects.select_related("source__breaker", "breaker").defer("payload", "source__metadata")
    refs = refs.annotate(has_been_polled=Exists(polls.exclude(attempt__lte=1, created_at__gt=now - shortest)))
    found = (
        Match.objects.filter(Q(silence_rung__gt=0) | (is_quiet & is_watched))
        .exclude(is_unread & is_watched, silence_rung=Rung.FROZEN)
        .defer("payload", "provenance")
        .prefetch_related(Prefetch("refs", queryset=refs))
    )
    return list(found.order_by("importance", "last_scraper_update")[:MAX_MATCHES])


def read_at_once(refs: Collection[MatchRef], now: datetime) -> int:
    """Makes the next poll of these refs due, also one that waits for its retry; returns how many refs.

    Left alone: refs behind an open breaker, and those whose source asked us to wait (Retry-After).
    """
    awake = [ref.pk for ref in refs if not is_behind_breaker(ref, now)]
    waiting = journal.make_tasks_due(awake, now=now, resource=Resource.SCORECARD, obeys_retry_after=True)
    poll_times.make_due(MatchRef.objects.filter(pk__in=awake).exclude(pk__in=waiting), now)
    return len(awake)


def watched_refs(match: Match) -> list[MatchRef]:
    return [ref for ref in match.refs.all() if ref.is_watched and ref.source.is_enabled]


def is_watched_live(match: Match) -> bool:
    return match.status == Status.LIVE and match.lifecycle in WATCHED and bool(watched_refs(match))


def has_new_reading(match: Match) -> bool:
    read_at = match.last_scraper_update
    return match.silence_rung > 0 and read_at is not None and read_at > (match.silent_since or match.created_at)


def silence_of(match: Match, *, has_workers: bool, now: datetime) -> Silence:
    refs = watched_refs(match)
    read_at = match.last_scraper_update or match.created_at
    interval = min(ref.polling_interval_seconds for ref in refs)
    return Silence(
        expected_at=read_at + timedelta(seconds=interval),
        rung=Rung(match.silence_rung),
        rung_at=match.silence_rung_at,
        is_important=match.importance == Importance.HIGH,
        is_held_back=not has_workers or all(_is_held_back(ref, now) for ref in refs),
    )


def _is_held_back(ref: MatchRef, now: datetime) -> bool:
    """True behind a breaker, or where its source's limits hold it back: a new session or browser would not help."""
    is_due = ref.next_poll_at is not None and ref.next_poll_at <= now
    return is_behind_breaker(ref, now) or (is_due and not getattr(ref, "has_been_polled", False))


def is_behind_breaker(ref: MatchRef, now: datetime) -> bool:
    of_ref, of_source = getattr(ref, "breaker", None), getattr(ref.source, "breaker", None)
    return any(
        one is not None and one.state == BreakerState.OPEN and (one.open_until is None or one.open_until > now)
        for one in (of_ref, of_source)
    )
