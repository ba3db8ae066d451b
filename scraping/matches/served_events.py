"""Which of several sources' words on one happening consumers get.

Every source's events are kept as it tells them. A happening that two of them tell has the same slot in both, and one
row of it is served: the heaviest source's that has told it. Its id stays the one under which it was first
served, whoever is believed later: a better word is an update of a known event, never a second event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

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
    def belief(self) -> tuple[int, int]:
        """What it has told stands against all that are believed less, also while it is silent: it may come back."""
        return self.weight, -self.source_id

    @property
    def rank(self) -> tuple[bool, int, int]:
        return self.is_heard, *self.belief


def teller(ref: MatchRef, *, now: datetime, is_speaking: bool = False) -> Teller:
    """`is_speaking`: its reading is being written right now."""
    patience = timedelta(seconds=max(SILENT_SECONDS, SILENT_INTERVALS * ref.polling_interval_seconds))
    is_heard = is_speaking or (ref.captured_at is not None and now - ref.captured_at <= patience)
    return Teller(ref.source_id, ref.source.key, ref.source.precedence_weight, is_heard)


def decide(rows: Sequence[MatchEvent], *, own: Teller, others: Sequence[Teller]) -> None:
    """Set on each of `own`'s new rows whether it is served, and under which id. `others`: the match's other sources."""
    if not rows or not others:
        return
    tellers = {one.source_id: one for one in others} | {own.source_id: own}
    told = _Told(rows[0].match_id, rows, own)
    heavier = [one.source_id for one in others if one.belief > own.belief]
    names = [told.name_of(row) for row in rows]  # first of all: one that moves to another's slot does not become it
    standing = _standing(rows[0].match_id, {row.slot for row, name in zip(rows, names, strict=True) if name}, heavier)
    for row, name in zip(rows, names, strict=True):
        before = told.newest.get(name or told.name_of(row))
        if before is None:
            row.is_served = _may_begin(row, own, others)
        else:
            _follow(row, before, own=own, teller=tellers.get(before.source_id), heavier=standing.get(row.slot, ()))
        if row.is_served:
            told.add(row)


class _Told:
    """What consumers know already of the happenings that these rows are about.

    A source's own event stays what it was served as, whatever happens to its slot: goals are counted anew when one of
    them is taken back. What was never served of it, for another source was faster, is looked for by its first slot.
    """

    def __init__(self, match_id: int, rows: Sequence[MatchEvent], own: Teller) -> None:
        self.newest: dict[str, MatchEvent] = {}  # by the id that consumers know
        self._own: dict[str, str] = {}  # that id, by the source's own one
        self._by_slot: dict[str, str] = {}
        self._source_id = own.source_id
        self._slots = _first_slots(match_id, own.source_id, [row.event_id for row in rows if row.revision > 1])
        served = MatchEvent.objects.filter(match_id=match_id, is_served=True).order_by("pk")
        for start in range(0, len(rows), ASKED_AT_ONCE):
            some = rows[start : start + ASKED_AT_ONCE]
            is_own = Q(source_id=own.source_id, event_id__in=[row.event_id for row in some if row.revision > 1])
            wanted = {self._slot_of(row) for row in some} - {""}
            found = list(served.filter(Q(slot__in=sorted(wanted)) | is_own))
            names = sorted({row.known_as for row in found})
            if names:  # the newest word on a happening may have come with another slot
                found = list(served.filter(Q(public_id__in=names) | Q(public_id="", event_id__in=names)))
            for row in found:
                self.add(row)

    def add(self, row: MatchEvent) -> None:
        """In the order of writing. A slot is that of what stands, if anything does, else of what went last."""
        name = row.known_as
        moved = self.newest.get(name)
        if moved is not None and moved.slot != row.slot and self._by_slot.get(moved.slot) == name:
            del self._by_slot[moved.slot]
        self.newest[name] = row
        if row.source_id == self._source_id:
            self._own[row.event_id] = name
        if not row.slot:
            return
        holder = self.newest.get(self._by_slot.get(row.slot, ""))
        stands = holder is not None and holder.slot == row.slot and holder.action != EventAction.RETRACT
        if row.action != EventAction.RETRACT or not stands or holder is row:
            self._by_slot[row.slot] = name

    def name_of(self, row: MatchEvent) -> str:
        """The id by which consumers know what this row tells; empty if they do not know of it."""
        return self._own.get(row.event_id) or self._by_slot.get(self._slot_of(row), "")

    def _slot_of(self, row: MatchEvent) -> str:
        return self._slots.get(row.event_id) or row.slot


def _first_slots(match_id: int, source_id: int, event_ids: Sequence[str]) -> dict[str, str]:
    """By which slot these events of a source were first told."""
    found: dict[str, str] = {}
    for start in range(0, len(event_ids), ASKED_AT_ONCE):
        some = event_ids[start : start + ASKED_AT_ONCE]
        rows = MatchEvent.objects.filter(match_id=match_id, source_id=source_id, event_id__in=some).exclude(slot="")
        found |= dict(rows.order_by("-pk").values_list("event_id", "slot"))
    return found


def _standing(match_id: int, slots: set[str], sources: Sequence[int]) -> dict[str, list[MatchEvent]]:
    """What these sources say now of these happenings, served or not."""
    wanted = sorted(slots - {""})
    found: dict[str, list[MatchEvent]] = {}
    for start in range(0, len(wanted) if sources else 0, ASKED_AT_ONCE):
        rows = MatchEvent.objects.filter(
            match_id=match_id, source_id__in=sources, slot__in=wanted[start : start + ASKED_AT_ONCE], is_current=True
        )
        for row in rows.exclude(action=EventAction.RETRACT):
            found.setdefault(row.slot, []).append(row)
    return found


def _may_begin(row: MatchEvent, own: Teller, others: Sequence[Teller]) -> bool:
    """Nobody has told this yet. What cannot be named might be another source's, so only the heaviest may serve it."""
    if row.action == EventAction.RETRACT:
        return False
    return bool(row.slot) or all(own.rank > other.rank for other in others)


def _follow(
    row: MatchEvent, before: MatchEvent, *, own: Teller, teller: Teller | None, heavier: Sequence[MatchEvent]
) -> None:
    """Something was served of this happening already, by this source or by another one.

    `heavier`: what more believed sources say of it. They may have agreed with what was served, and left it at that.
    """
    is_own = before.source_id == row.source_id
    has_the_word = is_own or teller is None or own.belief > teller.belief
    is_overruled = any(not _says_the_same(row, one) for one in heavier)
    if not has_the_word or is_overruled or (not is_own and _says_the_same(row, before)):
        row.is_served = False
        return
    row.is_served = True
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
