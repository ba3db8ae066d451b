"""Up a rung, or back to the ground. Sole writer of the rungs of matches."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef

from scraping.matches import poll_times, scrapers
from scraping.models import Match, MatchRef
from scraping.policies.ladder import Rung, Silence, next_rung
from scraping.recovery import worker_commands
from scraping.recovery.silence.finding import is_heard_again, is_on_watch, silence_of, silent
from scraping.recovery.silence.rungs import Means, act
from scraping.signals import silence_climbed, silence_over

logger = logging.getLogger(__name__)

AT_ONCE = 20  # each step on the ladder is a dozen statements, and polls wait for the scheduler: the rest in 5 seconds


def look(now: datetime, *, staleness_threshold: float) -> int:
    """One look at everybody who is silent, or was: how many rungs were taken or left."""
    means = Means(tuple(worker_commands.workers_at_work(now)), staleness_threshold, now)
    moved = 0
    for match in silent(now, staleness_threshold):
        if moved >= AT_ONCE:
            break
        if not is_on_watch(match) or is_heard_again(match):
            moved += _come_down(match, now)
            continue
        silence = silence_of(match, has_workers=bool(means.workers), now=now)
        rung = next_rung(silence, staleness_threshold=staleness_threshold, now=now)
        if rung > match.silence_rung:
            moved += _climb(match, rung, silence, means)
        elif rung < match.silence_rung:
            moved += _come_down(match, now)
    return moved + _send_away(now)


def _climb(match: Match, rung: Rung, silence: Silence, means: Means) -> bool:
    """Take the rung first, so that two schedulers do not act twice; then act."""
    heard, now = match.last_scraper_update or match.created_at, means.now
    columns: dict[str, Any] = {"silence_rung": rung, "silence_rung_at": now, "silent_since": heard}
    if rung is Rung.FROZEN:
        columns["frozen_at"] = now
    mine = Match.objects.filter(
        pk=match.pk, silence_rung=match.silence_rung, last_scraper_update=match.last_scraper_update
    )
    if not mine.update(**columns):
        return False
    done = act(match, rung, means)
    silent = (now - heard).total_seconds()
    reason = f"silent for {silent:.0f} s; it was expected {(now - silence.expected_at).total_seconds():.0f} s ago"
    logger.log(
        logging.ERROR if rung is Rung.FROZEN else logging.WARNING if rung > Rung.HINT else logging.INFO,
        "%s is %s: %s. What is known of it stays served with its age",
        match,
        reason,
        done.words,
        extra={"action": "silence_climbed", "match_id": _key(match), "rung": rung.name.lower(), **done.detail},
    )
    silence_climbed.send_robust(
        sender=Match,
        match_id=match.pk,
        rung=int(rung),
        rung_name=rung.name.lower(),
        reason=reason,
        detail={"did": done.words, **done.detail},
        now=now,
    )
    return True


def _come_down(match: Match, now: datetime) -> bool:
    """Heard of again, or nobody waits for it any more."""
    rung = Rung(match.silence_rung)
    if rung is Rung.GROUND:
        return False
    standing = Match.objects.filter(pk=match.pk, silence_rung=rung)
    if not standing.update(silence_rung=Rung.GROUND, silence_rung_at=None, silent_since=None, frozen_at=None):
        return False
    since = match.silent_since or match.created_at
    is_heard = is_heard_again(match)
    until = match.last_scraper_update if is_heard and match.last_scraper_update else now
    seconds = max(0.0, (until - since).total_seconds())
    source_key = _speaker(match) if is_heard else ""
    logger.log(
        logging.WARNING if rung is Rung.FROZEN else logging.INFO,
        "%s after %.0f s of silence%s; the last thing tried: %s",
        f"{match} is heard of again" if is_heard else f"Nobody waits for {match} any more",
        seconds,
        f", from {source_key}" if source_key else "",
        rung.name.lower().replace("_", " "),
        extra={"action": "silence_over", "match_id": _key(match), "rung": rung.name.lower(), "seconds": round(seconds)},
    )
    silence_over.send_robust(
        sender=Match, match_id=match.pk, rung=int(rung), seconds=seconds, source_key=source_key, now=now
    )
    return True


def _key(match: Match) -> str:
    """Its name in the log, at the first of its sources."""
    return next((ref.key for ref in match.refs.all()), str(match.pk))


def _speaker(match: Match) -> str:
    """The source that was heard last."""
    told = [ref for ref in match.refs.all() if ref.captured_at is not None]
    return max(told, key=lambda ref: ref.captured_at or match.created_at).source.key if told else ""


def _send_away(now: datetime) -> int:
    """Those that were called in go when one of the others has spoken again since."""
    others = MatchRef.objects.filter(
        match=OuterRef("match"), is_watched=True, called_in_at=None, captured_at__gt=OuterRef("called_in_at")
    )
    called = MatchRef.objects.filter(Exists(others), called_in_at__isnull=False).select_related("source")
    sent = 0
    for ref in called.defer("payload").order_by("pk")[:AT_ONCE]:
        if not poll_times.send_away(MatchRef.objects.filter(pk=ref.pk, called_in_at=ref.called_in_at)):
            continue
        sent += 1
        scrapers.stop(ref, reason="the match is heard of where it was before", now=now)
        logger.info(
            "%s is not asked any more: the match is heard of where it was before",
            ref.key,
            extra={"action": "called_in_over", "match_id": ref.key, "source": ref.source.key},
        )
    return sent
