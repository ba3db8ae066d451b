"""Finds the match that a listed match is the same as: when it is new, and again when more is known of it.

The only writer of reviews, the pairs that a person decides.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from scraping.matches.pairing import scoring
from scraping.matches.pairing.candidates import Candidate, Candidates, candidates, facts_of
from scraping.matches.pairing.merging import MergeRefused, merge
from scraping.matches.pairing.scoring import Facts, PairComparison, PairOutcome
from scraping.matches.reconcile.states import is_crossed
from scraping.models import Match, PairingReview, PairingState, Source, TeamAlias, match_key
from scraping.names import Aliases
from scraping.payloads import DiscoveredMatch, Sport
from scraping.signals import matches_kept_apart
from victoryline.lib.availability import DATABASE_AWAY

logger = logging.getLogger(__name__)

SYSTEM = "pairing"  # the actor of merges that need no person
MAX_MERGES = 50  # in one sweep; the next one continues

Place = tuple[int | None, bool]  # a known match, and whether its sides are in the other order there


class Finder:
    """Finds matches of one sport for a whole list of a source. A source never has two refs to one match."""

    def __init__(self, source: Source, sport: str, *, now: datetime) -> None:
        self.source_id, self.aliases = source.pk, TeamAlias.objects.names(sport)
        self.known = candidates(sport, self.aliases, now=now)
        self._taken: set[int] = set()

    def find(self, found: DiscoveredMatch) -> Place:
        """Returns the match that a listed one surely is, None if there is none; the sweep compares doubtful ones."""
        facts, state = facts_of(found, self.aliases)
        compared = compare(facts, self.known, self.aliases)
        best = the_same(one for one in compared if self._is_free(one[0]))
        if best is None:
            return None, False
        self._taken.add(best.match_id)
        return best.match_id, is_crossed(state, best.state, self.aliases) is True

    def _is_free(self, candidate: Candidate) -> bool:
        return self.source_id not in candidate.sources and candidate.match_id not in self._taken


def compare(facts: Facts, known: Candidates, aliases: Aliases) -> Iterator[tuple[Candidate, PairComparison]]:
    """Compares a match with the candidates that it may be the same as."""
    for candidate in known.like(facts):
        yield candidate, scoring.score(facts, candidate.facts, aliases)


def the_same(compared: Iterable[tuple[Candidate, PairComparison]]) -> Candidate | None:
    """Returns the candidate that is surely the same match; None if there is none, or two are equally good."""
    same = [pair for pair in compared if pair[1].outcome is PairOutcome.SAME]
    same.sort(key=lambda pair: -pair[1].score)
    if same and (len(same) == 1 or same[0][1].score > same[1][1].score):
        return same[0][0]
    return None


def sweep(*, now: datetime) -> int:
    """Compares all candidates again, because names and starts often come with the first reading; merges the same.

    Returns how many were merged. Called after a source's list was read; each merge is a transaction of its own.
    """
    return sum(_sweep(sport.value, now) for sport in Sport)


def _sweep(sport: str, now: datetime) -> int:
    aliases = TeamAlias.objects.names(sport)
    known = candidates(sport, aliases, now=now)
    if len({source for one in known.all for source in one.sources}) < 2:
        return 0
    decided = _decided([one.match_id for one in known.all])
    gone: set[int] = set()
    unsure: list[tuple[Candidate, Candidate, PairComparison]] = []
    for one, other, comparison in _compared(known, aliases):
        state = decided.get(frozenset((one.match_id, other.match_id)))
        if gone & {one.match_id, other.match_id} or state == PairingState.APART:
            continue
        if comparison.outcome is PairOutcome.SAME and len(gone) < MAX_MERGES:
            merged = _merge(one, other, comparison, now)
            if merged:
                gone.add(merged)
                decided = _decided([one.match_id for one in known.all])  # its decisions hold for the merged match
        elif state is None:
            unsure.append((one, other, comparison))
    PairingReview.objects.bulk_create(
        (
            PairingReview(match_id=one.match_id, candidate_id=other.match_id, score=comparison.score,
                          reasons=list(comparison.reasons), created_at=now)
            for one, other, comparison in unsure
            if not gone & {one.match_id, other.match_id}
        ),
        ignore_conflicts=True,
    )  # fmt: skip
    return len(gone)


def _compared(known: Candidates, aliases: Aliases) -> Iterator[tuple[Candidate, Candidate, PairComparison]]:
    """Yields pairs of two sources' matches that may be the same, the best first. Ties are for a person."""
    found = [
        (one, other, comparison)
        for one in known.all
        for other, comparison in compare(one.facts, known, aliases)
        if one.match_id < other.match_id and not one.sources & other.sources
    ]
    likely = [triple for triple in found if triple[2].outcome is not PairOutcome.APART]
    likely.sort(key=lambda triple: (-triple[2].score, triple[0].match_id, triple[1].match_id))
    sharing: dict[int, list[tuple[Candidate, Candidate, PairComparison]]] = defaultdict(list)
    for triple in likely:
        for candidate in triple[:2]:
            sharing[candidate.match_id].append(triple)
    for one, other, comparison in likely:
        rivals = (*sharing[one.match_id], *sharing[other.match_id])
        is_tied = any(rival[2] == comparison and _are_rivals((one, other), rival[:2]) for rival in rivals)
        yield one, other, replace(comparison, outcome=PairOutcome.UNSURE) if is_tied else comparison


def _are_rivals(pair: tuple[Candidate, Candidate], rival: tuple[Candidate, Candidate]) -> bool:
    """Returns whether only one of two pairs can be merged: they share a match, and all three are not one match."""
    ids = [{one.match_id for one in two} for two in (pair, rival)]
    lone = [one for one in (*pair, *rival) if one.match_id in ids[0] ^ ids[1]]
    return len(lone) == 2 and bool(lone[0].sources & lone[1].sources)


def _decided(match_ids: list[int]) -> dict[frozenset[int], str]:
    reviews = PairingReview.objects.filter(match_id__in=match_ids, candidate_id__in=match_ids)
    return {frozenset(pair): state for *pair, state in reviews.values_list("match_id", "candidate_id", "state")}


def _merge(one: Candidate, other: Candidate, comparison: PairComparison, now: datetime) -> int | None:
    """Merges a pair into the one that was read already, or else the older; returns the other's id, None if refused."""
    keep, gone = sorted((one, other), key=lambda candidate: (not candidate.is_read, candidate.match_id))
    try:
        merge(keep.match_id, gone.match_id, actor=SYSTEM, reason="; ".join(comparison.reasons), now=now)
    except MergeRefused as refusal:
        logger.info("Not merged: %s", refusal, extra={"action": "join_refused"})
        return None
    except DATABASE_AWAY:
        raise
    except Exception:  # one pair that cannot be merged does not stop the others
        key = match_key(keep.match_id)
        extra = {"action": "join_failed", "match_id": key}
        logger.exception("%s could not be merged into %s", match_key(gone.match_id), key, extra=extra)
        return None
    return gone.match_id


def merge_reviewed(review_id: int, *, actor: str, now: datetime) -> Match:
    """Merges a pair that a person has called one match, into the one that was read already, or else the older one."""
    review = _open_review(review_id)
    pair = sorted((review.match, review.candidate), key=lambda match: (not match.sequence, match.pk))
    return merge(pair[0].pk, pair[1].pk, actor=actor, reason=f"{actor} said so", now=now)


def keep_apart(review_id: int, *, actor: str, now: datetime) -> PairingReview:
    """Notes that a person has called a pair two matches: it is not proposed again."""
    review = _open_review(review_id)
    review.state, review.decided_by, review.decided_at = PairingState.APART, actor, now
    review.save(update_fields=("state", "decided_by", "decided_at"))
    matches_kept_apart.send_robust(sender=Match, match_id=review.match_id, other_id=review.candidate_id, actor=actor)
    return review


def _open_review(review_id: int) -> PairingReview:
    review = PairingReview.objects.select_related("match", "candidate").filter(pk=review_id).first()
    if review is None:
        raise MergeRefused("this pair is not there any more: one of its matches is part of another one now")
    if review.state != PairingState.OPEN:
        raise MergeRefused(f"{review} was decided already by {review.decided_by or 'unknown'}: {review.state}")
    return review
