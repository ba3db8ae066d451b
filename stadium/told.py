"""How a site tells a match that another one knows better: later, in other words, and not always right.

The script is the truth. A site's telling of it is a script of its own, with the same events at the same times, so that
everything a site does with a script it can do with a telling. Mistakes are put right one after the other, in the order
they were made: a telling is known by how many of them are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from stadium.cricket.script import Ball, CricketEvent, CricketScript, InningsPlan, Notice, OverCard
from stadium.football.script import FootballScript
from stadium.people import Team, other_name, other_short

IN_BATTING_ORDER = ("crex", "crexpro", "board")  # these sites name the side that bats first first
_MISTAKEN = {0: 1, 1: 2, 2: 1, 3: 2, 4: 6, 6: 4}
Script = CricketScript | FootballScript


@dataclass(frozen=True, slots=True)
class Manner:
    """What is different about the matches of a site. Where it is the first of a match's sites it is only ever late."""

    delay_seconds: float = 0.0  # on the wall
    mistakes: float = 0.0  # the share of plain balls that are told with wrong runs
    corrects_after: float | None = None  # seconds on the wall after it was told; None: a mistake stays
    other_names: bool = False
    swaps_sides: bool = False  # in about half of the matches, at sites that know no batting order

    def as_json(self) -> dict[str, Any]:
        return {
            "delay": self.delay_seconds,
            "mistakes": self.mistakes,
            "corrects_after": self.corrects_after,
            "names": self.other_names,
            "sides": self.swaps_sides,
        }


RIGHT = Manner()
_FIELDS = {
    "delay": "delay_seconds",
    "mistakes": "mistakes",
    "corrects_after": "corrects_after",
    "names": "other_names",
    "sides": "swaps_sides",
}


def changed(manner: Manner, wanted: dict[str, Any]) -> Manner:
    """The manner with these fields changed; a ValueError says which can't be."""
    unknown = set(wanted) - set(_FIELDS)
    if unknown:
        raise ValueError(f"unknown field {min(unknown)!r}; allowed: {', '.join(_FIELDS)}")
    return replace(manner, **{_FIELDS[name]: _checked(name, value) for name, value in wanted.items()})


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


def read(text: str) -> tuple[str, Manner]:
    """`espncricinfo:delay=3,mistakes=0.02,corrects_after=20,names,sides`"""
    site, _, rest = text.partition(":")
    wanted: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        name, has_value, value = part.partition("=")
        try:
            wanted[name] = float(value) if has_value else True
        except ValueError as error:
            raise ValueError(f"{name} must be a number; got {value!r}") from error
    return site, changed(RIGHT, wanted)


def mistaken(script: Script, manner: Manner, seed: str) -> tuple[int, ...]:
    """The places of the events that are told wrongly. Plain balls only: no wicket or extra is ever made up."""
    if not manner.mistakes:
        return ()
    random = Random(f"mistakes:{seed}")
    return tuple(
        place
        for place, event in enumerate(script.events)
        if isinstance(event, Ball)
        and random.random() < manner.mistakes
        and not (event.wickets or event.extras)
        and event.runs in _MISTAKEN
    )


def retold(script: Script, site: str, manner: Manner, seed: str, corrected: int) -> Script:
    """The script as the site tells it when so many of its mistakes have been put right."""
    if isinstance(script, FootballScript):
        return replace(script, teams=_renamed(script.teams, "FC")) if manner.other_names else script
    wrong = mistaken(script, manner, seed)[corrected:]
    if wrong:
        script = replace(script, events=_mistold(script.events, set(wrong)))
    if manner.other_names:
        script = _with_other_names(script)
    is_swapping = Random(f"sides:{seed}").random() < 0.5
    if manner.swaps_sides and is_swapping and site not in IN_BATTING_ORDER:
        script = _with_sides_swapped(script)
    return script


def _mistold(events: tuple[CricketEvent, ...], wrong: set[int]) -> tuple[CricketEvent, ...]:
    balls: dict[int, Ball] = {}

    def tell(place: int, event: CricketEvent) -> CricketEvent:
        if isinstance(event, Ball) and place in wrong:
            balls[event.delivery] = replace(event, runs=_MISTAKEN[event.runs])
            return balls[event.delivery]
        if isinstance(event, OverCard) and event.last_ball.delivery in balls:
            return replace(event, last_ball=balls[event.last_ball.delivery])
        return event

    return tuple(tell(place, event) for place, event in enumerate(events))


def _renamed(teams: tuple[Team, Team], club: str) -> tuple[Team, Team]:
    first, second = (replace(team, name=other_name(team, club), short=other_short(team)) for team in teams)
    if first.short == second.short:
        first, second = replace(first, short=teams[0].short), replace(second, short=teams[1].short)
    return first, second


def _with_other_names(script: CricketScript) -> CricketScript:
    renamed = _renamed(script.teams, "CC")
    by_key = {team.key: team for team in renamed}
    words = [(team.name, by_key[team.key].name) for team in script.teams]
    shorts = [(team.short, by_key[team.key].short) for team in script.teams]

    def tell(event: CricketEvent) -> CricketEvent:
        if not isinstance(event, Notice) or event.team is None:
            return event
        text, long_text = _replaced(event.text, shorts), _replaced(event.long_text, words)
        return replace(event, text=text, long_text=long_text, team=by_key[event.team.key])

    return replace(script, teams=renamed, events=tuple(tell(event) for event in script.events))


def _replaced(text: str, words: list[tuple[str, str]]) -> str:
    for old, new in words:
        if old in text:
            return text.replace(old, new)
    return text


def _with_sides_swapped(script: CricketScript) -> CricketScript:
    plans: tuple[InningsPlan, ...] = script.plans or (script.plan(0), script.plan(1))
    flipped = tuple(replace(plan, batting=1 - plan.batting) for plan in plans)
    return replace(script, teams=(script.teams[1], script.teams[0]), plans=flipped)
