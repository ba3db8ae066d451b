"""Line-ups and players' figures into rows. Sole writer of both.

Point in time: what is kept as known before the start was read before the start, and nothing read later changes it.
What a source says after the end (ratings, minutes) is a row of its own. The database holds the same rule as a
constraint. Called inside the transaction that finishes the task (`journal.finishing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from scraping import payloads
from scraping.models import Lineup, LineupPlayer, Match, MatchRef, PlayerFigure, SnapshotType
from scraping.payloads import Figures, Lineups, Status, checksum_of
from scraping.policies.lineup_schedule import next_lineup_read

OTHER_SIDE: Mapping[str, payloads.Side] = {"team_a": "team_b", "team_b": "team_a"}
PLAYER_COLUMNS = ("place", "name", "position", "shirt", "is_starter", "is_captain", "rating", "minutes")


class PointInTimeError(Exception):
    """What was read cannot count as known before the start: it was read at or after it."""


@dataclass(frozen=True)
class Stored:
    """What a reading of line-ups did."""

    snapshot_type: SnapshotType | None  # None: it was neither from before the start nor from after the end
    changed_sides: tuple[str, ...] = ()
    refusal: str = ""


def kind_at(captured_at: datetime, *, kickoff: datetime | None, status: Status) -> SnapshotType:
    """Which kind of snapshot a reading made at this time is; PointInTimeError if it is none."""
    if status is Status.COMPLETED:
        return SnapshotType.POST_MATCH
    if kickoff is None:
        raise PointInTimeError("nobody knows when the match starts, so nothing can be shown to be from before it")
    if status is Status.UPCOMING and captured_at < kickoff:
        return SnapshotType.PRE_MATCH
    raise PointInTimeError(
        f"read at {captured_at:%Y-%m-%d %H:%M:%S} UTC, and the match ({status.value}) starts at {kickoff:%H:%M:%S}: "
        "what was known before the start stays as it is, and what is known after the end is read then"
    )


def refusal_of(found: Lineups, match: Match) -> str:
    """Why this reading will not be kept; empty if it will."""
    try:
        kind_at(found.captured_at, kickoff=found.kickoff or match.start_time, status=Status(match.status))
    except PointInTimeError as error:
        return str(error)
    return ""


def store(found: Lineups, *, ref_id: int, now: datetime) -> Stored:
    """Write what is new. A reading that comes too late changes nothing but the time of the next one."""
    ref = _locked(ref_id)
    match, kickoff = ref.match, found.kickoff or ref.match.start_time
    try:
        kind = kind_at(found.captured_at, kickoff=kickoff, status=Status(match.status))
    except PointInTimeError as error:
        _plan(ref, _next_look(ref, now), found.captured_at)
        return Stored(None, refusal=str(error))
    shot = _Shot(ref, kind, found.payload_schema, kickoff or now, found.captured_at)
    changed = [side.side for side in _oriented(ref, found.lineups) if _write(shot, side, now)]
    _plan(ref, _next_look(ref, now), found.captured_at)
    return Stored(kind, tuple(changed))


def _next_look(ref: MatchRef, now: datetime) -> datetime | None:
    """By the start that the match has, as the scheduler does: by another one of this source's it would never rest."""
    start = ref.match.start_time
    if start is None or ref.match.status != Status.UPCOMING:
        return None
    window = timedelta(hours=settings.CONFIG.lineup_window_hours)
    return next_lineup_read(start, now, is_final=is_settled(ref), window=window)


def is_settled(ref: MatchRef) -> bool:
    """Both elevens are known before the start, and the source says that they are final."""
    final = Lineup.objects.filter(match_id=ref.match_id, source_id=ref.source_id, is_confirmed=True, xi_missing=False)
    return final.filter(snapshot_type=SnapshotType.PRE_MATCH).count() == len(OTHER_SIDE)


def _locked(ref_id: int) -> MatchRef:
    """The ref with its match, locked in the order in which ingest locks them."""
    match_id = MatchRef.objects.values_list("match_id", flat=True).get(pk=ref_id)
    match = Match.objects.select_for_update().defer("payload", "provenance").get(pk=match_id)
    ref = MatchRef.objects.select_related("source").defer("payload").get(pk=ref_id)
    ref.match = match
    return ref


def _plan(ref: MatchRef, at: datetime | None, read_at: datetime) -> None:
    MatchRef.objects.filter(pk=ref.pk).update(lineups_at=at, lineups_read_at=read_at)


def _oriented(ref: MatchRef, found: Sequence[payloads.Lineup]) -> list[payloads.Lineup]:
    """The sides as the match has them."""
    if not ref.is_crossed:
        return list(found)
    return [side.model_copy(update={"side": OTHER_SIDE[side.side]}) for side in found]


@dataclass(frozen=True)
class _Shot:
    """What both sides of a reading have in common."""

    ref: MatchRef
    kind: SnapshotType
    payload_schema: str
    kickoff: datetime
    captured_at: datetime


def _write(shot: _Shot, side: payloads.Lineup, now: datetime) -> bool:
    """One side. The same again writes nothing, and neither does less than is known."""
    ref = shot.ref
    key = {"match_id": ref.match_id, "source_id": ref.source_id, "side": side.side, "snapshot_type": shot.kind}
    row = Lineup.objects.filter(**key).first()
    checksum = _checksum(side)
    if row is not None and (_is_worse(row, side) or (row.checksum == checksum and row.kickoff == shot.kickoff)):
        return False
    values: dict[str, Any] = {
        "formation": side.formation,
        "is_confirmed": side.is_confirmed,
        "xi_missing": side.is_xi_missing,
        "payload_schema": shot.payload_schema,
        "checksum": checksum,
        "kickoff": shot.kickoff,
        "captured_at": shot.captured_at,
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
    """A source that has lost an eleven, or takes its word back, tells nothing better than what it told before."""
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
    """Write what every player did, as the source has it now; how many rows are new or differ. None at all: no news."""
    ref = _locked(ref_id)
    if not found.figures:
        return 0
    known: dict[FigureKey, PlayerFigure] = {
        (row.innings, row.role, row.player_id_ext): row
        for row in PlayerFigure.objects.filter(match_id=ref.match_id, source_id=ref.source_id)
    }
    told = {key_of(one): (place, one) for place, one in enumerate(found.figures)}
    gone = [row.pk for key, row in known.items() if key not in told]
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
        for key, (place, one) in told.items()
        if not _is_known(known.get(key), one, place)
    ]
    PlayerFigure.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=("match", "source", "innings", "role", "player_id_ext"),
        update_fields=("side", "place", "name", "values", "captured_at"),
    )
    return len(rows) + len(gone)


def key_of(figure: payloads.PlayerFigure) -> FigureKey:
    return figure.innings or 0, figure.role, figure.player_id


def _is_known(row: PlayerFigure | None, figure: payloads.PlayerFigure, place: int) -> bool:
    return row is not None and (row.name, row.place, row.values) == (figure.name, place, figure.values)
