"""Whether what was done has helped: every action that tries to mend something is judged, at the latest after 120 s.

Guards against recoveries that are only believed in: an action that changed nothing is written down as failed, with how
things stood before and after. A success is written as soon as it is clear. The verdicts are pure; the step reads the
open entries, asks how things stand now, and closes those that can be closed. Two leaders may do it at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from monitoring import audit, standing
from monitoring.audit import JUDGED_AFTER, Judged
from monitoring.models import AuditEntry, AuditOutcome, Grade
from monitoring.standing import MatchSeen, SystemSeen
from scraping.models import ScrapeTask, TaskState

AT_A_TIME = 1000  # the rest is judged five seconds later
_BY_GRADE = {
    Grade.HEALTHY: AuditOutcome.SUCCESS,
    Grade.DEGRADED: AuditOutcome.PARTIAL,
    Grade.RECOVERING: AuditOutcome.PARTIAL,
    Grade.FAILING: AuditOutcome.FAILED,
}
_ENDED_IN_VAIN = (TaskState.FAILED, TaskState.DEAD)


@dataclass(frozen=True)
class Verdict:
    """`well_at`: when the thing was well again, where that took time."""

    outcome: AuditOutcome
    well_at: datetime | None = None


def of_match(acted_at: datetime, match: MatchSeen, now: datetime, *, source_key: str = "") -> Verdict | None:
    """By whether the match was heard of since. None: not clear yet. `source_key`: whose silence it was about."""
    if match.has_ended:
        return Verdict(AuditOutcome.SUCCESS)
    heard = [source for source in match.sources if source.heard_at and source.heard_at > acted_at]
    own = [source for source in heard if _is_meant(source, source_key)]
    if any(not source.is_slowed for source in own) and not match.is_paused:
        return Verdict(AuditOutcome.SUCCESS, min(source.heard_at for source in own if source.heard_at))
    if now - acted_at < JUDGED_AFTER:
        return None
    is_heard = bool(heard) or (match.heard_at is not None and match.heard_at > acted_at)
    if is_heard or match.is_paused or not match.sources:  # without a source nobody tries any more
        return Verdict(AuditOutcome.PARTIAL)
    return Verdict(AuditOutcome.FAILED)


def _is_meant(source: standing.SourceSeen, key: str) -> bool:
    return source.key == key if key else not source.is_called_in


def of_system(acted_at: datetime, system: SystemSeen, now: datetime, *, was: str = "") -> Verdict | None:
    """By the grade that was reached (SO-6). `was`: the grade before, if known."""
    seconds = (now - acted_at).total_seconds()
    if system.grade == Grade.HEALTHY and system.has_read_within(seconds):
        return Verdict(AuditOutcome.SUCCESS, now if was not in {"", Grade.HEALTHY} else None)
    return Verdict(_BY_GRADE[system.grade]) if now - acted_at >= JUDGED_AFTER else None


def of_task(acted_at: datetime, state: str, finished_at: datetime | None, now: datetime) -> Verdict | None:
    if state == TaskState.SUCCESS:
        return Verdict(AuditOutcome.SUCCESS, finished_at)
    if state in _ENDED_IN_VAIN and finished_at and finished_at > acted_at:
        return Verdict(AuditOutcome.FAILED)
    if now - acted_at < JUDGED_AFTER:
        return None
    return Verdict(AuditOutcome.FAILED if state in _ENDED_IN_VAIN else AuditOutcome.PARTIAL)


def judge_actions(now: datetime) -> int:
    """Scheduler step: how many were judged."""
    waiting = [entry for entry in audit.pending(AT_A_TIME) if entry.timestamp <= now]
    if not waiting:
        return 0
    bench = _Bench(waiting, now)
    return audit.close(entry for entry in waiting if bench.judge(entry))


class _Bench:
    """What is known now about the subjects of the open entries: asked once for all of them."""

    def __init__(self, waiting: list[AuditEntry], now: datetime) -> None:
        self._now = now
        by = {how: [entry for entry in waiting if _how(entry) is how] for how in Judged}
        self._matches = standing.of_matches({entry.match_id for entry in by[Judged.BY_MATCH] if entry.match_id}, now)
        self._system = standing.of_system(now) if by[Judged.BY_GRADE] else None
        tasks = [entry.metadata.get("task_id") for entry in by[Judged.BY_TASK]]
        self._tasks: dict[int, tuple[str, datetime | None]] = (
            {
                pk: (state, at)
                for pk, state, at in ScrapeTask.objects.filter(pk__in=[pk for pk in tasks if pk]).values_list(
                    "pk", "state", "finished_at"
                )
            }
            if tasks
            else {}
        )

    def judge(self, entry: AuditEntry) -> bool:
        """Fills in how it came out, where that is clear."""
        verdict, after = self._verdict(entry)
        if verdict is None:
            return False
        entry.outcome, entry.after, entry.judged_at = verdict.outcome, after, self._now
        if verdict.well_at is not None:
            entry.duration_seconds = max(0.0, (verdict.well_at - entry.timestamp).total_seconds())
        return True

    def _verdict(self, entry: AuditEntry) -> tuple[Verdict | None, dict[str, Any]]:
        now, at = self._now, entry.timestamp
        how = _how(entry)
        if how is Judged.BY_TASK:
            task = self._tasks.get(entry.metadata.get("task_id", 0))
            if task is None:  # pruned, with its match
                return Verdict(AuditOutcome.PARTIAL), {"state": "gone"}
            return of_task(at, *task, now), {"state": task[0]}
        if how is Judged.BY_MATCH:
            match = self._matches.get(entry.match_id or 0)
            if match is None:
                return Verdict(AuditOutcome.PARTIAL), {"lifecycle": "gone"}
            source_key = str(entry.metadata.get("source_key") or "")
            return of_match(at, match, now, source_key=source_key), match.as_document(now)
        system = self._system or standing.of_system(now)
        was = str(entry.before.get("grade") or "")
        return of_system(at, system, now, was=was), system.as_document()


def _how(entry: AuditEntry) -> Judged:
    """An entry that is open though its action is a fact, of an older version, goes by the grade."""
    how = audit.judged_by(entry.action_type, entry.match_id)
    return Judged.BY_GRADE if how is Judged.AT_ONCE else how
