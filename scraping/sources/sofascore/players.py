"""Line-ups of both sides, the ratings of footballers, and the batting and bowling figures of cricketers."""

from collections.abc import Iterator

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Lineup, LineupPlayer, PlayerFigure, Side
from scraping.sources import parsing
from scraping.sources.base import Reading
from scraping.sources.cricket import OTHER_SIDE, overs_text
from scraping.sources.parsing import note_unrecognized, validated
from scraping.sources.sofascore import schemas, site
from scraping.sources.sofascore.schemas import BattingLine, BowlingLine, Brief, InningsRow, LineupRow, LineupsResponse

_POSITIONS = frozenset({"G", "D", "M", "F", "B", "BM", "AR", "WK"})  # football, then cricket; WK is presumed
_SIDES = ("home", "away")
Values = dict[str, str | int | float | bool | None]


def listed_event_in(reading: Reading) -> Brief:
    """Returns the event of a reading, empty without one; raises PayloadRejected for another match's."""
    document = site.usable(reading.document("event"))
    data = parsing.json_object(document).get("event") if document else None
    event = Brief.model_validate(parsing.mapping(data))
    parsing.refuse_another("the event is", event.id, reading.ref.source_event_id, reading.ref.url)
    return event


def rows_in(reading: Reading, event: Brief) -> tuple[dict[Side, schemas.LineupSide], bool]:
    """Returns the sides of a line-up response, none without one, and whether they are confirmed.

    Raises PayloadRejected for a side whose players all belong to one other team. The players of a national side belong
    to their clubs, so several teams in one side prove nothing.
    """
    document = site.usable(reading.document("lineups"))
    if document is None:
        return {}, False
    body = parsing.json_object(document)
    response = validated(LineupsResponse, body, schema=schemas.LINEUPS, url=document.url, needed=_SIDES)
    if response.home is None and response.away is None:
        raise SchemaBreak(f"{schemas.LINEUPS}: home, away (field required)", url=document.url, selector="home, away")
    for name, side, team in (("home", response.home, event.homeTeam), ("away", response.away, event.awayTeam)):
        found = {row.teamId for row in side.players if row.teamId} if side else set()
        if team.id is not None and len(found) == 1 and team.id not in found and team.national is not True:
            message = f"the {name} line-up is of team {found.pop()} and not of {team.id}"
            raise PayloadRejected(message, url=reading.ref.url)
    stated: dict[Side, schemas.LineupSide | None] = {"team_a": response.home, "team_b": response.away}
    return {name: side for name, side in stated.items() if side is not None}, response.confirmed is True


def lineups_of(reading: Reading, event: Brief) -> tuple[Lineup, ...]:
    """Returns each line-up for the side under which the response lists it: `teamId` may be a player's club."""
    sides, is_confirmed = rows_in(reading, event)
    found = []
    for name, side in sides.items():
        players = {row.player_id: _player(row) for row in reversed(side.players)}
        listed = tuple(reversed(players.values()))
        formation = (side.formation or "")[:20]
        found.append(Lineup(side=name, formation=formation, is_confirmed=is_confirmed, players=listed))
    return tuple(found)


def _player(row: LineupRow) -> LineupPlayer:
    if row.position and row.position not in _POSITIONS:
        note_unrecognized("lineups.players[].position", row.position)
    shirt = row.jerseyNumber if row.jerseyNumber not in (None, "") else row.shirtNumber
    return LineupPlayer(
        player_id=str(row.player_id),
        name=row.name[:120],
        position=(row.position or "")[:20],
        shirt=parsing.text(shirt, 6),
        is_starter=not row.substitute,
        is_captain=row.captain is True,
        rating=row.rating,
        minutes=row.minutes,
    )


def ratings_of(reading: Reading) -> Iterator[PlayerFigure]:
    sides, _ = rows_in(reading, listed_event_in(reading))
    for side, row in ((name, row) for name, listed in sides.items() for row in listed.players):
        values: Values = {"rating": row.rating, "minutes": row.minutes, "goals": row.goals, "assists": row.assists}
        stated = {name: value for name, value in values.items() if value is not None}
        if stated:
            identity, name = str(row.player_id), row.name[:120]
            yield PlayerFigure(side=side, role="rating", player_id=identity, name=name, values=stated)


def innings_figures(row: InningsRow, batting: Side | None, per_over: int = 6) -> Iterator[PlayerFigure]:
    if batting is None:
        raise SchemaBreak(f"{schemas.INNINGS}: innings[].battingTeam.id ({row.battingTeam.id} is no team of the match)")
    for line in row.battingLine:
        how = (line.wicketTypeName or "").strip()
        is_out = how.lower() != "not out" if how else None
        yield from _figure(row, batting, line, {
            "runs": line.score, "balls": line.balls, "fours": line.s4, "sixes": line.s6,
            "is_out": is_out, "how_out": how or None,
        })  # fmt: skip
    for bowled in row.bowlingLine:
        overs = None if bowled.over is None else overs_text(bowled.over, per_over)
        yield from _figure(row, OTHER_SIDE[batting], bowled, {
            "overs": overs, "maidens": bowled.maiden, "runs": bowled.run, "wickets": bowled.wicket,
        })  # fmt: skip


def _figure(row: InningsRow, side: Side, line: BattingLine | BowlingLine, values: Values) -> Iterator[PlayerFigure]:
    name = (line.playerName or (line.player.name if line.player else "") or "").strip()
    number = line.player.id if line.player else None
    if name and number is not None:
        yield PlayerFigure(
            side=side,
            role="batting" if isinstance(line, BattingLine) else "bowling",
            innings=row.number,
            player_id=str(number),
            name=name[:120],
            values={field: value for field, value in values.items() if value is not None},
        )
