"""What a person says of a pair."""

from __future__ import annotations

from datetime import datetime

from scraping.matches.pairing.merging import NotJoined, join
from scraping.models import Match, PairingReview, PairingState
from scraping.signals import matches_kept_apart


def unite(review_id: int, *, actor: str, now: datetime) -> Match:
    """They are one match. The one that is read already stays, or else the older one."""
    review = _open(review_id)
    pair = sorted((review.match, review.candidate), key=lambda match: (not match.sequence, match.pk))
    return join(pair[0].pk, pair[1].pk, actor=actor, reason=f"{actor} said so", now=now)


def keep_apart(review_id: int, *, actor: str, now: datetime) -> PairingReview:
    """They are two matches, and are not asked about again."""
    review = _open(review_id)
    review.state, review.decided_by, review.decided_at = PairingState.APART, actor, now
    review.save(update_fields=("state", "decided_by", "decided_at"))
    matches_kept_apart.send_robust(sender=Match, match_id=review.match_id, other_id=review.candidate_id, actor=actor)
    return review


def _open(review_id: int) -> PairingReview:
    review = PairingReview.objects.select_related("match", "candidate").filter(pk=review_id).first()
    if review is None:
        raise NotJoined("this pair is not there any more: one of its matches is part of another one now")
    if review.state != PairingState.OPEN:
        raise NotJoined(f"{review} was decided already by {review.decided_by or 'somebody'}: {review.state}")
    return review
