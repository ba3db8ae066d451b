"""Line-ups and player figures from the full scorecard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scraping.errors import SchemaBreak
from scraping.payloads import Figures, Integrity, Lineup, LineupPlayer, Lineups, PlayerFigure, Side
from scraping.sources import parsing
from scraping.sources.base import Reading
from scraping.sources.espncricinfo import schemas
from scraping.sources.espncricinfo.match_state import innings_of, overs_text, side_of
from scraping.sources.espncricinfo.site import data_of, match_of
from scraping.sources.parsing import collecting_unrecognized, note_unrecognized, validated

SOURCE = "espncricinfo"
DOCUMENT = "scorecard"
_PLAYING = "PLAYING"
_ROLES = frozenset({"", "P", "C", "WK", "CWK", "VC"})


def lineups_of(reading: Reading) -> Lineups:
    if reading.document(DOCUMENT) is None:
        return _lineups(reading)
    with collecting_unrecognized() as unrecognized:
        data = data_of(reading.document(DOCUMENT), reading.ref.url)
        match = match_of(data, reading, schema=schemas.SCORECARD)
        found = tuple(_lineup(match, squad) for squad in _squads(data, reading.ref.url))
    found = tuple({one.side: one for one in found}.values())
    missing = tuple(f"lineups.{one.side}.starters" for one in found if one.is_xi_missing)
    integrity = Integrity(missing_fields=missing, null_field_rate=round(len(missing) / 2, 4))
    return _lineups(reading).model_copy(
        update={
            "kickoff": parsing.iso_moment(match.start_time),
            "lineups": found,
            "integrity": integrity,
            "unknown": tuple(unrecognized),
        }
    )


def figures_of(reading: Reading) -> Figures:
    with collecting_unrecognized() as unrecognized:
        data = data_of(reading.document(DOCUMENT), reading.ref.url)
        match = match_of(data, reading, schema=schemas.SCORECARD)
        numbers = innings_of(data, schema=schemas.SCORECARD, url=reading.ref.url)
        found = [
            figure
            for number, inning in numbers.numbered
            for figure in _figures(number, inning, side_of(match, inning.team))
        ]
    return Figures(
        source=SOURCE,
        payload_schema=schemas.SCORECARD,
        captured_at=reading.captured_at,
        source_event_id=reading.ref.source_event_id,
        figures=tuple(found),
        unknown=tuple(unrecognized),
    )


def _lineups(reading: Reading) -> Lineups:
    return Lineups(
        source=SOURCE,
        payload_schema=schemas.SCORECARD,
        captured_at=reading.captured_at,
        source_event_id=reading.ref.source_event_id,
    )


def _squads(data: Mapping[str, Any], url: str) -> list[schemas.Squad]:
    page = validated(schemas.SquadsPage, {"content": data.get("content")}, schema=schemas.SCORECARD, url=url)
    players = page.content.match_players if page.content else None
    return (players.squads if players else None) or []


def _lineup(match: schemas.Match, squad: schemas.Squad) -> Lineup:
    is_confirmed = squad.type == _PLAYING
    if not is_confirmed:
        note_unrecognized("content.matchPlayers.teamPlayers.type", squad.type)
    unique = {one.player.object_id: one for one in squad.players}
    return Lineup(
        side=side_of(match, squad.team),
        is_confirmed=is_confirmed,
        players=tuple(_player(one, is_playing=is_confirmed) for one in unique.values()),
    )


def _player(one: schemas.SquadPlayer, *, is_playing: bool) -> LineupPlayer:
    role = parsing.text(one.role, 10).upper()
    if role not in _ROLES:
        note_unrecognized("playerRoleType", role)
    kind = next(iter(one.player.playing_roles or ()), "")
    return LineupPlayer(
        player_id=str(one.player.object_id),
        name=parsing.text(one.player.long_name, 120),
        position="WK" if role.endswith("WK") else parsing.text(kind, 20),
        is_starter=is_playing and not one.is_withdrawn,
        is_captain=role.startswith("C"),
    )


def _figures(number: int, inning: schemas.Inning, batting: Side) -> Iterator[PlayerFigure]:
    bowling: Side = "team_b" if batting == "team_a" else "team_a"
    if inning.batsmen is None and inning.bowlers is None:
        raise SchemaBreak(f"{schemas.SCORECARD}: innings {number} has no batters and no bowlers")
    for batter in inning.batsmen or ():
        if batter.runs is not None:  # the others did not bat
            yield _figure(batter.player, batting, "batting", number, _batted(batter))
    for bowler in inning.bowlers or ():
        yield _figure(bowler.player, bowling, "bowling", number, _bowled(bowler))


def _figure(player: schemas.Person, side: Side, role: Any, number: int, values: dict[str, Any]) -> PlayerFigure:
    return PlayerFigure(
        side=side,
        role=role,
        innings=number,
        player_id=str(player.object_id),
        name=parsing.text(player.long_name, 120),
        values={name: value for name, value in values.items() if value is not None},
    )


def _batted(one: schemas.Batsman) -> dict[str, Any]:
    said = one.dismissal
    return {
        "runs": one.runs, "balls": one.balls, "fours": one.fours, "sixes": one.sixes, "minutes": one.minutes,
        "is_out": one.is_out, "how_out": parsing.plain(said.long or said.short, 200) if said else None,
    }  # fmt: skip


def _bowled(one: schemas.Bowler) -> dict[str, Any]:
    return {
        "overs": overs_text(one.overs), "balls": one.balls, "maidens": one.maidens, "runs": one.conceded,
        "wickets": one.wickets, "wides": one.wides, "no_balls": one.no_balls, "dots": one.dots,
    }  # fmt: skip
