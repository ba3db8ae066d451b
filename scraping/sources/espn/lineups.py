"""Line-ups from the rosters of the summary."""

from __future__ import annotations

from scraping.errors import PayloadRejected
from scraping.payloads import STARTERS, Lineup, LineupPlayer, Lineups
from scraping.sources import parsing
from scraping.sources.base import Reading
from scraping.sources.espn import site
from scraping.sources.espn.schemas import Roster, RosterEntry, Rosters, is_true
from scraping.sources.espn.summary import SIDES
from scraping.sources.parsing import collecting_unrecognized, validated

SCHEMA = "espn.rosters.v1"


def lineups_of(reading: Reading) -> Lineups:
    """Returns the line-ups; a side is confirmed when it has eleven starters, because the source has no such flag."""
    found: tuple[Lineup, ...] = ()
    kickoff = None
    with collecting_unrecognized() as unknown:
        if reading.document("summary") is not None or reading.document("page") is not None:
            data, url = site.body_of(reading, "summary")
            response = validated(Rosters, data, schema=SCHEMA, url=url)
            if response.header.id != reading.ref.source_event_id:
                wanted = reading.ref.source_event_id
                raise PayloadRejected(f"the rosters are about another match: {response.header.id} instead of {wanted}")
            competition = response.header.competitions[0]
            kickoff = parsing.iso_moment(competition.date)
            sides = {one.team.id: SIDES.get(one.home_away, "") for one in competition.competitors}
            found = tuple(_lineup(roster, sides) for roster in response.rosters if roster.roster)
    return Lineups(
        source="espn",
        payload_schema=SCHEMA,
        captured_at=reading.captured_at,
        source_event_id=reading.ref.source_event_id,
        kickoff=kickoff,
        lineups=found,
        unknown=tuple(unknown),
    )


def _lineup(roster: Roster, sides: dict[str, str]) -> Lineup:
    side = sides.get(roster.team.id)
    if not side:
        raise PayloadRejected(f"the rosters are about another match: team {roster.team.id[:40]}")
    players = {entry.athlete.id: _player(entry) for entry in roster.roster}
    return Lineup(
        side="team_a" if side == "team_a" else "team_b",
        is_confirmed=sum(player.is_starter for player in players.values()) == STARTERS,
        players=tuple(players.values()),
    )


def _player(entry: RosterEntry) -> LineupPlayer:
    position = entry.position
    return LineupPlayer(
        player_id=parsing.text(entry.athlete.id, 40),
        name=parsing.plain(entry.athlete.display_name, 120),
        position=parsing.plain((position.abbreviation or position.name) if position else "", 20),
        shirt=parsing.text(entry.jersey, 6),
        is_starter=is_true(entry.starter),
        is_captain=is_true(entry.captain),
    )
