"""The final reads of a match that has ended, and the check that nothing of it is missing (EC-3).

The match is read once more as a whole, with its players' figures, at every source that still has it. Then the result,
the final score, the figures and the events are checked. Missing parts are read again a few times, and after that an
operator is alerted. The only writer of `Match.final_checks` and `Match.final_sync_at`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q

from scraping import journal
from scraping.models import (
    OPEN_STATES,
    EventAction,
    Match,
    MatchEvent,
    MatchLifecycle,
    MatchRef,
    PlayerFigure,
    Priority,
    ScrapeTask,
    TaskState,
    match_key,
)
from scraping.payloads import Resource, Sport, Status
from scraping.signals import match_incomplete, match_settled
from scraping.sources import ADAPTERS
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.times import as_utc_iso

logger = logging.getLogger(__name__)

AGAIN_AFTER = (timedelta(minutes=5), timedelta(minutes=15), timedelta(minutes=60))
LAST_READS = (Resource.FULL, Resource.FIGURES, Resource.COMMENTARY)
AT_ONCE = 50
GOALS = ("goal", "own_goal", "penalty_goal")
_WITHOUT_PLAY = re.compile(r"\bwalk-?over\b|side retired", re.IGNORECASE)
READABLE: dict[str, Any] = {"gone_at": None, "is_watched": True, "source__is_enabled": True}


def sync_at_milestone(ref: MatchRef, *, now: datetime) -> int:
    """Opens a task that reads the whole match (FR-024), in the transaction of the reading that found the milestone."""
    return journal.open_tasks([_task(ref, Resource.FULL, now, priority=ref.match.priority)], now=now)


def check(match: Match) -> dict[str, bool | None]:
    """Returns which parts of a match are stored, from all its sources. None: the part cannot be expected."""
    refs = [ref for ref in match.refs.select_related("source", "match") if not ref.source.is_pushed]
    if not refs:  # it was sent to us: there is no source for missing parts
        has_result = bool(match.payload.get("result"))
        return {"result": has_result or None, "score": _has_score(match) or None, "figures": None, "events": None}
    # A gap at a source that removed the match cannot be filled there.
    readable = [ref for ref in refs if ref.gone_at is None and ref.source.is_enabled] or refs
    has_gaps = any(ref.has_gap for ref in readable)
    if match.status != Status.COMPLETED:  # called off: there may be no result and no score
        return {"result": None, "score": None, "figures": None, "events": not has_gaps}
    has_figures = any(_has_figures(ref) for ref in refs)
    if _WITHOUT_PLAY.search(match.payload.get("result") or "") and not _has_score(match):
        return {"result": True, "score": None, "figures": None, "events": None}
    return {
        "result": bool(match.payload.get("result")),
        "score": _has_score(match),
        "figures": PlayerFigure.objects.filter(match=match).exists() if has_figures else None,
        "events": not has_gaps and bool(complete_refs(refs)),
    }


def missing_parts(found: Mapping[str, bool | None]) -> list[str]:
    return [name for name, is_there in found.items() if is_there is False]


def _has_score(match: Match) -> bool:
    if match.sport == Sport.CRICKET:
        return bool(match.payload.get("innings"))
    sides = (match.payload.get("score") or {}).values()
    return bool(sides) and all((side or {}).get("goals") is not None for side in sides)


def _has_figures(ref: MatchRef) -> bool:
    adapter = ADAPTERS.get(ref.source.adapter_key)
    return adapter is not None and bool(adapter.figure_schema)


def _has_lineups(ref: MatchRef) -> bool:
    adapter = ADAPTERS.get(ref.source.adapter_key)
    return adapter is not None and bool(adapter.lineup_schema)


def settle_ended_matches(now: datetime) -> int:
    """Scheduler step: opens the final reads of ended matches, or checks those that were read; returns how many."""
    is_new_end = Q(final_sync_at=None) | Q(final_sync_at__lt=F("completed_at"))
    waiting = Match.objects.filter(is_new_end, lifecycle=MatchLifecycle.COMPLETED, merged_into=None)
    # Those with open final reads are left out: many that wait for one source must not delay the others.
    where = {f"ref__{name}": value for name, value in READABLE.items()}
    open_reads = ScrapeTask.objects.filter(resource__in=LAST_READS, state__in=OPEN_STATES, **where)
    waiting = waiting.exclude(completed_at=None).exclude(Exists(open_reads.filter(ref__match=OuterRef("pk"))))
    rows = waiting.order_by("-completed_at").values_list("pk", "final_checks", "completed_at")
    due = [pk for pk, checks, ended_at in rows if ended_at is not None and not _rests(checks, ended_at, now)]
    checked = 0
    for match_id in due[:AT_ONCE]:
        try:
            checked += _settle(match_id, now)
        except DATABASE_AWAY:
            raise
        except Exception:  # a match that cannot be checked does not stop the others
            key = match_key(match_id)
            extra = {"action": "match_not_settled", "match_id": key}
            logger.exception("%s has ended and could not be checked", key, extra=extra)
    return checked


def _rests(checks: Mapping[str, Any], ended_at: datetime, now: datetime) -> bool:
    """Returns whether nothing is due: it waits for its next reads, or was given up. A new end starts again."""
    if checks.get("ended_at") != as_utc_iso(ended_at):
        return False
    again_at = checks.get("again_at")
    return bool(checks.get("given_up")) or (again_at is not None and datetime.fromisoformat(again_at) > now)


def _settle(match_id: int, now: datetime) -> bool:
    """Opens the final reads, or checks the match after them; returns whether it was checked."""
    match = Match.objects.get(pk=match_id)
    assert match.completed_at is not None
    checks = match.final_checks
    if checks.get("ended_at") != as_utc_iso(match.completed_at):
        checks = {"ended_at": as_utc_iso(match.completed_at), "reads": 0}
    refs = _readable(match)
    if refs and (checks["reads"] == 0 or checks.get("again_at") is not None):
        _open_last_reads(match, refs, is_first=checks["reads"] == 0, now=now)
        _note(match, {**checks, "reads": checks["reads"] + 1, "again_at": None})
        return False
    _check_and_note(match, checks, can_read=bool(refs), now=now)
    return True


def _readable(match: Match) -> list[MatchRef]:
    return list(match.refs.filter(**READABLE).select_related("source", "match"))


def _open_last_reads(match: Match, refs: Sequence[MatchRef], *, is_first: bool, now: datetime) -> None:
    """Opens the final reads. A source that was read as a whole since the end (by a job) is left out the first time."""
    whole = ScrapeTask.objects.filter(
        ref__in=refs, resource=Resource.FULL, state=TaskState.SUCCESS, finished_at__gte=match.completed_at
    )
    read_since = set(whole.values_list("ref_id", flat=True)) if is_first else set()
    new = [_task(ref, Resource.FULL, now) for ref in refs if ref.pk not in read_since]
    new += [_task(ref, Resource.FIGURES, now) for ref in refs if _has_figures(ref)]
    if match.sport == Sport.CRICKET and _has_score(match) and not match.payload.get("toss"):
        new += [_task(ref, Resource.LINEUPS, now) for ref in refs if _has_lineups(ref)]  # their page may have the toss
    journal.open_tasks(new, now=now)


def _task(ref: MatchRef, resource: Resource, now: datetime, *, priority: int = Priority.COMPLETED) -> journal.NewTask:
    return journal.NewTask(ref.source_id, ref.pk, resource, priority, run_at=now)


def _check_and_note(match: Match, checks: Mapping[str, Any], *, can_read: bool, now: datetime) -> None:
    """Checks the match after its final reads, and plans further ones."""
    known, missing, reads = *_checked(match, checks, now), checks["reads"]
    if not missing:
        _note(match, {**known, "again_at": None}, final_sync_at=now)
        _report_settled(match)
        return
    extra = {"action": "match_incomplete", "match_id": match.key, "missing": missing}
    if can_read and reads <= len(AGAIN_AFTER):
        again_at = now + AGAIN_AFTER[reads - 1]
        _note(match, {**known, "again_at": as_utc_iso(again_at)})
        text = "%s has ended, and there is no %s yet: read again at %s UTC"
        logger.warning(text, match, ", no ".join(missing), f"{again_at:%H:%M:%S}", extra=extra)
        return
    _note(match, {**known, "again_at": None, "given_up": True})
    logger.error(
        "%s has ended, and after %d readings of all of it there is still no %s. Its last state stays served; check "
        "its tasks and errors in the admin, and the source's own page",
        match,
        reads,
        ", no ".join(missing),
        extra=extra,
    )
    match_incomplete.send_robust(sender=Match, match_id=match.pk, missing=missing)


def _checked(match: Match, checks: Mapping[str, Any], now: datetime) -> tuple[dict[str, Any], list[str]]:
    """Returns the value of `final_checks` after a new check, and the missing parts."""
    found = check(match)
    missing = missing_parts(found)
    return {**checks, **found, "missing": missing, "checked_at": as_utc_iso(now)}, missing


def check_again(match_id: int, now: datetime) -> bool:
    """Checks a match that has changed since its last check; returns True if nothing is missing any more."""
    match = Match.objects.select_related("archive").get(pk=match_id)
    _read_corrected_figures(match, now)
    checks = match.final_checks
    known, missing = _checked(match, checks, now)
    is_settled = not missing and bool(checks.get("missing"))
    known["given_up"] = bool(missing and checks.get("given_up"))
    _note(match, known, final_sync_at=now if is_settled else None)
    if is_settled:
        _report_settled(match)
    return is_settled


def _read_corrected_figures(match: Match, now: datetime) -> None:
    """Opens reads of the figures after a correction of an archived match: they may have been corrected with it."""
    archive = getattr(match, "archive", None)
    if archive is not None and match.last_changed_at is not None and match.last_changed_at > archive.created_at:
        opened = ScrapeTask.objects.filter(
            ref__match=match, resource=Resource.FIGURES, created_at__gte=match.last_changed_at
        )
        done = set(opened.values_list("ref_id", flat=True))  # once: the archive may be retried many times
        refs = [ref for ref in _readable(match) if _has_figures(ref) and ref.pk not in done]
        journal.open_tasks([_task(ref, Resource.FIGURES, now) for ref in refs], now=now)


def _note(match: Match, checks: Mapping[str, Any], *, final_sync_at: datetime | None = None) -> None:
    match.final_checks = dict(checks)
    match.final_sync_at = final_sync_at or match.final_sync_at
    match.save(update_fields=("final_checks", "final_sync_at"))


def _report_settled(match: Match) -> None:
    extra = {"action": "match_settled", "match_id": match.key}
    logger.info("%s has ended and is complete: %s", match, match.payload.get("result") or match.status, extra=extra)
    match_settled.send_robust(sender=Match, match_id=match.pk)


def complete_refs(refs: Sequence[MatchRef]) -> dict[int, str]:
    """Returns the refs of matches that are over and of which nothing is missing, each with the reason.

    Both the match and its state at this source are completed, and its events have no gap. Events without numbers must
    at least include every goal.
    """
    ended = [
        ref
        for ref in refs
        if ref.match.status == ref.payload.get("status") == Status.COMPLETED
        and ref.payload.get("result")
        and not ref.has_gap
    ]
    stored = MatchEvent.objects.filter(match_id__in=[ref.match_id for ref in ended], is_current=True).order_by()
    counted = (
        stored.exclude(action=EventAction.RETRACT)
        .values_list("match_id", "source_id")
        .annotate(total=Count("pk"), goals=Count("pk", filter=Q(kind__in=GOALS)))
    )
    numbers = {(match_id, source_id): (total, goals) for match_id, source_id, total, goals in counted}
    complete = {}
    for ref in ended:
        total, goals = numbers.get((ref.match_id, ref.source_id), (0, 0))
        scored = sum((side or {}).get("goals") or 0 for side in (ref.payload.get("score") or {}).values())
        if ref.events_seen or (total > 0 and goals >= scored):
            complete[ref.pk] = f"complete already: {ref.payload['result']}"[:200]
    return complete
