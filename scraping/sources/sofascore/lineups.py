"""Line-ups of both sides and, in football, the ratings that come during and after the match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scraping.errors import PayloadRejected
from scraping.payloads import Figures, Integrity, Lineup, LineupPlayer, Lineups, PlayerFigure, Side
from scraping.sources import parsing
from scraping.sources.base import Reading, RefInfo, Request
from scraping.sources.parsing import collecting_unrecognized, note_unrecognized, validated
from scraping.sources.sofascore import schemas
from scraping.sources.sofascore.schemas import LineupRow, LineupSide, LineupsResponse

POSITIONS = frozenset({"G", "D", "M", "F", "B", "BM", "AR", "WK"})  # football, then cricket; WK is presumed
SIDES: tuple[tuple[Side, str, str], ...] = (("team_a", "home", "homeTeam"), ("team_b", "away", "awayTeam"))
_RATING_VALUES = (("rating", "rating"), ("minutes", "minutesPlayed"), ("goals", "goals"), ("assists", "goalAssist"))


def requests(ref: RefInfo, base_url: str) -> tuple[Request, ...]:
    """Requests the line-ups, and the event, which has the start time."""
    event = f"{base_url.rstrip('/')}/api/v1/event/{ref.source_event_id}"
    headers = {"accept": "*/*", "referer": ref.url.partition("#")[0] or base_url}
    return Request("lineups", f"{event}/lineups", headers=headers), Request("event", event, headers=headers)


def parse_lineups(reading: Reading, source: str) -> Lineups:
    """Returns both sides, or none where the source has none yet and returns 404."""
    with collecting_unrecognized() as unknown:
        response, event = response_in(reading), event_in(reading)
        lineups = [] if response is None else [_lineup(side, getattr(response, at), response) for side, at, _ in SIDES]
        return Lineups(
            source=source,
            payload_schema=schemas.LINEUPS,
            captured_at=reading.captured_at,
            source_event_id=reading.ref.source_event_id,
            kickoff=parsing.moment(event.get("startTimestamp")),
            lineups=tuple(lineups),
            integrity=_integrity(lineups),
            unknown=tuple(unknown),
        )


def response_in(reading: Reading) -> LineupsResponse | None:
    """Returns the line-ups of a reading; raises PayloadRejected where they are another match's."""
    document = reading.document("lineups")
    if document is None or document.status >= 400:
        return None
    response = validated(LineupsResponse, parsing.json_object(document), schema=schemas.LINEUPS, url=document.url)
    _refuse_another_match(response, event_in(reading), reading)
    return response


def event_in(reading: Reading) -> Mapping[str, Any]:
    document = reading.document("event")
    if document is None or document.status >= 400:
        return {}
    event = parsing.mapping(parsing.json_object(document).get("event"))
    stated, wanted = parsing.text(event.get("id"), 40), reading.ref.source_event_id
    if stated and stated != wanted:
        raise PayloadRejected(f"the event is about another match: {stated} instead of {wanted}", url=reading.ref.url)
    return event


def _refuse_another_match(response: LineupsResponse, event: Mapping[str, Any], reading: Reading) -> None:
    """Raises PayloadRejected for a side whose players all belong to one other team.

    The players of a national side belong to their clubs, so several teams in one side prove nothing.
    """
    for _, at, team in SIDES:
        side: LineupSide = getattr(response, at)
        stated = parsing.mapping(event.get(team))
        found, wanted = {row.teamId for row in side.players if row.teamId}, parsing.integer(stated.get("id"))
        if wanted is not None and len(found) == 1 and wanted not in found and stated.get("national") is not True:
            raise PayloadRejected(f"the {at} line-up is of team {found.pop()} and not of {wanted}", url=reading.ref.url)


def _lineup(name: Side, side: LineupSide, response: LineupsResponse) -> Lineup:
    """Returns the line-up of the side under which the response lists it: `teamId` may be a player's club."""
    players = {row.player.id: _player(row) for row in reversed(side.players)}
    return Lineup(
        side=name,
        formation=(side.formation or "")[:20],
        is_confirmed=response.confirmed,
        players=tuple(reversed(players.values())),
    )


def _player(row: LineupRow) -> LineupPlayer:
    if row.position and row.position not in POSITIONS:
        note_unrecognized("lineups.players[].position", row.position)
    statistics = row.statistics
    shirt = row.jerseyNumber if row.jerseyNumber not in (None, "") else row.shirtNumber
    return LineupPlayer(
        player_id=str(row.player.id),
        name=row.player.name[:120],
        position=(row.position or "")[:20],
        shirt=parsing.text(shirt, 6),
        is_starter=not row.substitute,
        is_captain=row.captain is True,
        rating=statistics.rating if statistics else None,
        minutes=statistics.minutesPlayed if statistics else None,
    )


def _integrity(lineups: list[Lineup]) -> Integrity:
    missing = [f"{lineup.side}.xi" for lineup in lineups if lineup.is_xi_missing]
    return Integrity(missing_fields=tuple(missing), null_field_rate=len(missing) / 2)


def parse_ratings(reading: Reading, source: str) -> Figures:
    with collecting_unrecognized() as unknown:
        response = response_in(reading)
        rows = [] if response is None else [(s, row) for s, at, _ in SIDES for row in getattr(response, at).players]
        figures = [
            PlayerFigure(side=s, role="rating", player_id=str(row.player.id), name=row.player.name[:120], values=values)
            for s, row in rows
            if (values := _rating_values(row))
        ]
        return Figures(
            source=source,
            payload_schema=schemas.LINEUPS,
            captured_at=reading.captured_at,
            source_event_id=reading.ref.source_event_id,
            figures=tuple(figures),
            unknown=tuple(unknown),
        )


def _rating_values(row: LineupRow) -> dict[str, str | int | float | bool | None]:
    stated = row.statistics
    if stated is None:
        return {}
    return {ours: value for ours, theirs in _RATING_VALUES if (value := getattr(stated, theirs)) is not None}
