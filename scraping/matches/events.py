"""Writes the events of one source: new, corrected and retracted ones. Called inside the transaction of ingest."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from scraping import event_keys
from scraping.errors import PayloadRejected
from scraping.matches import served_events
from scraping.matches.reconcile.states import swap_detail_sides, swap_slot_sides
from scraping.models import EventAction, MatchEvent, MatchRef
from scraping.payloads import Event, Sport
from victoryline.lib.crash import crash_point

MARKS = ("events_seen", "events_through", "events_doubted_from")  # the columns that `advance` moves


@dataclass(frozen=True)
class EventChanges:
    added: int = 0
    updated: int = 0
    retracted: int = 0
    served: int = 0  # how many of all these are served to consumers

    def __bool__(self) -> bool:
        return bool(self.added or self.updated or self.retracted)


def checksum(events: Sequence[Event]) -> str:
    """Returns the checksum of the source's list: an equal list needs no query."""
    return hashlib.sha256(b"\n".join(event.fingerprint().encode() for event in events)).hexdigest()


def store(
    ref: MatchRef,
    events: Sequence[Event],
    *,
    are_complete: bool,
    now: datetime,
    others: Sequence[MatchRef] = (),
) -> EventChanges:
    """Writes the difference between the stored events of this source and `events`, for the match's next sequence.

    `others`: the refs of the match at its other sources. With none of them every event is served.
    """
    sequence = ref.match.sequence + 1
    unique = {event.id: event for event in events}
    current = _current(ref, None if are_complete else list(unique))
    listed = [row for row in current.values() if row.action != EventAction.RETRACT]
    new = [e for e in unique.values() if e.id not in current]
    corrected = [e for e in unique.values() if e.id in current and current[e.id].fingerprint != e.fingerprint()]
    gone = [row for row in listed if row.event_id not in unique] if are_complete else []
    # A list that lacks many known events is a fault of the source. One event may always be retracted, two only from a
    # list that is not nearly halved by it.
    if len(gone) > max(1, min(2, len(listed) // 3), len(listed) // 5):
        raise PayloadRejected(f"{len(gone)} of {len(listed)} known events are missing from the source's list: rejected")
    superseded = [current[e.id].pk for e in corrected] + [row.pk for row in gone]
    if superseded:
        MatchEvent.objects.filter(pk__in=superseded).update(is_current=False)
    crash_point("events.superseded")
    rows = [_row(ref, e, 1, sequence, now) for e in new]
    rows += [_correction(ref, e, current[e.id], sequence, now) for e in corrected]
    rows += [_retraction(row, sequence, now) for row in gone]
    _add_missing_slots(ref, rows, current)
    if others:
        read_at = min(now, ref.captured_at or now)  # a spooled reading is compared with the others at its own time
        served_events.choose(
            rows,
            own=served_events.ranked(ref, now=None),
            others=[served_events.ranked(one, now=read_at) for one in others],
        )
        for row in rows:
            row.sequence -= not row.is_served  # consumers see no difference, so the match's sequence does not advance
    MatchEvent.objects.bulk_create(rows)
    crash_point("events.written")
    return EventChanges(len(new), len(corrected), len(gone), served=sum(row.is_served for row in rows))


def _add_missing_slots(ref: MatchRef, rows: Sequence[MatchEvent], current: dict[str, MatchEvent]) -> None:
    """Sets the slots of deliveries whose place in the over is not in the list, from the stored ball before them."""
    without = [
        row for row in rows if not row.slot and row.ordinal and row.innings and not event_keys.is_position(row.ordinal)
    ]
    if not without:
        return
    known = {row.ordinal: row.slot for row in (*current.values(), *rows) if row.ordinal and row.slot}
    wanted = {row.ordinal - 1 for row in without if row.ordinal} - known.keys()
    stored = MatchEvent.objects.filter(
        match_id=ref.match_id, source_id=ref.source_id, is_current=True, ordinal__in=wanted
    ).exclude(slot="")
    known |= {ordinal: slot for ordinal, slot in stored.values_list("ordinal", "slot") if ordinal}
    for row in sorted(without, key=lambda row: row.ordinal or 0):
        assert row.ordinal is not None
        assert row.innings is not None
        row.slot = event_keys.ball_after(known.get(row.ordinal - 1, ""), row.innings, row.over)
        known[row.ordinal] = row.slot


def unseen(ref: MatchRef, events: Sequence[Event]) -> list[Event]:
    """Returns those of which there is no row yet, not even a retracted one."""
    known = _current(ref, [event.id for event in events])
    return [event for event in events if event.id not in known]


def _current(ref: MatchRef, ids: list[str] | None) -> dict[str, MatchEvent]:
    """Returns the current rows of this source's events: all, or those with these ids."""
    rows = MatchEvent.objects.filter(match_id=ref.match_id, source_id=ref.source_id, is_current=True)
    if ids is not None:
        rows = rows.filter(event_id__in=ids)
    return {row.event_id: row for row in rows}


def _row(ref: MatchRef, event: Event, revision: int, sequence: int, now: datetime) -> MatchEvent:
    """Returns a new row, with the sides in the order of the match; the fingerprint is that of the source's event."""
    slot, detail = event.slot, event.detail
    if ref.is_crossed:
        has_goals = ref.match.sport == Sport.FOOTBALL
        slot, detail = swap_slot_sides(slot), swap_detail_sides(detail, has_goals=has_goals)
    return MatchEvent(
        match_id=ref.match_id,
        source_id=ref.source_id,
        event_id=event.id,
        revision=revision,
        action=EventAction.ADD if revision == 1 else EventAction.UPDATE,
        sequence=sequence,
        slot=slot,
        kind=event.kind,
        ordinal=event.ordinal,
        innings=event.innings,
        over=event.over or "",
        minute=event.minute or "",
        runs=event.runs,
        is_critical=event.is_critical,
        description=event.description,
        detail=detail,
        fingerprint=event.fingerprint(),
        happened_at=event.happened_at,
        created_at=now,
    )


def _correction(ref: MatchRef, event: Event, before: MatchEvent, sequence: int, now: datetime) -> MatchEvent:
    row = _row(ref, event, before.revision + 1, sequence, now)
    row.slot, row.reason = row.slot or before.slot, "the source corrected it"
    row.public_id, row.public_revision = before.public_id, before.public_revision and before.public_revision + 1
    return row


def _retraction(row: MatchEvent, sequence: int, now: datetime) -> MatchEvent:
    row.public_revision = row.public_revision and row.public_revision + 1
    row.pk, row.revision, row.action = None, row.revision + 1, EventAction.RETRACT
    row.reason = "the source no longer lists it"
    row.sequence, row.is_current, row.fingerprint, row.created_at = sequence, True, "retracted", now
    row.is_served = True
    return row


def advance(ref: MatchRef, events: Sequence[Event]) -> None:
    """Moves the ref's marks: `events_seen` to the highest number, `events_through` as far as there is no gap.

    A list that omits known events may omit unknown ones too, also those without a number, and moves only the first
    mark: the next tasks read back to the second one. `events_doubted_from`: they have found no more than that.
    """
    ordinals = {event.ordinal for event in events if event.ordinal is not None}
    if not ordinals:
        return
    ref.events_seen = max(ref.events_seen, *ordinals)
    if omits_known(ref, events):
        if ref.events_doubted_from is None:
            return
    elif ref.events_doubted_from is not None:
        ref.events_through, ref.events_doubted_from = min(ref.events_through, ref.events_doubted_from), None
    if not reaches(ordinals, ref.events_through):
        return
    first = min(ordinals)
    start = ref.events_through or (first if event_keys.is_position(first) else 0)  # where counting begins
    through = event_keys.through(ordinals, start)
    if through < ref.events_seen:  # a gap in this page may have been filled by an earlier one
        stored = MatchEvent.objects.filter(
            match_id=ref.match_id, source_id=ref.source_id, is_current=True, ordinal__gt=through
        )
        numbers = stored.exclude(action=EventAction.RETRACT).values_list("ordinal", flat=True)
        through = event_keys.through(ordinals | {number for number in numbers if number}, through)
    ref.events_through = through


def omits_known(ref: MatchRef, events: Sequence[Event]) -> bool:
    """Returns whether the list lacks stored events of the part between its first and its last numbered event.

    An event without a number has its place by its time, else by its over; at the place of a listed event it is a part
    of that one, as a wicket is of its ball.
    """
    numbered = [event for event in events if event.ordinal is not None]
    ordinals = {event.ordinal for event in numbered if event.ordinal is not None}
    if not ordinals or ref.source.is_pushed:
        return False
    known = MatchEvent.objects.filter(match_id=ref.match_id, source_id=ref.source_id, is_current=True)
    known = known.filter(Q(ordinal=None) | Q(ordinal__gt=min(ordinals), ordinal__lt=max(ordinals)))
    known = known.exclude(action=EventAction.RETRACT).exclude(event_id__in=[event.id for event in events])
    unlisted = known.values_list("ordinal", "happened_at", "innings", "over")
    times = {event.happened_at for event in numbered if event.happened_at is not None}
    places = {place for event in numbered if (place := _place(event.innings, event.over)) is not None}
    return any(
        ordinal is not None
        or (_is_within(times, happened_at) if times and happened_at else _is_within(places, _place(innings, over)))
        for ordinal, happened_at, innings, over in unlisted
        if ordinal not in ordinals
    )


def _is_within(listed: Collection[Any], place: Any) -> bool:
    return bool(listed) and place is not None and min(listed) < place < max(listed) and place not in listed


def _place(innings: int | None, over: str | None) -> tuple[int, int, int] | None:
    """Returns innings, completed overs and ball of "11.5"; the end of over 12 is "12", before its next ball "12.1"."""
    done, _, ball = (over or "").partition(".")
    if innings is None or not done.isdecimal() or not (ball or "0").isdecimal():
        return None
    return innings, int(done), int(ball or 0)


def reaches(ordinals: Collection[int], through: int) -> bool:
    """Returns whether a list with these numbers overlaps the known events.

    One that begins with the very next ball does not: events of the last known ball without a number may be missing.
    """
    return bool(ordinals) and (min(ordinals) <= through or event_keys.is_first(min(ordinals)))
