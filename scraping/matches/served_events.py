"""Chooses which source's version of an event is served to consumers.

Every source's events are stored as it lists them. Two sources that list the same event give it the same slot, and one
row of the slot is served: that of the heaviest source that has it. The event id stays the one under which it was first
served, whichever source is chosen later: a better version is an update of a known event, never a second event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from scraping.models import EventAction, MatchEvent, MatchRef

RECENT_SECONDS = 40.0
RECENT_INTERVALS = 4.0
UNSPECIFIED = ("", None, "other")


@dataclass(frozen=True)
class RankedSource:
    source_id: int
    key: str
    weight: int
    is_recent: bool

    @property
    def precedence(self) -> tuple[int, int]:
        """Its versions win against sources with less, also while it is silent: it may come back."""
        return self.weight, -self.source_id

    @property
    def rank(self) -> tuple[bool, int, int]:
        return self.is_recent, *self.precedence


def is_recent(ref: MatchRef, *, now: datetime) -> bool:
    tolerance = timedelta(seconds=max(RECENT_SECONDS, RECENT_INTERVALS * ref.polling_interval_seconds))
    return ref.captured_at is not None and now - ref.captured_at <= tolerance


def ranked(ref: MatchRef, *, now: datetime | None) -> RankedSource:
    """Returns the rank of a source at this time; without a time it is being read just now."""
    recent = now is None or is_recent(ref, now=now)
    return RankedSource(ref.source_id, ref.source.key, ref.source.precedence_weight, recent)


def choose(rows: Sequence[MatchEvent], *, own: RankedSource, others: Sequence[RankedSource]) -> None:
    """Sets on each new row of `own` whether it is served, and under which id. `others`: the match's other sources."""
    if not rows or not others:
        return
    sources = {one.source_id: one for one in others} | {own.source_id: own}
    index = _ServedIndex(rows[0].match_id, rows, own)
    heavier = [one.source_id for one in others if one.precedence > own.precedence]
    ids = [index.public_id_of(row) for row in rows]  # before any is added: a row may move to the slot of another one
    slots = {row.slot for row, public_id in zip(rows, ids, strict=True) if public_id}
    current = _current_versions(rows[0].match_id, slots, heavier)
    for row, public_id in zip(rows, ids, strict=True):
        before = index.newest.get(public_id or index.public_id_of(row))
        if before is None:
            # One without a slot may be one that another source has served, so only the first source may serve it.
            is_first = bool(row.slot) or all(own.rank > other.rank for other in others)
            row.is_served = is_first and row.action != EventAction.RETRACT
        else:
            source = sources.get(before.source_id)
            _follow(row, before, own=own, source=source, heavier=current.get(row.slot, ()))
        if row.is_served:
            index.add(row)


class _ServedIndex:
    """The served versions of the events that some new rows are about.

    A source's own event keeps the id it was served under, even if its slot changes (goals are numbered anew when one
    is retracted). One that was never served is found by its first slot.
    """

    def __init__(self, match_id: int, rows: Sequence[MatchEvent], own: RankedSource) -> None:
        self.newest: dict[str, MatchEvent] = {}  # by the id that consumers know
        self._own: dict[str, str] = {}  # that id, by the source's own one
        self._by_slot: dict[str, str] = {}
        self._source_id = own.source_id
        known = [row.event_id for row in rows if row.revision > 1]
        first = MatchEvent.objects.filter(match_id=match_id, source_id=own.source_id, event_id__in=known)
        self._first_slots = dict(first.exclude(slot="").order_by("-pk").values_list("event_id", "slot"))
        served = MatchEvent.objects.filter(match_id=match_id, is_served=True).order_by("pk")
        is_own = Q(source_id=own.source_id, event_id__in=known)
        wanted = {self._slot_of(row) for row in rows} - {""}
        ids = {row.known_as for row in served.filter(Q(slot__in=wanted) | is_own)}
        if ids:  # the newest version of an event may have another slot
            for row in served.filter(Q(public_id__in=ids) | Q(public_id="", event_id__in=ids)):
                self.add(row)

    def add(self, row: MatchEvent) -> None:
        """Adds a row, in the order of writing. A slot has the id of its current version, or of the last retracted."""
        public_id = row.known_as
        moved = self.newest.get(public_id)
        if moved is not None and moved.slot != row.slot and self._by_slot.get(moved.slot) == public_id:
            del self._by_slot[moved.slot]
        self.newest[public_id] = row
        if row.source_id == self._source_id:
            self._own[row.event_id] = public_id
        if not row.slot:
            return
        holder = self.newest.get(self._by_slot.get(row.slot, ""))
        has_current = holder is not None and holder.slot == row.slot and holder.action != EventAction.RETRACT
        if row.action != EventAction.RETRACT or not has_current or holder is row:
            self._by_slot[row.slot] = public_id

    def public_id_of(self, row: MatchEvent) -> str:
        """Returns the id under which this event was served, or an empty string."""
        return self._own.get(row.event_id) or self._by_slot.get(self._slot_of(row), "")

    def _slot_of(self, row: MatchEvent) -> str:
        return self._first_slots.get(row.event_id) or row.slot


def _current_versions(match_id: int, slots: set[str], sources: Sequence[int]) -> dict[str, list[MatchEvent]]:
    """Returns the current versions of these slots at these sources, served or not."""
    found: dict[str, list[MatchEvent]] = {}
    if sources:
        rows = MatchEvent.objects.filter(match_id=match_id, source_id__in=sources, slot__in=slots - {""})
        for row in rows.filter(is_current=True).exclude(action=EventAction.RETRACT):
            found.setdefault(row.slot, []).append(row)
    return found


def _follow(
    row: MatchEvent,
    before: MatchEvent,
    *,
    own: RankedSource,
    source: RankedSource | None,
    heavier: Sequence[MatchEvent],
) -> None:
    """Decides about an event of which a version (of `source`) was served already.

    `heavier`: the versions of sources with more precedence; they may agree with the served version.
    """
    is_own = before.source_id == row.source_id
    has_precedence = is_own or source is None or own.precedence > source.precedence
    is_overruled = any(not _is_equivalent(row, one) for one in heavier)
    if not has_precedence or is_overruled or (not is_own and _is_equivalent(row, before)):
        row.is_served = False
        return
    row.is_served = True
    row.public_id = before.known_as if before.known_as != row.event_id else ""
    row.public_revision = before.shown_revision + 1
    if row.action != EventAction.RETRACT:
        row.action = EventAction.UPDATE
    if not is_own and row.action == EventAction.UPDATE:
        row.reason = f"according to {own.key}"


def _is_equivalent(row: MatchEvent, before: MatchEvent) -> bool:
    """Returns whether a consumer would see no difference. Descriptions and player ids are each source's own."""
    if (row.action == EventAction.RETRACT) != (before.action == EventAction.RETRACT):
        return False
    values, known = ((one.kind, one.runs, one.over, one.detail.get("score")) for one in (row, before))
    return all(
        own == other or own in UNSPECIFIED or other in UNSPECIFIED for own, other in zip(values, known, strict=True)
    )
