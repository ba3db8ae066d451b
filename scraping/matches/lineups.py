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
from scraping.models import Lineup, LineupPlayer, Match, MatchRef, PlayerFigure, SnapshotType
from scraping.payloads import Figures, Lineups, Status, checksum_of
from scraping.policies.lineup_schedule import LINEUP_WINDOW, next_lineup_read

OTHER_SIDE: Mapping[str, payloads.Side] = {"team_a": "team_b", "team_b": "team_a"}
PLAYER_COLUMNS = ("place", "name", "position", "shirt", "is_starter", "is_captain", "rating", "minutes")


class PointInTimeError(Exception):
    """The reading is not from before the start, and not from after the end."""


@dataclass(frozen=True)
class LineupResult:
    """The effect of a reading of line-ups."""

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
    ref = _locked(ref_id)
    match, kickoff = ref.match, found.kickoff or ref.match.start_time
    try:
        kind = snapshot_type_at(found.captured_at, kickoff=kickoff, status=Status(match.status))
    except PointInTimeError as error:
        _plan(ref, _next_read(ref, now), found.captured_at)
        return LineupResult(None, refusal=str(error))
    capture = _Capture(ref, kind, found.payload_schema, kickoff or now, found.captured_at)
    changed = [side.side for side in _oriented(ref, found.lineups) if _write(capture, side, now)]
    _plan(ref, _next_read(ref, now), found.captured_at)
    return LineupResult(kind, tuple(changed))


def _next_read(ref: MatchRef, now: datetime) -> datetime | None:
    """Plans by the start of the match, as the scheduler does: by a later one of this source it would never end."""
    start = ref.match.start_time
    if start is None or ref.match.status != Status.UPCOMING:
        return None
    return next_lineup_read(start, now, is_final=has_final_lineups(ref), window=LINEUP_WINDOW)


def has_final_lineups(ref: MatchRef) -> bool:
    """Returns whether both elevens are stored from before the start, and confirmed by the source."""
    final = Lineup.objects.filter(match_id=ref.match_id, source_id=ref.source_id, is_confirmed=True, xi_missing=False)
    return final.filter(snapshot_type=SnapshotType.PRE_MATCH).count() == len(OTHER_SIDE)


def _locked(ref_id: int) -> MatchRef:
    """Returns the ref with its match, locked in the same order as in ingest."""
    match_id = MatchRef.objects.values_list("match_id", flat=True).get(pk=ref_id)
    match = Match.objects.select_for_update().defer("payload", "provenance").get(pk=match_id)
    ref = MatchRef.objects.select_related("source").defer("payload").get(pk=ref_id)
    ref.match = match
    return ref


def _plan(ref: MatchRef, at: datetime | None, read_at: datetime) -> None:
    MatchRef.objects.filter(pk=ref.pk).update(lineups_at=at, lineups_read_at=read_at)


def _oriented(ref: MatchRef, found: Sequence[payloads.Lineup]) -> list[payloads.Lineup]:
    """Returns the line-ups with the sides in the order of the match."""
    if not ref.is_crossed:
        return list(found)
    return [side.model_copy(update={"side": OTHER_SIDE[side.side]}) for side in found]


@dataclass(frozen=True)
class _Capture:
    """The values that both sides of a reading have in common."""

    ref: MatchRef
    kind: SnapshotType
    payload_schema: str
    kickoff: datetime
    captured_at: datetime


def _write(capture: _Capture, side: payloads.Lineup, now: datetime) -> bool:
    """Writes one side, unless it is equal to the stored one or has less; returns whether it changed."""
    ref = capture.ref
    key = {"match_id": ref.match_id, "source_id": ref.source_id, "side": side.side, "snapshot_type": capture.kind}
    row = Lineup.objects.filter(**key).first()
    checksum = _checksum(side)
    if row is not None and (_is_worse(row, side) or (row.checksum == checksum and row.kickoff == capture.kickoff)):
        return False
    values: dict[str, Any] = {
        "formation": side.formation,
        "is_confirmed": side.is_confirmed,
        "xi_missing": side.is_xi_missing,
        "payload_schema": capture.payload_schema,
        "checksum": checksum,
        "kickoff": capture.kickoff,
        "captured_at": capture.captured_at,
    }
    if row is None:
        row = Lineup.objects.create(**key, **values, created_at=now)
        is_same = False
    else:
        is_same = row.checksum == checksum
        Lineup.objects.filter(pk=row.pk).update(**values)
    if not is_same:
        _write_players(row, side.players)
    return not is_same


def _is_worse(row: Lineup, side: payloads.Lineup) -> bool:
    """Returns whether a source has lost an eleven or a confirmation that it had before."""
    return (side.is_xi_missing and not row.xi_missing) or (row.is_confirmed and not side.is_confirmed)


def _write_players(row: Lineup, players: Sequence[payloads.LineupPlayer]) -> None:
    unique = {player.player_id: player for player in reversed(players)}  # the first mention counts
    LineupPlayer.objects.filter(lineup=row).exclude(player_id_ext__in=list(unique)).delete()
    places = {player.player_id: place for place, player in reversed(list(enumerate(players, start=1)))}
    LineupPlayer.objects.bulk_create(
        [
            LineupPlayer(
                lineup=row,
                player_id_ext=key,
                place=places[key],
                **{name: getattr(player, name) for name in PLAYER_COLUMNS if name != "place"},
            )
            for key, player in unique.items()
        ],
        update_conflicts=True,
        unique_fields=("lineup", "player_id_ext"),
        update_fields=PLAYER_COLUMNS,
    )


def _checksum(side: payloads.Lineup) -> str:
    return checksum_of(side.model_dump(mode="json"))


FigureKey = tuple[int, str, str]


def store_figures(found: Figures, *, ref_id: int) -> int:
    """Writes the figures of every player; returns how many rows have changed. An empty list changes nothing."""
    ref = _locked(ref_id)
    if not found.figures:
        return 0
    known: dict[FigureKey, PlayerFigure] = {
        (row.innings, row.role, row.player_id_ext): row
        for row in PlayerFigure.objects.filter(match_id=ref.match_id, source_id=ref.source_id)
    }
    listed = {_key_of(one): (place, one) for place, one in enumerate(found.figures)}
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
        if not _is_known(known.get(key), one, place)
    ]
    PlayerFigure.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=("match", "source", "innings", "role", "player_id_ext"),
        update_fields=("side", "place", "name", "values", "captured_at"),
    )
    return len(rows) + len(gone)


def _key_of(figure: payloads.PlayerFigure) -> FigureKey:
    return figure.innings or 0, figure.role, figure.player_id


def _is_known(row: PlayerFigure | None, figure: payloads.PlayerFigure, place: int) -> bool:
    return row is not None and (row.name, row.place, row.values) == (figure.name, place, figure.values)
