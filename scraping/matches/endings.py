"""The end of a match: the last reading of everything, and what was found present. Also the turns on the way there.

EC-3. A match that has ended is read once more as a whole, with its players' figures, at every source that still has
it. Then somebody looks: the result, the final score, the figures, no hole in the events. What is missing is asked for
again a few times, and after that a person is told. Sole writer of `Match.final_checks` and `Match.final_sync_at`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from scraping import journal
from scraping.matches.completeness import complete_ones
from scraping.models import OPEN_STATES, Match, MatchLifecycle, MatchRef, PlayerFigure, Priority, ScrapeTask, TaskState
from scraping.payloads import Resource, Sport, Status
from scraping.signals import match_incomplete, match_settled
from scraping.sources import ADAPTERS
from scraping.sources.base import HasFigures
from victoryline.lib.store import STORE_AWAY
from victoryline.lib.times import as_utc_iso

logger = logging.getLogger(__name__)

AGAIN_AFTER = (timedelta(minutes=5), timedelta(minutes=15), timedelta(minutes=60))
LAST_READS = (Resource.FULL, Resource.FIGURES, Resource.COMMENTARY)
AT_ONCE = 50
READABLE: dict[str, Any] = {"gone_at": None, "is_watched": True, "source__is_enabled": True}


def sync_at_turn(ref: MatchRef, *, now: datetime) -> int:
    """FR-024: at a turn the match is read as a whole, in the transaction that tells of the turn."""
    return journal.open_tasks([_task(ref, Resource.FULL, now, priority=ref.match.priority)], now=now)


@dataclass(frozen=True)
class Checks:
    """What is there of a match that has ended. None: it cannot be expected."""

    result: bool | None
    score: bool | None
    figures: bool | None
    events: bool | None

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for name, is_there in asdict(self).items() if is_there is False)


def look(match: Match) -> Checks:
    """Look at what is stored of a match, at all its sources."""
    refs = [ref for ref in match.refs.select_related("source", "match") if not ref.source.is_pushed]
    if not refs:  # it was sent to us: what the sender did not send can be had nowhere
        has_result = bool(match.payload.get("result"))
        return Checks(result=has_result or None, score=_has_score(match) or None, figures=None, events=None)
    has_holes = any(ref.has_gap for ref in _telling(refs))
    if match.status != Status.COMPLETED:  # called off: there may be nothing but that
        return Checks(result=None, score=None, figures=None, events=not has_holes)
    has_figures = any(_has_figures(ref) for ref in refs)
    return Checks(
        result=bool(match.payload.get("result")),
        score=_has_score(match),
        figures=PlayerFigure.objects.filter(match=match).exists() if has_figures else None,
        events=not has_holes and bool(complete_ones(refs)),
    )


def _telling(refs: Sequence[MatchRef]) -> Sequence[MatchRef]:
    """Those that can still be read. A hole at a source that has the match no more can't be filled there."""
    return [ref for ref in refs if ref.gone_at is None and ref.source.is_enabled] or refs


def _has_score(match: Match) -> bool:
    if match.sport == Sport.CRICKET:
        return bool(match.payload.get("innings"))
    sides = (match.payload.get("score") or {}).values()
    return bool(sides) and all((side or {}).get("goals") is not None for side in sides)


def _has_figures(ref: MatchRef) -> bool:
    return isinstance(ADAPTERS.get(ref.source.adapter_key), HasFigures)


def settle_ended(now: datetime) -> list[int]:
    """One step with each match that has ended and is not settled; the ids of those whose standing is new."""
    is_new_end = Q(final_sync_at=None) | Q(final_sync_at__lt=F("completed_at"))
    waiting = Match.objects.filter(is_new_end, lifecycle=MatchLifecycle.COMPLETED, merged_into=None)
    waiting = waiting.exclude(completed_at=None).exclude(_is_being_read()).order_by("-completed_at")
    due = [pk for pk, checks, ended_at in _brief(waiting) if not _rests(checks, ended_at, now)]
    return [match_id for match_id in due[:AT_ONCE] if _settle_safely(match_id, now)]


def _is_being_read() -> Exists:
    """Of these there is nothing to say yet: many that wait for one source must not keep the others from their turn."""
    where = {f"ref__{name}": value for name, value in READABLE.items()}
    open_tasks = ScrapeTask.objects.filter(resource__in=LAST_READS, state__in=OPEN_STATES, **where)
    return Exists(open_tasks.filter(ref__match=OuterRef("pk")))


def _settle_safely(match_id: int, now: datetime) -> bool:
    """One match that cannot be judged does not cost the others their end."""
    try:
        return _settle(match_id, now)
    except STORE_AWAY:
        raise
    except Exception:
        extra = {"action": "match_not_settled", "match_id": match_id}
        logger.exception("Match %s has ended and could not be judged", match_id, extra=extra)
        return False


def _brief(matches: QuerySet[Match]) -> list[tuple[int, dict[str, Any], datetime]]:
    return [
        (pk, checks, ended_at)
        for pk, checks, ended_at in matches.values_list("pk", "final_checks", "completed_at")
        if ended_at is not None
    ]


def _rests(checks: Mapping[str, Any], ended_at: datetime, now: datetime) -> bool:
    """Nothing is to be done now: it waits for its next reading, or nobody expects more. A new end begins anew."""
    if checks.get("ended_at") != as_utc_iso(ended_at):
        return False
    again_at = checks.get("again_at")
    return bool(checks.get("given_up")) or (again_at is not None and datetime.fromisoformat(again_at) > now)


def _settle(match_id: int, now: datetime) -> bool:
    match = Match.objects.get(pk=match_id)
    assert match.completed_at is not None
    checks = match.final_checks
    if checks.get("ended_at") != as_utc_iso(match.completed_at):
        checks = {"ended_at": as_utc_iso(match.completed_at), "reads": 0}
    refs = _readable(match)
    if ScrapeTask.objects.filter(ref__in=refs, resource__in=LAST_READS, state__in=OPEN_STATES).exists():
        return False
    is_due = checks["reads"] == 0 or checks.get("again_at") is not None
    if refs and is_due:
        _open_last_reads(match, refs, is_first=checks["reads"] == 0, now=now)
        _note(match, {**checks, "reads": checks["reads"] + 1, "again_at": None})
        return False
    return _judge(match, checks, can_read=bool(refs), now=now)


def _readable(match: Match) -> list[MatchRef]:
    """Where the match can still be read."""
    refs = match.refs.filter(**READABLE)
    return list(refs.select_related("source", "match"))


def _open_last_reads(match: Match, refs: Sequence[MatchRef], *, is_first: bool, now: datetime) -> None:
    """A source that was read as a whole when the match had ended (by a job, say) is not, the first time."""
    whole = ScrapeTask.objects.filter(
        ref__in=refs, resource=Resource.FULL, state=TaskState.SUCCESS, finished_at__gte=match.completed_at
    )
    read_since = set(whole.values_list("ref_id", flat=True)) if is_first else set()
    new = [_task(ref, Resource.FULL, now) for ref in refs if ref.pk not in read_since]
    new += [_task(ref, Resource.FIGURES, now) for ref in refs if _has_figures(ref)]
    journal.open_tasks(new, now=now)


def _task(ref: MatchRef, resource: Resource, now: datetime, *, priority: int = Priority.COMPLETED) -> journal.NewTask:
    return journal.NewTask(ref.source_id, ref.pk, resource, priority, run_at=now)


def _judge(match: Match, checks: Mapping[str, Any], *, can_read: bool, now: datetime) -> bool:
    """Everything that was asked for has come or failed."""
    found = look(match)
    known = {**checks, **asdict(found), "missing": list(found.missing), "checked_at": as_utc_iso(now)}
    if not found.missing:
        _note(match, {**known, "again_at": None}, final_sync_at=now)
        _tell_settled(match)
        return True
    reads = checks["reads"]
    if can_read and reads <= len(AGAIN_AFTER):
        again_at = now + AGAIN_AFTER[reads - 1]
        _note(match, {**known, "again_at": as_utc_iso(again_at)})
        logger.warning(
            "%s has ended, and there is no %s yet: read again at %s UTC",
            match,
            ", no ".join(found.missing),
            f"{again_at:%H:%M:%S}",
            extra={"action": "match_incomplete", "match_id": match.pk, "missing": list(found.missing)},
        )
        return True
    _note(match, {**known, "again_at": None, "given_up": True})
    _tell_incomplete(match, found, reads)
    return True


def look_again(match_id: int, now: datetime) -> bool:
    """Something has changed since the match was judged: True if nothing is missing any more."""
    match = Match.objects.select_related("archive").get(pk=match_id)
    _read_corrected_figures(match, now)
    found, checks = look(match), match.final_checks
    known = {**checks, **asdict(found), "missing": list(found.missing), "checked_at": as_utc_iso(now)}
    is_news = not found.missing and bool(checks.get("missing"))
    known["given_up"] = bool(found.missing and checks.get("given_up"))
    _note(match, known, final_sync_at=now if is_news else None)
    if is_news:
        _tell_settled(match)
    return is_news


def _read_corrected_figures(match: Match, now: datetime) -> None:
    """A source that has corrected a match after its end may have corrected its players' figures with it."""
    archive = getattr(match, "archive", None)
    if archive is not None and match.last_changed_at is not None and match.last_changed_at > archive.created_at:
        asked = ScrapeTask.objects.filter(
            ref__match=match, resource=Resource.FIGURES, created_at__gte=match.last_changed_at
        )
        done = set(asked.values_list("ref_id", flat=True))  # a record that cannot be written is tried again and again
        refs = [ref for ref in _readable(match) if _has_figures(ref) and ref.pk not in done]
        journal.open_tasks([_task(ref, Resource.FIGURES, now) for ref in refs], now=now)


def _note(match: Match, checks: Mapping[str, Any], *, final_sync_at: datetime | None = None) -> None:
    match.final_checks = dict(checks)
    match.final_sync_at = final_sync_at or match.final_sync_at
    match.save(update_fields=("final_checks", "final_sync_at"))


def _tell_settled(match: Match) -> None:
    extra = {"action": "match_settled", "match_id": match.pk}
    logger.info(
        "%s has ended and all of it is there: %s", match, match.payload.get("result") or match.status, extra=extra
    )
    match_settled.send_robust(sender=Match, match_id=match.pk)


def _tell_incomplete(match: Match, found: Checks, reads: int) -> None:
    logger.error(
        "%s has ended, and after %d readings of all of it there is still no %s. What is known stays served; look at "
        "its tasks and errors in the admin, and at the source's own page",
        match,
        reads,
        ", no ".join(found.missing),
        extra={"action": "match_incomplete", "match_id": match.pk, "missing": list(found.missing)},
    )
    match_incomplete.send_robust(sender=Match, match_id=match.pk, missing=list(found.missing))
