"""What is done at each rung. All of it is cheap, and safe to do twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from scraping.matches import poll_times
from scraping.models import Match, MatchRef, OrderKind, Scraper, ScrapeTask, Source, TaskState, WorkerOrder
from scraping.models.source import PUSHED
from scraping.payloads import Resource
from scraping.policies.ladder import Rung
from scraping.recovery import worker_commands
from scraping.recovery.silence.finding import is_barred, watched_refs

ACTOR = "the scheduler"
# However many matches of a source are silent: its session is changed once in this part of the threshold, and a worker's
# browser is replaced once in the whole of it.
SESSION_AGAIN_SHARE, BROWSER_AGAIN_SHARE = 0.2, 1.0


@dataclass(frozen=True)
class Means:
    """What there is to act with, at one look."""

    workers: tuple[str, ...]
    threshold_seconds: float
    now: datetime


@dataclass(frozen=True)
class Done:
    """What a rung came to, for the audit and the log."""

    words: str
    detail: dict[str, Any]


def act(match: Match, rung: Rung, means: Means) -> Done:
    refs = watched_refs(match)
    if rung is Rung.HINT:
        return _hint_again(refs, means.now)
    if rung is Rung.SESSION:
        return _change_session(refs, means)
    if rung is Rung.BROWSER:
        return _change_browser(match, refs, means)
    if rung is Rung.OTHER_SOURCE:
        return _call_others(match, means.now)
    return Done("nothing has helped so far: it is frozen, people are told, and its scraper is replaced", {})


def _hint_again(refs: Sequence[MatchRef], now: datetime) -> Done:
    """A task that waits is told to the workers once more; a match that has none is due at once."""
    waiting = ScrapeTask.objects.filter(ref__in=refs, resource=Resource.SCORECARD, state=TaskState.PENDING)
    told = waiting.filter(run_at__lte=now).update(hinted_at=None)
    planned = MatchRef.objects.filter(pk__in=[ref.pk for ref in refs if not is_barred(ref, now)])
    poll_times.make_due(planned.exclude(tasks__in=waiting), now)
    return Done("the workers are told of it again", {"hinted": told})


def _change_session(refs: Sequence[MatchRef], means: Means) -> Done:
    """The match begins anew, with a visit, made as a stranger. Others keep what they have meanwhile."""
    keys = sorted({ref.source.key for ref in refs})
    given = [
        order.pk
        for worker_id in means.workers
        for key in keys
        if not _was_lately(OrderKind.FRESH_SESSION, worker_id, key, SESSION_AGAIN_SHARE, means)
        and (order := _order(OrderKind.FRESH_SESSION, worker_id, key, means.now))
    ]
    MatchRef.objects.filter(pk__in=[ref.pk for ref in refs]).update(
        read_mode="", read_mode_reason="silent: a fresh start", read_mode_since=means.now
    )
    return Done(f"it is visited anew, in a fresh session at {' and '.join(keys)}", {"orders": given, "sources": keys})


def _change_browser(match: Match, refs: Sequence[MatchRef], means: Means) -> Done:
    """Of the worker that reads it; where nobody knows which one that is, of all."""
    reading = set(
        Scraper.objects.filter(ref__in=refs, stopped_at__isnull=True).values_list("worker_id", flat=True)
    ) & set(means.workers)
    wanted = sorted(reading or means.workers)
    given = [
        order.pk
        for worker_id in wanted
        if not _was_lately(OrderKind.RECYCLE_BROWSER, worker_id, "", BROWSER_AGAIN_SHARE, means)
        and (order := _order(OrderKind.RECYCLE_BROWSER, worker_id, "", means.now, of=match))
    ]
    words = "the browser that reads it is replaced" if given else "the browser that reads it was replaced just now"
    return Done(words, {"orders": given, "workers": wanted})


def _was_lately(kind: OrderKind, worker_id: str, source_key: str, share: float, means: Means) -> bool:
    given = WorkerOrder.objects.filter(kind=kind, worker_id=worker_id, source_key=source_key, actor=ACTOR)
    since = means.now - timedelta(seconds=share * means.threshold_seconds)
    return given.filter(asked_at__gt=since).exists()


def _order(
    kind: OrderKind, worker_id: str, source_key: str, now: datetime, *, of: Match | None = None
) -> WorkerOrder | None:
    reason = f"{of} is silent" if of else f"a match at {source_key} is silent"
    return worker_commands.issue(kind, worker_id=worker_id, source_key=source_key, reason=reason, actor=ACTOR, now=now)


def _call_others(match: Match, now: datetime) -> Done:
    """Whoever else has the match is asked now; where nobody is known, the sources' lists are looked through for it."""
    others = [ref for ref in match.refs.all() if not ref.is_watched and _can_be_asked(ref)]
    poll_times.call_in(MatchRef.objects.filter(pk__in=[ref.pk for ref in others]), now)
    if others:
        names = ", ".join(sorted(ref.source.name for ref in others))
        return Done(f"{names} is asked instead", {"called_in": [ref.key for ref in others]})
    watched = watched_refs(match)
    if len(watched) > 1:
        awake = [ref.pk for ref in watched if not is_barred(ref, now)]
        poll_times.make_due(MatchRef.objects.filter(pk__in=awake, next_poll_at__isnull=False), now)
        return Done("all of its sources are asked at once", {"sources": sorted(ref.source.key for ref in watched)})
    known = {ref.source_id for ref in match.refs.all()}
    elsewhere = Source.objects.filter(is_enabled=True, sport=match.sport).exclude(pk__in=known).exclude(key=PUSHED)
    looked = sorted(elsewhere.values_list("key", flat=True))
    elsewhere.update(last_discovery_at=None)
    words = f"it is looked for at {', '.join(looked)}" if looked else "no other source has it"
    return Done(words, {"looked_at": looked})


def _can_be_asked(ref: MatchRef) -> bool:
    return ref.source.is_enabled and not ref.source.is_pushed and ref.gone_at is None
