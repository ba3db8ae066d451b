"""Which match is it, that a source lists? Asked when it is new, and again once more is known of it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db import transaction

from scraping.matches.pairing import scoring
from scraping.matches.pairing.aliases import aliases_of
from scraping.matches.pairing.candidates import Candidate, Candidates, candidates, facts_of
from scraping.matches.pairing.merging import NotJoined, join
from scraping.matches.pairing.scoring import Answer, Verdict
from scraping.matches.reconcile import orient
from scraping.models import Match, PairingReview, PairingState, Source
from scraping.names import Aliases
from scraping.payloads import DiscoveredMatch, Sport
from victoryline.lib.store import STORE_AWAY

logger = logging.getLogger(__name__)

SYSTEM = "pairing"  # who joins what nothing speaks against
MOST_JOINED = 50  # in one sweep: the next one goes on


@dataclass(frozen=True)
class Found:
    """What is known already of a match that a source lists."""

    match_id: int | None = None
    is_crossed: bool = False
    unsure: tuple[tuple[int, Verdict], ...] = ()  # matches that a person should compare it with


@dataclass
class Finder:
    """Loaded once for a whole list. A source never has two references on one match."""

    source_id: int
    aliases: Aliases
    known: Candidates
    _taken: set[int] = field(default_factory=set)

    def find(self, found: DiscoveredMatch) -> Found:
        facts = facts_of(found, self.aliases)
        judged = [
            (candidate, scoring.score(facts, candidate.facts, self.aliases))
            for candidate in self.known.like(facts)
            if self.source_id not in candidate.sources and candidate.match_id not in self._taken
        ]
        same = sorted((pair for pair in judged if pair[1].answer is Answer.SAME), key=_by_score)
        if same and (len(same) == 1 or same[0][1].score > same[1][1].score):
            best = same[0][0]
            self._taken.add(best.match_id)
            return Found(best.match_id, is_crossed=_is_crossed(found, best, self.aliases))
        doubtful = [pair for pair in judged if pair[1].answer is not Answer.APART]
        return Found(unsure=tuple((candidate.match_id, verdict) for candidate, verdict in doubtful))


def _by_score(pair: tuple[Candidate, Verdict]) -> float:
    return -pair[1].score


def _is_crossed(found: DiscoveredMatch, candidate: Candidate, aliases: Aliases) -> bool:
    if len(found.teams) != 2:
        return False
    teams = {side: team.model_dump() for side, team in zip(("team_a", "team_b"), found.teams, strict=True)}
    return orient({"teams": teams}, candidate.state, aliases) is True


def finder(source: Source, sport: str, *, now: datetime) -> Finder:
    aliases = aliases_of(sport)
    return Finder(source.pk, aliases, candidates(sport, aliases, now=now))


def find(source: Source, discovered: DiscoveredMatch, *, now: datetime) -> Match | None:
    """The match that this one is beyond doubt, or None."""
    found = finder(source, discovered.sport.value, now=now).find(discovered)
    return Match.objects.get(pk=found.match_id) if found.match_id else None


def write_reviews(match_id: int, unsure: tuple[tuple[int, Verdict], ...], *, now: datetime) -> int:
    """For a person to look at; once for each pair, whoever is named first."""
    new = [(other, verdict) for other, verdict in unsure if not _reviewed(match_id, other)]
    rows = [
        PairingReview(match_id=match_id, candidate_id=other, score=verdict.score, reasons=list(verdict.reasons),
                      created_at=now)
        for other, verdict in new
    ]  # fmt: skip
    return len(PairingReview.objects.bulk_create(rows, ignore_conflicts=True))


def _reviewed(one: int, other: int) -> bool:
    return PairingReview.objects.filter(match_id__in=(one, other), candidate_id__in=(one, other)).exists()


def sweep(*, now: datetime) -> int:
    """Compare again what is known now: names and starts of many a match come with its first reading.

    How many were joined. Called after a source's list was read; each joining is a transaction of its own.
    """
    return sum(_sweep(sport.value, now) for sport in Sport)


def sweep_quietly(*, now: datetime) -> None:
    """After a task that is done already: what goes wrong is tried again after the next list."""
    try:
        sweep(now=now)
    except Exception:
        logger.exception("Matches could not be compared", extra={"action": "sweep_failed"})


def _sweep(sport: str, now: datetime) -> int:
    aliases = aliases_of(sport)
    known = candidates(sport, aliases, now=now)
    if len({source for one in known.all for source in one.sources}) < 2:
        return 0
    decided = _decided([one.match_id for one in known.all])
    gone: set[int] = set()
    unsure: list[tuple[Candidate, Candidate, Verdict]] = []
    for one, other, verdict in _judged(known, aliases):
        state = decided.get(frozenset((one.match_id, other.match_id)))
        if gone & {one.match_id, other.match_id} or state == PairingState.APART:
            continue
        if verdict.answer is Answer.SAME and len(gone) < MOST_JOINED:
            joined = _join(one, other, verdict, now)
            if joined:
                gone.add(joined)
                decided = _decided([one.match_id for one in known.all])  # what was said of it holds for the other
        elif state is None:
            unsure.append((one, other, verdict))
    with transaction.atomic():
        for one, other, verdict in unsure:
            if not gone & {one.match_id, other.match_id}:
                write_reviews(one.match_id, ((other.match_id, verdict),), now=now)
    return len(gone)


def _judged(known: Candidates, aliases: Aliases) -> Iterator[tuple[Candidate, Candidate, Verdict]]:
    """Pairs of two sources' matches that are not plainly apart, the surest first. Ties are for a person."""
    found = [
        (one, other, scoring.score(one.facts, other.facts, aliases))
        for one in known.all
        for other in known.like(one.facts)
        if one.match_id < other.match_id and not one.sources & other.sources
    ]
    likely = [triple for triple in found if triple[2].answer is not Answer.APART]
    likely.sort(key=lambda triple: (-triple[2].score, triple[0].match_id, triple[1].match_id))
    sharing: dict[int, list[tuple[Candidate, Candidate, Verdict]]] = defaultdict(list)
    for triple in likely:
        for candidate in triple[:2]:
            sharing[candidate.match_id].append(triple)
    for one, other, verdict in likely:
        rivals = (*sharing[one.match_id], *sharing[other.match_id])
        is_tied = any(rival[2] == verdict and _are_rivals((one, other), rival[:2]) for rival in rivals)
        yield one, other, replace(verdict, answer=Answer.UNSURE) if is_tied else verdict


def _are_rivals(pair: tuple[Candidate, Candidate], rival: tuple[Candidate, Candidate]) -> bool:
    """Do two pairs share a match, so that only one of them can be joined? (Not if all three may be one match.)"""
    ids = [{one.match_id for one in two} for two in (pair, rival)]
    lone = [one for one in (*pair, *rival) if one.match_id in ids[0] ^ ids[1]]
    return len(lone) == 2 and bool(lone[0].sources & lone[1].sources)


def _decided(match_ids: list[int]) -> dict[frozenset[int], str]:
    reviews = PairingReview.objects.filter(match_id__in=match_ids, candidate_id__in=match_ids)
    return {frozenset(pair): state for *pair, state in reviews.values_list("match_id", "candidate_id", "state")}


def _join(one: Candidate, other: Candidate, verdict: Verdict, now: datetime) -> int | None:
    """The one that is read already stays, or else the older one. Its number is gone then; None if it was refused."""
    keep, gone = sorted((one, other), key=lambda candidate: (not candidate.is_read, candidate.match_id))
    try:
        join(keep.match_id, gone.match_id, actor=SYSTEM, reason="; ".join(verdict.reasons), now=now)
    except NotJoined as refusal:
        logger.info("Not joined: %s", refusal, extra={"action": "join_refused"})
        return None
    except STORE_AWAY:
        raise
    except Exception:  # one pair that cannot be joined does not keep the others apart
        extra = {"action": "join_failed", "match_id": keep.match_id}
        logger.exception("Match %s could not be joined with match %s", gone.match_id, keep.match_id, extra=extra)
        return None
    return gone.match_id
