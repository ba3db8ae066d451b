"""A fresh scraper has read its match for the first time: does it go on where the one before it stopped? (EC-7)

What the worn one knew is in the database: the state that was told last before it stopped, and every event. None of it
may be lost by the change, and nothing may be there twice.
"""

from __future__ import annotations

import logging
from functools import partial

from django.db import transaction
from django.db.models import Count

from scraping.matches.reconcile import goes_backwards
from scraping.models import EventAction, Match, MatchEvent, MatchRef, Scraper, Snapshot
from scraping.signals import scraper_took_over

logger = logging.getLogger(__name__)


def verify(ref: MatchRef, match: Match, fresh: Scraper) -> tuple[str, ...]:
    """What does not fit; told after the commit, with the outcome in the audit. Nothing where there was none before."""
    worn = Scraper.objects.filter(ref=ref, stopped_at=fresh.start_time).exclude(pk=fresh.pk).first()
    if worn is None:
        return ()
    problems = tuple(_problems(ref, match, fresh))
    transaction.on_commit(partial(_tell, ref, match, worn, problems))
    return problems


def _problems(ref: MatchRef, match: Match, fresh: Scraper) -> list[str]:
    before = Snapshot.objects.filter(match=match, created_at__lte=fresh.start_time).order_by("-sequence").first()
    found = []
    if before is not None and match.sequence < before.sequence:
        found.append(f"the sequence went from {before.sequence} back to {match.sequence}")
    if before is not None and goes_backwards(before.payload, match.payload):
        found.append("the score is lower than it was")
    events = MatchEvent.objects.filter(match=match, source_id=ref.source_id, is_current=True)
    stand = events.exclude(action=EventAction.RETRACT)
    twice = stand.exclude(ordinal=None).order_by().values("ordinal").annotate(rows=Count("pk")).filter(rows__gt=1)
    if number := twice.count():
        found.append(f"{number} events are there twice")
    lost = events.filter(action=EventAction.RETRACT, created_at__gt=fresh.start_time).count()
    if lost:
        found.append(f"{lost} events that were there before are not any more")
    if ref.has_gap:
        found.append(f"events after number {ref.events_through} of {ref.events_seen} are still to be read")
    return found


def _tell(ref: MatchRef, match: Match, worn: Scraper, problems: tuple[str, ...]) -> None:
    logger.log(
        logging.WARNING if problems else logging.INFO,
        "The fresh scraper of %s goes on at sequence %d, %s",
        ref.key,
        match.sequence,
        f"but {'; '.join(problems)}" if problems else "with nothing lost and nothing twice",
        extra={"action": "scraper_took_over", "match_id": ref.key, "problems": list(problems)},
    )
    scraper_took_over.send_robust(
        sender=Scraper,
        match_id=match.pk,
        reason=worn.stop_reason,
        problems="; ".join(problems),
        sequence=match.sequence,
        events_through=ref.events_through,
    )
