"""Who plays (getIV4): squads before the toss, the eleven after it, players by key with a number for their role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import STARTERS, Lineup, LineupPlayer
from scraping.sources import parsing
from scraping.sources.crex import schemas
from scraping.sources.crex.card import name_of
from scraping.sources.crex.innings import SIDES
from scraping.sources.crex.schemas import SquadsAnswer

ROLES = {0: "WK", 1: "BAT", 2: "BOWL", 3: "AR"}


def lineups_of(answer: Any, order: tuple[str, ...], people: Mapping[str, str]) -> tuple[Lineup, ...]:
    """Both sides, in the match's order. PayloadRejected where they are not the match's."""
    squads = parsing.validated(SquadsAnswer, answer, schema=schemas.SQUADS)
    teams = tuple(squads.t.split("-"))
    if order and set(order) != set(teams):
        raise PayloadRejected(f"the squads are of another match: {'/'.join(teams)} instead of {'/'.join(order)}")
    leaders = _leaders(squads.x)
    found = {}
    for place, team in enumerate(teams):
        playing = _players(squads.tp, place)
        led = leaders[2 * place], leaders[2 * place + 1]
        chosen = [_player(line, led, people, is_starter=True) for line in playing]
        named = {player.player_id for player in chosen}
        others = [_player(line, led, people, is_starter=False) for line in _players(squads.tb, place)]
        players = (*chosen, *(player for player in others if player.player_id not in named))
        found[team] = players, len(chosen) >= STARTERS
    return tuple(
        Lineup(side=side, is_confirmed=found[team][1], players=found[team][0])
        for side, team in zip(SIDES, order or teams, strict=True)
        if found[team][0]
    )


def _players(text: str, place: int) -> list[str]:
    sides = text.split("/")
    return [line for line in sides[place].split("-") if line] if place < len(sides) else []


def _leaders(text: str) -> list[str]:
    """Captain and keeper of the first team, then of the second."""
    return [*text.split("/"), "", "", "", ""][:4]


def _player(line: str, led: tuple[str, str], people: Mapping[str, str], *, is_starter: bool) -> LineupPlayer:
    captain, keeper = led
    key, *numbers = line.split(".")
    if not key or len(numbers) < 2:
        raise SchemaBreak(f"{schemas.SQUADS}: tp (not KEY.matches.role...: {line[:60]!r})")
    role = parsing.integer(numbers[1])
    if role not in ROLES:
        parsing.note_unrecognized("tp.role", numbers[1])
    return LineupPlayer(
        player_id=key[:40],
        name=name_of(key, people),
        position="WK" if key == keeper else ROLES.get(role, "") if role is not None else "",
        is_starter=is_starter,
        is_captain=key == captain,
    )
