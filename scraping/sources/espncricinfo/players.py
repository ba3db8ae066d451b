"""Line-ups and player figures from the full scorecard."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from scraping.errors import SchemaBreak
from scraping.payloads import STARTERS, Lineup, LineupPlayer, PlayerFigure, Side
from scraping.sources import broken_parts, parsing
from scraping.sources.cricket import OTHER_SIDE, overs_text
from scraping.sources.espncricinfo import schemas
from scraping.sources.espncricinfo.deliveries import PlayedInnings
from scraping.sources.espncricinfo.match_state import side_in, squads_in
from scraping.sources.parsing import note_unrecognized

_PLAYING = "PLAYING"
_SUBSTITUTE = re.compile(r"\bsub|replac|\bimpact|concussion", re.IGNORECASE)
_ROLES = frozenset({"", "P", "C", "WK", "CWK", "VC"})


def lineups_of(data: Mapping[str, Any], match: schemas.Match, url: str) -> tuple[Lineup, ...]:
    found: dict[Side, Lineup] = {}
    for squad in squads_in(data, schema=schemas.SCORECARD, url=url):
        is_confirmed = squad.type == _PLAYING
        if not is_confirmed:
            note_unrecognized("content.matchPlayers.teamPlayers.type", squad.type)
        unique = {one.player.object_id: one for one in squad.players or ()}
        playing = [key for key, one in unique.items() if is_confirmed and not one.is_withdrawn]
        playing.sort(key=lambda key: bool(_SUBSTITUTE.search(unique[key].note or "")))
        starters = frozenset(playing[:STARTERS])  # a substitute comes after the eleven, or has a note
        players = tuple(_player(one, is_starter=key in starters) for key, one in unique.items())
        side = side_in(match, squad.team)
        if side is None or not players:
            broken_parts.note("content.matchPlayers.teamPlayers[]", "players of one of the match's two teams")
            continue
        found[side] = Lineup(side=side, is_confirmed=is_confirmed, players=players)
    return tuple(found.values())


def _player(one: schemas.SquadPlayer, *, is_starter: bool) -> LineupPlayer:
    role = parsing.text(one.role, 10).upper()
    if role not in _ROLES:
        note_unrecognized("playerRoleType", role)
    kind = next(iter(one.player.playing_roles or ()), "")
    return LineupPlayer(
        player_id=str(one.player.object_id),
        name=parsing.text(one.player.long_name, 120),
        position="WK" if role.endswith("WK") else parsing.text(kind, 20),
        is_starter=is_starter,
        is_captain=role.startswith("C"),
    )


def figures_of(match: schemas.Match, innings: PlayedInnings) -> tuple[PlayerFigure, ...]:
    """Returns the figures of all innings; raises SchemaBreak where none has any."""
    listed = {number: one for number, one in innings.by_number.items() if (one.batsmen, one.bowlers) != (None, None)}
    if innings.by_number and not listed:
        raise SchemaBreak(f"{schemas.SCORECARD}: content.innings[] have no batters and no bowlers")
    found: list[PlayerFigure] = []
    for number, inning in innings.by_number.items():
        side = side_in(match, inning.team)
        if side is None or number not in listed:
            broken_parts.note("content.innings[]", "batters and bowlers of one of the match's two teams")
            continue
        found += _figures(number, inning, side)
    return tuple(found)


def _figures(number: int, inning: schemas.Inning, batting: Side) -> Iterator[PlayerFigure]:
    for one in inning.batsmen or ():
        if one.runs is None:
            continue  # did not bat
        how = parsing.plain(one.dismissal.long or one.dismissal.short, 200) if one.dismissal else None
        batted = {
            "runs": one.runs, "balls": one.balls, "fours": one.fours, "sixes": one.sixes, "minutes": one.minutes,
            "is_out": one.is_out, "how_out": how,
        }  # fmt: skip
        yield _figure(one.player, batting, "batting", number, batted)
    for bowler in inning.bowlers or ():
        bowled = {
            "overs": None if bowler.overs is None else overs_text(bowler.overs, inning.per_over),
            "balls": bowler.balls, "maidens": bowler.maidens,
            "runs": bowler.conceded, "wickets": bowler.wickets, "wides": bowler.wides, "no_balls": bowler.no_balls,
            "dots": bowler.dots,
        }  # fmt: skip
        yield _figure(bowler.player, OTHER_SIDE[batting], "bowling", number, bowled)


def _figure(
    player: schemas.Person, side: Side, role: Literal["batting", "bowling"], number: int, values: Mapping[str, Any]
) -> PlayerFigure:
    return PlayerFigure(
        side=side,
        role=role,
        innings=number,
        player_id=str(player.object_id),
        name=parsing.text(player.long_name, 120),
        values={name: value for name, value in values.items() if value is not None},
    )
