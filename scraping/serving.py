"""Which of several sources' words on one happening consumers get.

Every source's events are kept as it tells them. A happening that two of them tell has the same slot in both, and one
row of it is served: the heaviest source's that is still heard of. Its id stays the one under which it was first
served, whoever is believed later: a better word is an update of a known event, never a second event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from scraping.models import EventAction, MatchEvent, MatchRef

SILENT_SECONDS = 40.0
SILENT_INTERVALS = 4.0
ASKED_AT_ONCE = 500
UNSAID = ("", None, "other")


@dataclass(frozen=True)
class Teller:
    """A source that tells a match, as far as it matters who is believed."""

    source_id: int
    key: str
    weight: int
    is_heard: bool

    @property
    def rank(self) -> tuple[bool, int, int]:
        return self.is_heard, self.weight, -self.source_id


def teller(ref: MatchRef, *, now: datetime, is_speaking: bool = False) -> Teller:
    """`is_speaking`: its reading is being written right now."""
    patience = timedelta(seconds=max(SILENT_SECONDS, SILENT_INTERVALS * ref.polling_interval_seconds))
    is_heard = is_speaking or (ref.captured_at is not None and now - ref.captured_at <= patience)
    return Teller(ref.source_id, ref.source.key, ref.source.precedence_weight, is_heard)


def decide(rows: Sequence[MatchEvent], *, own: Teller, others: Sequence[Teller]) -> None:
    """Set on each of `own`'s new rows whether it is served, and under which id. `others`: the match's other sources."""
    if not rows or not others:
        return
    ranks = {one.source_id: one for one in others} | {own.source_id: own}
    served = _served(rows[0].match_id, {row.slot for row in rows if row.slot})
    for row in rows:
        before = served.get(row.slot) if row.slot else None
        if before is None:
            row.is_served = _may_begin(row, own, others)
        else:
            _follow(row, before, own=own, teller=ranks.get(before.source_id))
        if row.is_served and row.slot:
            served[row.slot] = row


def _may_begin(row: MatchEvent, own: Teller, others: Sequence[Teller]) -> bool:
    """Nobody has told this yet. What cannot be named might be another source's, so only the heaviest may serve it."""
    if row.slot:
        return row.action != EventAction.RETRACT
    return all(own.rank > other.rank for other in others)


def _follow(row: MatchEvent, before: MatchEvent, *, own: Teller, teller: Teller | None) -> None:
    """Something was served of this happening already, by this source or by another one."""
    is_own = before.source_id == row.source_id
    has_the_word = is_own or teller is None or own.rank > teller.rank
    if not has_the_word or (not is_own and _says_the_same(row, before)):
        row.is_served = False
        return
    row.public_id = before.known_as if before.known_as != row.event_id else ""
    row.public_revision = before.shown_revision + 1
    if row.action != EventAction.RETRACT:
        row.action = EventAction.UPDATE
    if not is_own and row.action == EventAction.UPDATE:
        row.reason = f"as {own.key} tells it"


def _says_the_same(row: MatchEvent, before: MatchEvent) -> bool:
    """Would a consumer learn anything? Words and players' keys are each source's own and do not count."""
    if (row.action == EventAction.RETRACT) != (before.action == EventAction.RETRACT):
        return False
    pairs = ((_said(row)[name], _said(before)[name]) for name in _said(row))
    return all(one == other or one in UNSAID or other in UNSAID for one, other in pairs)


def _said(row: MatchEvent) -> dict[str, Any]:
    return {"kind": row.kind, "runs": row.runs, "over": row.over, "score": row.detail.get("score")}


def _served(match_id: int, slots: Iterable[str]) -> dict[str, MatchEvent]:
    """The newest served row of each of these happenings."""
    wanted = sorted(slots)
    found: dict[str, MatchEvent] = {}
    for start in range(0, len(wanted), ASKED_AT_ONCE):
        rows = MatchEvent.objects.filter(
            match_id=match_id, slot__in=wanted[start : start + ASKED_AT_ONCE], is_served=True
        )
        found |= {row.slot: row for row in rows.order_by("pk")}
    return found
