"""Merges two matches: everything of one match is moved to the other, in one transaction.

Guards against a match that is served twice. Refs, events, line-ups, figures and conflicts move, and the emptied match
redirects to the other. Of an event that both have, one version is served.
"""

from __future__ import annotations

import logging
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Case, CharField, F, Q, Value, When

from scraping import journal
from scraping.matches import conflicts, importance, ingest, lifecycle, poll_times, scrapers, served_events
from scraping.matches.ingest import Attempt
from scraping.matches.pairing.candidates import teams_of
from scraping.matches.reconcile.choosing import reconcile
from scraping.matches.reconcile.states import SIDES, is_crossed, swap_detail_sides, swap_slot_sides
from scraping.matches.served_events import RankedSource
from scraping.models import (
    Lineup,
    Match,
    MatchEvent,
    MatchRef,
    PairingReview,
    PairingState,
    PlayerFigure,
    ScrapeError,
    TeamAlias,
)
from scraping.names import Aliases
from scraping.payloads import Sport
from scraping.signals import match_updated, matches_joined
from victoryline.lib.operators import OperationRefused

logger = logging.getLogger(__name__)


class MergeRefused(OperationRefused):
    """These two matches cannot be merged; the message is shown to operators."""


def merge(keep_id: int, gone_id: int, *, actor: str, now: datetime, reason: str = "") -> Match:
    """Merges the second match into the first. Raises MergeRefused where they cannot be one."""
    with transaction.atomic():
        refs = list(MatchRef.objects.filter(match_id=gone_id).values_list("pk", flat=True))
        journal.cancel_open(refs, actor=actor, reason=f"its match is now part of match {keep_id}", now=now)
        keep, gone = _locked(keep_id, gone_id)
        aliases = TeamAlias.objects.names(keep.sport)
        theirs, ours = (teams_of(one.payload.get("teams"), (one.team_a, one.team_b), one.title) for one in (gone, keep))
        crossed = is_crossed(theirs, ours, aliases) is True
        _move_refs(keep, gone, is_crossed=crossed, now=now)
        moved = _move_events(keep, gone, is_crossed=crossed, now=now)
        _move_people(keep, gone, is_crossed=crossed)
        if gone.is_importance_fixed and not keep.is_importance_fixed:  # set by a person
            keep.importance, keep.is_importance_fixed = gone.importance, True
            keep.save(update_fields=("importance", "is_importance_fixed"))
        _update_state(keep, aliases, has_new_events=bool(moved), now=now)
        _close(keep, gone, actor=actor, now=now)
        transaction.on_commit(partial(_announce, keep, gone, actor, reason))
    return keep


def _locked(keep_id: int, gone_id: int) -> tuple[Match, Match]:
    """Locks both matches. Raises MergeRefused where they cannot be one."""
    rows = Match.objects.select_for_update().filter(pk__in=(keep_id, gone_id)).order_by("pk")
    found = {match.pk: match for match in rows}
    if found.keys() != {keep_id, gone_id}:
        raise MergeRefused("one of the matches is not there any more")
    keep, gone = found[keep_id], found[gone_id]
    if keep.pk == gone.pk:
        raise MergeRefused("a match cannot be merged with itself")
    if keep.sport != gone.sport:
        raise MergeRefused(f"{keep} is {keep.sport}, {gone} is {gone.sport}")
    for match in (keep, gone):
        if match.merged_into_id is not None:
            raise MergeRefused(f"{match} (match {match.pk}) is part of match {match.merged_into_id} already")
    shared = keep.refs.filter(source__in=gone.refs.values("source")).values_list("source__name", flat=True)
    if shared:
        raise MergeRefused(f"{', '.join(shared)} has both of them: a source does not list one match twice")
    return keep, gone


def _move_refs(keep: Match, gone: Match, *, is_crossed: bool, now: datetime) -> None:
    """Moves the refs and makes them due: their open tasks were cancelled."""
    refs = MatchRef.objects.filter(match=gone)
    poll_times.make_due(refs.filter(next_poll_at__isnull=False), now)
    for ref in refs:
        ref.match, ref.is_crossed = keep, ref.is_crossed != is_crossed
        ref.save(update_fields=("match", "is_crossed"))
        scrapers.stop(ref, reason=f"its match is now part of match {keep.pk}", now=now)
    ScrapeError.objects.filter(match=gone).update(match=keep)


def _move_events(keep: Match, gone: Match, *, is_crossed: bool, now: datetime) -> int:
    """Moves the events as new rows, so that a consumer of the event feed gets those it does not have yet."""
    rows = list(MatchEvent.objects.filter(match=gone).order_by("pk"))
    MatchEvent.objects.filter(match=gone).delete()
    for row in rows:
        row.pk, row.match, row.sequence, row.is_served = None, keep, keep.sequence, row.is_current
        row.public_id, row.public_revision = "", 0
        if is_crossed:
            row.slot = swap_slot_sides(row.slot)
            row.detail = swap_detail_sides(row.detail, has_goals=keep.sport == Sport.FOOTBALL)
    sources = {ref.source_id: served_events.ranked(ref, now=now) for ref in keep.refs.select_related("source")}
    unlinked = {row.source_id for row in rows} - sources.keys()  # a source that has no ref to the match any more
    sources |= {source_id: RankedSource(source_id, "", 0, is_recent=False) for source_id in unlinked}
    served = 0
    for source_id in dict.fromkeys(row.source_id for row in rows):
        own = [row for row in rows if row.source_id == source_id]
        others = [source for key, source in sources.items() if key != source_id]
        current = [row for row in own if row.is_current]
        served_events.choose(current, own=sources[source_id], others=others)
        for row in current:
            row.sequence += row.is_served
            served += row.is_served
        MatchEvent.objects.bulk_create(own, batch_size=500)
    return served


def _move_people(keep: Match, gone: Match, *, is_crossed: bool) -> None:
    side: Any = F("side")
    if is_crossed:
        swapped = [When(side=one, then=Value(other)) for one, other in zip(SIDES, SIDES[::-1], strict=True)]
        side = Case(*swapped, output_field=CharField())
    Lineup.objects.filter(match=gone).update(match=keep, side=side)
    PlayerFigure.objects.filter(match=gone).update(match=keep, side=side)


def _update_state(keep: Match, aliases: Aliases, *, has_new_events: bool, now: datetime) -> None:
    """Reconciles all sources of the merged match and writes a snapshot of its own."""
    read = list(keep.refs.exclude(captured_at=None).select_related("source"))
    refs = [ref for ref in read if ref.source.is_enabled] or read
    if not refs:
        return
    found = reconcile(ingest.source_views(refs), known=keep.payload or None, aliases=aliases)
    conflicts.note(keep.pk, found.conflicts, now=now)
    newest = max(refs, key=lambda ref: ref.captured_at or now)
    before, series = keep.payload, keep.series
    covering = [ref.captured_at for ref in refs if ref.captured_at and not ref.lacks_events]
    keep.last_scraper_update = max(covering, default=newest.captured_at)
    if ingest.update_state(keep, found, has_new_events=has_new_events, now=now):
        keep.series = keep.series or series
        importance.apply_rules(keep)
        attempt = Attempt("", now, had_failures=False, now=now)
        ingest.write_snapshot(newest, None, attempt, before=before)
    keep.save()


def _close(keep: Match, gone: Match, *, actor: str, now: datetime) -> None:
    """Closes the emptied match, which redirects to the merged one."""
    conflicts.note(gone.pk, (), now=now)
    gone.conflicts.update(match=keep)
    reviews = PairingReview.objects.filter(match_id__in=(keep.pk, gone.pk), candidate_id__in=(keep.pk, gone.pk))
    reviews.update(state=PairingState.JOINED, decided_by=actor, decided_at=now)
    _inherit_decisions(keep, gone)
    # The merged match is compared with the others again.
    PairingReview.objects.filter(Q(match=gone) | Q(candidate=gone), state=PairingState.OPEN).delete()
    lifecycle.archive_merged(gone, into=keep, now=now)
    gone.save()
    Match.objects.filter(merged_into=gone).update(merged_into=keep)


def _inherit_decisions(keep: Match, gone: Match) -> None:
    """Keeps the decisions of people: a match that is not the emptied one is not the merged one either."""
    apart = PairingReview.objects.filter(Q(match=gone) | Q(candidate=gone), state=PairingState.APART)
    for review in apart:
        other_id = review.candidate_id if review.match_id == gone.pk else review.match_id
        pair = PairingReview.objects.filter(match_id__in=(keep.pk, other_id), candidate_id__in=(keep.pk, other_id))
        decided = {"state": PairingState.APART, "decided_by": review.decided_by, "decided_at": review.decided_at}
        if not pair.filter(state=PairingState.OPEN).update(**decided) and not pair.exists():
            PairingReview.objects.create(
                match=keep, candidate_id=other_id, score=review.score, reasons=review.reasons,
                created_at=review.created_at, **decided,
            )  # fmt: skip


def _announce(keep: Match, gone: Match, actor: str, reason: str) -> None:
    text, extra = "%s is now part of %s (%s): %s", {"action": "matches_joined", "match_id": keep.key}
    logger.info(text, gone, keep, keep.key, reason or actor, extra=extra)
    matches_joined.send_robust(sender=Match, match_id=keep.pk, gone_id=gone.pk, reason=reason, actor=actor)
    for match in (keep, gone):
        match_updated.send_robust(sender=Match, match_id=match.pk, sequence=match.sequence, is_changed=True, ref=None)
