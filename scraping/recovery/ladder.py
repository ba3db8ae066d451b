"""The ladder: escalating recovery steps for live matches that have gone silent. The only writer of their rungs.

Guards against the failure that raises no error: everything runs, and no data arrives. `policies/ladder.py` decides
which rung is due, `ladder_steps` acts on it, and all of it is undone when data returns.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef

from scraping.matches import poll_times, scrapers
from scraping.models import Match, MatchRef
from scraping.policies.ladder import Rung, Silence, next_rung
from scraping.recovery import worker_commands
from scraping.recovery.ladder_steps import StepContext, take_step
from scraping.recovery.silent_matches import has_new_reading, is_watched_live, silence_of, silent_matches
from scraping.signals import silence_climbed, silence_over

logger = logging.getLogger(__name__)

MAX_MOVES = 20  # a move is a dozen statements and delays the scheduler's dispatch; the rest follows in 5 seconds


def advance(now: datetime, *, staleness_threshold: float) -> int:
    """Moves every silent match up or down the ladder where that is due. Returns the number of moves."""
    context = StepContext(tuple(worker_commands.workers_at_work(now)), staleness_threshold, now)
    moved = 0
    for match in silent_matches(now, staleness_threshold):
        if moved >= MAX_MOVES:
            break
        if not is_watched_live(match) or has_new_reading(match):
            moved += _descend(match, now)
            continue
        silence = silence_of(match, has_workers=bool(context.workers), now=now)
        rung = next_rung(silence, staleness_threshold=staleness_threshold, now=now)
        if rung > match.silence_rung:
            moved += _climb(match, rung, silence, context)
        elif rung < match.silence_rung:
            moved += _descend(match, now)
    return moved + _release_called_in(now)


def _climb(match: Match, rung: Rung, silence: Silence, context: StepContext) -> bool:
    """Writes the rung first, so that two schedulers do not act twice, then takes its step."""
    read_at, now = match.last_scraper_update or match.created_at, context.now
    columns: dict[str, Any] = {"silence_rung": rung, "silence_rung_at": now, "silent_since": read_at}
    if rung is Rung.FROZEN:
        columns["frozen_at"] = now
    unmoved = Match.objects.filter(
        pk=match.pk, silence_rung=match.silence_rung, last_scraper_update=match.last_scraper_update
    )
    if not unmoved.update(**columns):
        return False
    done = take_step(match, rung, context)
    seconds = (now - read_at).total_seconds()
    reason = f"silent for {seconds:.0f} s; data was expected {(now - silence.expected_at).total_seconds():.0f} s ago"
    logger.log(
        logging.ERROR if rung is Rung.FROZEN else logging.WARNING if rung > Rung.HINT else logging.INFO,
        "%s is %s: %s. Its last state stays served, with its age",
        match,
        reason,
        done.summary,
        extra={"action": "silence_climbed", "match_id": match.key, "rung": rung.name.lower(), **done.detail},
    )
    silence_climbed.send_robust(
        sender=Match,
        match_id=match.pk,
        rung=int(rung),
        rung_name=rung.name.lower(),
        reason=reason,
        detail={"did": done.summary, **done.detail},
        now=now,
    )
    return True


def _descend(match: Match, now: datetime) -> bool:
    """Takes the match off the ladder: data has returned, or the match is not watched any more."""
    rung = Rung(match.silence_rung)
    if rung is Rung.GROUND:
        return False
    unmoved = Match.objects.filter(pk=match.pk, silence_rung=rung)
    if not unmoved.update(silence_rung=Rung.GROUND, silence_rung_at=None, silent_since=None, frozen_at=None):
        return False
    since = match.silent_since or match.created_at
    has_data = has_new_reading(match)
    until = match.last_scraper_update if has_data and match.last_scraper_update else now
    seconds = max(0.0, (until - since).total_seconds())
    read = [ref for ref in match.refs.all() if ref.captured_at is not None]
    newest = max(read, key=lambda ref: ref.captured_at or match.created_at, default=None) if has_data else None
    source_key = newest.source.key if newest else ""
    logger.log(
        logging.WARNING if rung is Rung.FROZEN else logging.INFO,
        "%s after %.0f s of silence%s; last step of the ladder: %s",
        f"{match} has data again" if has_data else f"{match} is not watched any more",
        seconds,
        f", from {source_key}" if source_key else "",
        rung.name.lower().replace("_", " "),
        extra={"action": "silence_over", "match_id": match.key, "rung": rung.name.lower(), "seconds": round(seconds)},
    )
    silence_over.send_robust(
        sender=Match, match_id=match.pk, rung=int(rung), seconds=seconds, source_key=source_key, now=now
    )
    return True


def _release_called_in(now: datetime) -> int:
    """Stops polling the sources that were called in once a regular source of the match has data again."""
    others = MatchRef.objects.filter(
        match=OuterRef("match"), is_watched=True, called_in_at=None, captured_at__gt=OuterRef("called_in_at")
    )
    called = MatchRef.objects.filter(Exists(others), called_in_at__isnull=False).select_related("source")
    sent = 0
    for ref in called.defer("payload").order_by("pk")[:MAX_MOVES]:
        if not poll_times.stop_substitute(MatchRef.objects.filter(pk=ref.pk, called_in_at=ref.called_in_at)):
            continue
        sent += 1
        scrapers.stop(ref, reason="the regular source has data again", now=now)
        logger.info(
            "%s is not polled any more: the regular source has data again",
            ref.key,
            extra={"action": "called_in_over", "match_id": ref.key, "source": ref.source.key},
        )
    return sent
