"""Writes line-ups and players' figures; the only writer of both.

Point in time: a pre-match line-up was read before the start, and no later reading changes it. Values from after the end
(ratings, minutes) are rows of their own. The database has the same rule as a constraint. Called inside the transaction
that finishes the task (`journal.finishing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scraping import payloads
from scraping.matches import ingest
from scraping.models import Lineup, LineupPlayer, Match, MatchRef, PlayerFigure, SnapshotType
from scraping.payloads import Figures, Lineups, Status, checksum_of
from scraping.policies.lineup_schedule import LINEUP_WINDOW, next_lineup_read

OTHER_SIDE: Mapping[str, payloads.Side] = {"team_a": "team_b", "team_b": "team_a"}
PLAYER_COLUMNS = ("name", "position", "shirt", "is_starter", "is_captain", "rating", "minutes")


class PointInTimeError(Exception):
    """The reading is not from before the start, and not from after the end."""


@dataclass(frozen=True)
class LineupResult:
    snapshot_type: SnapshotType | None  # None: it was neither from before the start nor from after the end
    changed_sides: tuple[str, ...] = ()
    refusal: str = ""


def snapshot_type_at(captured_at: datetime, *, kickoff: datetime | None, status: Status) -> SnapshotType:
    """Returns the snapshot type of a reading made at this time. Raises PointInTimeError if it has none."""
    if status is Status.COMPLETED:
        return SnapshotType.POST_MATCH
    if kickoff is None:
        raise PointInTimeError("the start of the match is unknown, so no reading can be shown to be from before it")
    if status is Status.UPCOMING and captured_at < kickoff:
        return SnapshotType.PRE_MATCH
    raise PointInTimeError(
        f"read at {captured_at:%Y-%m-%d %H:%M:%S} UTC, and the match ({status.value}) starts at {kickoff:%H:%M:%S}: "
        "the pre-match line-up is kept, and the post-match values are read after the end"
    )


def refusal_of(found: Lineups, match: Match) -> str:
    """Returns why this reading will not be kept; empty if it will."""
    try:
        snapshot_type_at(found.captured_at, kickoff=found.kickoff or match.start_time, status=Status(match.status))
    except PointInTimeError as error:
        return str(error)
    return ""


def store(found: Lineups, *, ref_id: int, now: datetime) -> LineupResult:
    """Writes new line-ups and plans the next read. A reading that comes too late changes only that plan."""
    ref = ingest.lock_ref(ref_id)
    match, kickoff = ref.match, found.kickoff or ref.match.start_time
    try:
        kind = snapshot_type_at(found.captured_at, kickoff=kickoff, status=Status(match.status))
    except PointInTimeError as error:
        _plan_next_read(ref, found.captured_at, now)
        return LineupResult(None, refusal=str(error))
    common = {"payload_schema": found.payload_schema, "kickoff": kickoff or now, "captured_at": found.captured_at}
    changed = []
    for side in found.lineups:
        if ref.is_crossed:
            side = side.model_copy(update={"side": OTHER_SIDE[side.side]})  # noqa: PLW2901 - as the match names it
        if _write(ref, kind, side, common, now):
            changed.append(side.side)
    _plan_next_read(ref, found.captured_at, now)
    return LineupResult(kind, tuple(changed))


def _plan_next_read(ref: MatchRef, read_at: datetime, now: datetime) -> None:
    """Plans by the start of the match, as the scheduler does: by a later one of this source it would never end."""
    start, at = ref.match.start_time, None
    if start is not None and ref.match.status == Status.UPCOMING:
        before = Lineup.objects.filter(
            match_id=ref.match_id, source_id=ref.source_id, snapshot_type=SnapshotType.PRE_MATCH
        )
        is_final = before.filter(is_confirmed=True, xi_missing=False).count() == len(OTHER_SIDE)
        at = next_lineup_read(start, now, is_final=is_final, window=LINEUP_WINDOW)
    MatchRef.objects.filter(pk=ref.pk).update(lineups_at=at, lineups_read_at=read_at)


def _write(ref: MatchRef, kind: SnapshotType, side: payloads.Lineup, common: dict[str, Any], now: datetime) -> bool:
    """Writes one side, unless it is equal to the stored one or lost its eleven or confirmation; returns if changed."""
    key = {"match_id": ref.match_id, "source_id": ref.source_id, "side": side.side, "snapshot_type": kind}
    row = Lineup.objects.filter(**key).first()
    checksum = checksum_of(side.model_dump(mode="json"))
    is_same = row is not None and row.checksum == checksum
    if row is not None:
        is_worse = (side.is_xi_missing and not row.xi_missing) or (row.is_confirmed and not side.is_confirmed)
        if is_worse or (is_same and row.kickoff == common["kickoff"]):
            return False
    values: dict[str, Any] = {
        "formation": side.formation,
        "is_confirmed": side.is_confirmed,
        "xi_missing": side.is_xi_missing,
        "checksum": checksum,
        **common,
    }
    if row is None:
        row = Lineup.objects.create(**key, **values, created_at=now)
    else:
        Lineup.objects.filter(pk=row.pk).update(**values)
    if not is_same:
        _write_players(row, side.players)
    return not is_same


def _write_players(row: Lineup, players: Sequence[payloads.LineupPlayer]) -> None:
    places = {player.player_id: (place, player) for place, player in reversed(list(enumerate(players, start=1)))}
    LineupPlayer.objects.filter(lineup=row).exclude(player_id_ext__in=list(places)).delete()  # the first mention counts
    LineupPlayer.objects.bulk_create(
        [
            LineupPlayer(
                lineup=row, player_id_ext=key, place=place, **{name: getattr(player, name) for name in PLAYER_COLUMNS}
            )
            for key, (place, player) in places.items()
        ],
        update_conflicts=True,
        unique_fields=("lineup", "player_id_ext"),
        update_fields=("place", *PLAYER_COLUMNS),
    )


def store_figures(found: Figures, *, ref_id: int) -> int:
    """Writes the figures of every player; returns how many rows have changed. An empty list changes nothing."""
    ref = ingest.lock_ref(ref_id)
    if not found.figures:
        return 0
    known = {
        (row.innings, row.role, row.player_id_ext): row
        for row in PlayerFigure.objects.filter(match_id=ref.match_id, source_id=ref.source_id)
    }
    listed = {(one.innings or 0, one.role, one.player_id): (place, one) for place, one in enumerate(found.figures)}
    gone = [row.pk for key, row in known.items() if key not in listed]
    PlayerFigure.objects.filter(pk__in=gone).delete()
    rows = [
        PlayerFigure(
            match_id=ref.match_id,
            source_id=ref.source_id,
            side=OTHER_SIDE[one.side] if ref.is_crossed else one.side,
            role=one.role,
            innings=one.innings or 0,
            place=place,
            player_id_ext=one.player_id,
            name=one.name,
            values=one.values,
            captured_at=found.captured_at,
        )
        for key, (place, one) in listed.items()
        if (row := known.get(key)) is None or (row.name, row.place, row.values) != (one.name, place, one.values)
    ]
    PlayerFigure.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=("match", "source", "innings", "role", "player_id_ext"),
        update_fields=("side", "place", "name", "values", "captured_at"),
    )
    return len(rows) + len(gone)
