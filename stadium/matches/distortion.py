"""Distorts the matches of a site: later than other sites, with other team names, and with mistakes.

The script of a match is the ground truth. A site's version of it is a script as well, with the same events at the same
times, so a site renders both in the same way. Mistakes are corrected in the order they were made: the number of
corrected mistakes identifies a version.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from stadium.cricket.script import Ball, CricketEvent, CricketScript, InningsPlan, Notice, OverCard
from stadium.football.script import FootballScript
from stadium.matches.teams import Team, other_name, other_short

IN_BATTING_ORDER = ("crex", "crexpro", "board")  # sites that list the side that bats first first
_WRONG_RUNS = {0: 1, 1: 2, 2: 1, 3: 2, 4: 6, 6: 4}
Script = CricketScript | FootballScript


@dataclass(frozen=True, slots=True)
class Distortion:
    """The first of a match's sites only applies the delay."""

    delay_seconds: float = 0.0  # of wall time
    mistakes: float = 0.0  # share of plain balls that are shown with wrong runs
    corrects_after: float | None = None  # seconds of wall time after a mistake was shown; None: never
    other_names: bool = False
    swaps_sides: bool = False  # in about half of the matches, at sites without a batting order

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, field) for name, field in _FIELDS.items()}


UNDISTORTED = Distortion()
_FIELDS = {
    "delay": "delay_seconds",
    "mistakes": "mistakes",
    "corrects_after": "corrects_after",
    "names": "other_names",
    "sides": "swaps_sides",
}


def with_changes(distortion: Distortion, changes: dict[str, Any]) -> Distortion:
    """Raises a ValueError that names the first field that is unknown or not valid."""
    unknown = set(changes) - set(_FIELDS)
    if unknown:
        raise ValueError(f"unknown field {min(unknown)!r}; allowed: {', '.join(_FIELDS)}")
    return replace(distortion, **{_FIELDS[name]: _checked(name, value) for name, value in changes.items()})


def _checked(name: str, value: Any) -> Any:
    if name in ("names", "sides"):
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be true or false; got {value!r}")
        return value
    if name == "corrects_after" and value is None:
        return None
    highest = 1.0 if name == "mistakes" else 86_400.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= highest:
        raise ValueError(f"{name} must be a number from 0 to {highest:g}; got {value!r}")
    return float(value)


def parse(text: str) -> tuple[str, Distortion]:
    """Parses `espncricinfo:delay=3,mistakes=0.02,corrects_after=20,names,sides`."""
    site, _, rest = text.partition(":")
    changes: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        name, has_value, value = part.partition("=")
        try:
            changes[name] = float(value) if has_value else True
        except ValueError as error:
            raise ValueError(f"{name} must be a number; got {value!r}") from error
    return site, with_changes(UNDISTORTED, changes)


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
