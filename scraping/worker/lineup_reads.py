"""What is read of a match besides its score: who plays, and what every player did. READ, PARSE, CHECK, STORE."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from django.utils import timezone

from scraping import journal
from scraping.journal import Claim
from scraping.matches import lineups
from scraping.matches.validate import check_same_match
from scraping.models import MatchRef, Stage, TaskState
from scraping.payloads import Figures, Lineups
from scraping.reading.reader import Target
from scraping.readings import Reading, Request, evidence_from
from scraping.recovery import breakers
from scraping.sources.base import HasFigures, HasLineups
from scraping.stats import unknown_values
from scraping.worker.engine import Engine

logger = logging.getLogger(__name__)

Found = TypeVar("Found", Lineups, Figures)


def read_lineups(claim: Claim, engine: Engine, ref: MatchRef, target: Target) -> None:
    """Who plays. What was read at the wrong time is not kept, and that is no failure: the task is skipped."""
    found = _lineups(claim, engine, target)
    now, late = timezone.now(), lineups.refusal_of(found, ref.match)
    with journal.finishing(claim, now=now, to_state=TaskState.SKIPPED if late else TaskState.SUCCESS, reason=late):
        stored = lineups.store(found, ref_id=ref.pk, now=now)
        breakers.record_success(claim.task_id, ref.source, ref, policies=engine.policies, now=now)
    if stored.refusal:
        logger.info("Line-ups of %s: %s", ref.key, stored.refusal, extra={"action": "lineups_not_kept"})
    elif stored.changed_sides:
        sides = " and ".join(sorted(stored.changed_sides))
        logger.info("Line-ups of %s: news of %s", ref.key, sides, extra={"action": "lineups_read"})


def _lineups(claim: Claim, engine: Engine, target: Target) -> Lineups:
    adapter = target.adapter
    assert isinstance(adapter, HasLineups)
    requests = adapter.lineup_requests(target.ref, target.site.base_url)
    return _checked(claim, engine, target, requests, adapter.parse_lineups)


def read_figures(claim: Claim, engine: Engine, ref: MatchRef, target: Target) -> None:
    """What every player did."""
    found = _figures(claim, engine, target)
    now = timezone.now()
    with journal.finishing(claim, now=now):
        number = lineups.store_figures(found, ref_id=ref.pk)
        breakers.record_success(claim.task_id, ref.source, ref, policies=engine.policies, now=now)
    logger.info("%d figures of players of %s are new", number, ref.key, extra={"action": "figures_read"})


def _figures(claim: Claim, engine: Engine, target: Target) -> Figures:
    adapter = target.adapter
    assert isinstance(adapter, HasFigures)
    requests = adapter.figure_requests(target.ref, target.site.base_url)
    return _checked(claim, engine, target, requests, adapter.parse_figures)


def _checked(
    claim: Claim, engine: Engine, target: Target, requests: tuple[Request, ...], parse: Callable[[Reading], Found]
) -> Found:
    """Read, parsed, and surely about this match."""
    reading = engine.reader.besides(target, requests)
    engine.progress(claim, Stage.CAPTURED)
    with evidence_from(reading):
        found = parse(reading)
        check_same_match(found, expected_id=target.ref.source_event_id)
    engine.progress(claim, Stage.VALIDATED)
    unknown_values.count(target.site.key, found)
    return found
