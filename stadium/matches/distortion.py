"""Distorts the matches of a site: later than other sites, with other team names, and with mistakes.

The script of a match is the ground truth. A site's version of it is a script as well, with the same events at the same
times, so a site renders both in the same way. Mistakes are corrected in the order they were made: the number of
corrected mistakes identifies a version.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pydantic import Field

from stadium.cricket.script import Ball, CricketEvent, CricketScript, InningsPlan, Notice, OverCard
from stadium.football.script import FootballScript
from stadium.matches.teams import Team, other_name, other_short
from stadium.validation import StrictModel

IN_BATTING_ORDER = ("crex", "crexpro", "board")  # sites that list the side that bats first first
_WRONG_RUNS = {0: 1, 1: 2, 2: 1, 3: 2, 4: 6, 6: 4}
Script = CricketScript | FootballScript


class Distortion(StrictModel):
    """The first of a match's sites only applies the delay."""

    delay_seconds: float = Field(0.0, alias="delay", ge=0, le=86_400)  # of wall time
    mistakes: float = Field(0.0, ge=0, le=1)  # share of plain balls that are shown with wrong runs
    # Seconds of wall time after a mistake was shown; None: never.
    corrects_after: float | None = Field(None, ge=0, le=86_400)
    other_names: bool = Field(False, alias="names")
    swaps_sides: bool = Field(False, alias="sides")  # in about half of the matches, at sites without a batting order


UNDISTORTED = Distortion()


def mistake_places(script: Script, distortion: Distortion, seed: str) -> tuple[int, ...]:
    """Returns the places of the events that are shown wrongly. Only plain balls: wickets and extras stay correct."""
    if not distortion.mistakes:
        return ()
    random = Random(f"mistakes:{seed}")
    return tuple(
        place
        for place, event in enumerate(script.events)
        if isinstance(event, Ball)
        and random.random() < distortion.mistakes
        and not (event.wickets or event.extras)
        and event.runs in _WRONG_RUNS
    )


def distort(script: Script, site: str, distortion: Distortion, seed: str, corrected: int) -> Script:
    """Returns the site's version of a script, with the first `corrected` mistakes corrected."""
    if isinstance(script, FootballScript):
        return replace(script, teams=_renamed(script.teams, "FC")) if distortion.other_names else script
    wrong = mistake_places(script, distortion, seed)[corrected:]
    if wrong:
        script = replace(script, events=_with_mistakes(script.events, set(wrong)))
    if distortion.other_names:
        script = _with_other_names(script)
    is_swapping = Random(f"sides:{seed}").random() < 0.5
    if distortion.swaps_sides and is_swapping and site not in IN_BATTING_ORDER:
        script = _with_sides_swapped(script)
    return script


def _with_mistakes(events: tuple[CricketEvent, ...], wrong: set[int]) -> tuple[CricketEvent, ...]:
    balls: dict[int, Ball] = {}

    def changed(place: int, event: CricketEvent) -> CricketEvent:
        if isinstance(event, Ball) and place in wrong:
            balls[event.delivery] = replace(event, runs=_WRONG_RUNS[event.runs])
            return balls[event.delivery]
        if isinstance(event, OverCard) and event.ball.delivery in balls:
            return replace(event, ball=balls[event.ball.delivery])
        return event

    return tuple(changed(place, event) for place, event in enumerate(events))


def _renamed(teams: tuple[Team, Team], suffix: str) -> tuple[Team, Team]:
    first, second = (replace(team, name=other_name(team, suffix), short=other_short(team)) for team in teams)
    if first.short == second.short:
        first, second = replace(first, short=teams[0].short), replace(second, short=teams[1].short)
    return first, second


def _with_other_names(script: CricketScript) -> CricketScript:
    renamed = _renamed(script.teams, "CC")
    by_key = {team.key: team for team in renamed}
    names = [(team.name, by_key[team.key].name) for team in script.teams]
    shorts = [(team.short, by_key[team.key].short) for team in script.teams]

    def changed(event: CricketEvent) -> CricketEvent:
        if not isinstance(event, Notice) or event.team is None:
            return event
        text, long_text = _replaced(event.text, shorts), _replaced(event.long_text, names)
        return replace(event, text=text, long_text=long_text, team=by_key[event.team.key])

    return replace(script, teams=renamed, events=tuple(changed(event) for event in script.events))


def _replaced(text: str, names: list[tuple[str, str]]) -> str:
    for old, new in names:
        if old in text:
            return text.replace(old, new)
    return text


def _with_sides_swapped(script: CricketScript) -> CricketScript:
    plans: tuple[InningsPlan, ...] = script.plans or (script.plan(0), script.plan(1))
    flipped = tuple(replace(plan, batting=1 - plan.batting) for plan in plans)
    return replace(script, teams=(script.teams[1], script.teams[0]), plans=flipped)
