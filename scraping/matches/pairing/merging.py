"""The joining itself: everything of one match becomes the other's, in one transaction.

Guards against a match that is served twice. Nothing is lost: references, events, line-ups, figures and conflicts move;
the emptied match stays as a signpost. Nothing is doubled: of a happening that both told, one word is served.
"""

from __future__ import annotations

import logging
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Case, CharField, F, Q, Value, When

from scraping import journal
from scraping.matches import conflicts, importance, lifecycle, poll_times, score_regressions, scrapers, served_events
from scraping.matches.pairing.aliases import aliases_of
from scraping.matches.pairing.candidates import sides_of_title
from scraping.matches.reconcile import delta, exchanged_detail, exchanged_slot, orient, reconcile
from scraping.models import (
    Lineup,
    Match,
    MatchEvent,
    MatchRef,
    PairingReview,
    PairingState,
    PlayerFigure,
    ScrapeError,
    Snapshot,
)
from scraping.names import Aliases
from scraping.payloads import Sport, checksum_of
from scraping.signals import match_updated, matches_joined
from victoryline.lib.operators import OperationRefused

logger = logging.getLogger(__name__)

SIDES = ("team_a", "team_b")


class NotJoined(OperationRefused):
    """These two cannot become one match; the message is for people."""


def join(keep_id: int, gone_id: int, *, actor: str, now: datetime, reason: str = "") -> Match:
    """Make one match of two; the first one stays. NotJoined where they cannot be one."""
    with transaction.atomic():
        refs = list(MatchRef.objects.filter(match_id=gone_id).values_list("pk", flat=True))
        journal.cancel_open(refs, actor=actor, reason=f"its match is now part of match {keep_id}", now=now)
        keep, gone = _locked(keep_id, gone_id)
        _refuse(keep, gone)
        aliases = aliases_of(keep.sport)
        is_crossed = orient(_who_plays(gone), _who_plays(keep), aliases) is True
        _move_refs(keep, gone, is_crossed=is_crossed, now=now)
        moved = _move_events(keep, gone, is_crossed=is_crossed, now=now)
        _move_people(keep, gone, is_crossed=is_crossed)
        _inherit_importance(keep, gone)
        _renew(keep, aliases, has_new_events=bool(moved), now=now)
        _close(keep, gone, actor=actor, now=now)
        transaction.on_commit(partial(_announce, keep, gone, actor, reason))
    return keep


def _locked(*ids: int) -> list[Match]:
    found = {match.pk: match for match in Match.objects.select_for_update().filter(pk__in=ids).order_by("pk")}
    if len(found) != len(set(ids)):
        raise NotJoined("one of the matches is not there any more")
    return [found[pk] for pk in ids]


def _refuse(keep: Match, gone: Match) -> None:
    if keep.pk == gone.pk:
        raise NotJoined("a match cannot be joined with itself")
    if keep.sport != gone.sport:
        raise NotJoined(f"{keep} is {keep.sport}, {gone} is {gone.sport}")
    for match in (keep, gone):
        if match.merged_into_id is not None:
            raise NotJoined(f"{match} (match {match.pk}) is part of match {match.merged_into_id} already")
    shared = keep.refs.filter(source__in=gone.refs.values("source")).values_list("source__name", flat=True)
    if shared:
        raise NotJoined(f"{', '.join(shared)} has both of them: a source does not list one match twice")


def _who_plays(match: Match) -> dict[str, Any]:
    if match.payload.get("teams"):
        return {"teams": match.payload["teams"]}
    names = [{"name": match.team_a}, {"name": match.team_b}] if match.team_a and match.team_b else None
    sides = names or sides_of_title(match.title)
    return {"teams": dict(zip(SIDES, sides, strict=True))} if sides else {}


def _move_refs(keep: Match, gone: Match, *, is_crossed: bool, now: datetime) -> None:
    """They are read again soon: what was under way for them is dropped."""
    refs = MatchRef.objects.filter(match=gone)
    poll_times.make_due(refs.filter(next_poll_at__isnull=False), now)
    for ref in refs:
        ref.match, ref.is_crossed = keep, ref.is_crossed != is_crossed
        ref.save(update_fields=("match", "is_crossed"))
        scrapers.stop(ref, reason=f"its match is now part of match {keep.pk}", now=now)
    ScrapeError.objects.filter(match=gone).update(match=keep)


def _move_events(keep: Match, gone: Match, *, is_crossed: bool, now: datetime) -> int:
    """As new rows, for whoever follows the match by their numbers. Consumers get what they do not have yet."""
    rows = list(MatchEvent.objects.filter(match=gone).order_by("pk"))
    MatchEvent.objects.filter(match=gone).delete()
    for row in rows:
        row.pk, row.match, row.sequence, row.is_served = None, keep, keep.sequence, row.is_current
        row.public_id, row.public_revision = "", 0
        if is_crossed:
            row.slot = exchanged_slot(row.slot)
            row.detail = exchanged_detail(row.detail, has_goals=keep.sport == Sport.FOOTBALL)
    tellers = {ref.source_id: served_events.teller(ref, now=now) for ref in keep.refs.select_related("source")}
    unheard = {row.source_id for row in rows} - tellers.keys()  # a source that has no reference to it any more
    tellers |= {source_id: served_events.Teller(source_id, "", 0, is_heard=False) for source_id in unheard}
    served = 0
    for source_id in dict.fromkeys(row.source_id for row in rows):
        own = [row for row in rows if row.source_id == source_id]
        others = [teller for key, teller in tellers.items() if key != source_id]
        current = [row for row in own if row.is_current]
        served_events.decide(current, own=tellers[source_id], others=others)
        for row in current:
            row.sequence += row.is_served
            served += row.is_served
        MatchEvent.objects.bulk_create(own, batch_size=500)
    return served


def _move_people(keep: Match, gone: Match, *, is_crossed: bool) -> None:
    side: Any = F("side")
    if is_crossed:
        turned = [When(side=one, then=Value(other)) for one, other in zip(SIDES, SIDES[::-1], strict=True)]
        side = Case(*turned, output_field=CharField())
    Lineup.objects.filter(match=gone).update(match=keep, side=side)
    PlayerFigure.objects.filter(match=gone).update(match=keep, side=side)


def _inherit_importance(keep: Match, gone: Match) -> None:
    """What a person has said of either stands."""
    if gone.is_importance_fixed and not keep.is_importance_fixed:
        keep.importance, keep.is_importance_fixed = gone.importance, True
        keep.save(update_fields=("importance", "is_importance_fixed"))


def _renew(keep: Match, aliases: Aliases, *, has_new_events: bool, now: datetime) -> None:
    """What all sources say together, with a number of its own in the history of the match that stays."""
    read = list(keep.refs.exclude(captured_at=None).select_related("source"))
    refs = [ref for ref in read if ref.source.is_enabled] or read
    views = score_regressions.views_of(refs)
    if not views:
        return
    found = reconcile(views, known=keep.payload or None, now=now, aliases=aliases)
    conflicts.note(keep.pk, found.conflicts, now=now)
    before, checksum = keep.payload, checksum_of(found.state)
    keep.last_scraper_update = max(view.captured_at for view in views)
    if checksum != keep.checksum or has_new_events:
        keep.sequence, keep.checksum, keep.last_changed_at = keep.sequence + 1, checksum, now
        keep.payload, keep.provenance = found.state, found.provenance
        _copy_columns(keep, found.state)
        Snapshot.objects.create(
            match=keep,
            sequence=keep.sequence,
            checksum=checksum,
            payload=keep.payload,
            delta=delta(before, keep.payload, sequence_delta=1),
            provenance=keep.provenance,
            captured_at=keep.last_scraper_update,
            created_at=now,
        )
    keep.save()


def _copy_columns(match: Match, state: dict[str, Any]) -> None:
    match.title, match.status, match.phase = state["title"], state["status"], state["phase"]
    match.team_a, match.team_b = (state["teams"][side]["name"] for side in SIDES)
    match.series = str((state.get("metadata") or {}).get("series") or match.series)[:200]
    if state.get("start_time"):
        match.start_time = datetime.fromisoformat(state["start_time"])
    importance.follow(match)


def _close(keep: Match, gone: Match, *, actor: str, now: datetime) -> None:
    """The emptied match says where it went."""
    conflicts.close_all(gone.pk, now=now)
    gone.conflicts.update(match=keep)
    reviews = PairingReview.objects.filter(match_id__in=(keep.pk, gone.pk), candidate_id__in=(keep.pk, gone.pk))
    reviews.update(state=PairingState.JOINED, decided_by=actor, decided_at=now)
    _inherit_verdicts(keep, gone)
    # Compared with the others it is again, as a part of the match that stays.
    PairingReview.objects.filter(match=gone, state=PairingState.OPEN).delete()
    PairingReview.objects.filter(candidate=gone, state=PairingState.OPEN).delete()
    lifecycle.archive_joined(gone, into=keep, now=now)
    gone.save()
    Match.objects.filter(merged_into=gone).update(merged_into=keep)


def _inherit_verdicts(keep: Match, gone: Match) -> None:
    """Whom a person has called another match than the one that goes is another one than the match that stays, too."""
    said = PairingReview.objects.filter(Q(match=gone) | Q(candidate=gone), state=PairingState.APART)
    for review in said:
        other_id = review.candidate_id if review.match_id == gone.pk else review.match_id
        pair = PairingReview.objects.filter(match_id__in=(keep.pk, other_id), candidate_id__in=(keep.pk, other_id))
        decided = {"state": PairingState.APART, "decided_by": review.decided_by, "decided_at": review.decided_at}
        if not pair.filter(state=PairingState.OPEN).update(**decided) and not pair.exists():
            PairingReview.objects.create(
                match=keep, candidate_id=other_id, score=review.score, reasons=review.reasons,
                created_at=review.created_at, **decided,
            )  # fmt: skip


def _announce(keep: Match, gone: Match, actor: str, reason: str) -> None:
    text = "Match %s (%s) is now part of match %s (%s): %s"
    logger.info(text, gone.pk, gone, keep.pk, keep, reason or actor, extra={"action": "matches_joined"})
    matches_joined.send_robust(sender=Match, match_id=keep.pk, gone_id=gone.pk, reason=reason, actor=actor)
    for match in (keep, gone):
        match_updated.send_robust(sender=Match, match_id=match.pk, sequence=match.sequence, is_changed=True, ref=None)
