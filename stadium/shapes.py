"""Shapes: variants of matches and responses that have been seen in the wild, to be switched on for a site.

A shape changes the match itself, before any site shows it, or the site's rendered documents. The ground truth is that
of the changed match. A match has the shapes of the first of its sites, a document those of the site that sends it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from stadium.cricket.script import (
    Ball,
    CricketEvent,
    CricketScript,
    InningsPlan,
    Notice,
    NoticeKind,
    OverCard,
    WicketCard,
)
from stadium.endpoints import Site
from stadium.football.script import FootballEvent, FootballScript, Period, Postponement, Ruling, Stoppage
from stadium.matches.teams import Team, substitute

DAY_SECONDS = 86_400.0
FOOTBALL: tuple[Site, ...] = ("sofascore", "espnsoccer")
CRICKET: tuple[Site, ...] = ("crex", "crexpro", "board", "espncricinfo", "espn", "sofascorecricket")
WITH_LINEUPS: tuple[Site, ...] = ("crex", "crexpro", "espncricinfo", "espn", "sofascore", "sofascorecricket")
WITH_JSON: tuple[Site, ...] = (*WITH_LINEUPS, "espnsoccer")
Script = CricketScript | FootballScript
Event = TypeVar("Event", CricketEvent, FootballEvent)
Document = Any  # JSON


@dataclass(frozen=True, slots=True)
class Shape:
    effect: str
    sites: tuple[Site, ...]
    change: Callable[[Script], Script] | None = None  # None: the generator or the documents make the difference
    edit: Callable[[Document], Document] | None = None  # of every JSON document, also of those in pages
    edit_page: Callable[[str], str] | None = None


def shaped(script: Script, names: tuple[str, ...]) -> Script:
    for name in names:
        if (change := SHAPES[name].change) is not None:
            script = change(script)
    return script


def checked(site: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Raises a ValueError for a shape that does not exist or that the site cannot have."""
    for name in names:
        if name not in SHAPES or site not in SHAPES[name].sites:
            able = ", ".join(name for name, shape in SHAPES.items() if site in shape.sites)
            raise ValueError(f"{site} can have the shapes {able or 'of no table'}, not {name!r}")
    return tuple(dict.fromkeys(names))


def _ended(script: CricketScript, events: tuple[CricketEvent, ...], kind: NoticeKind, text: str) -> CricketScript:
    """Ends the match after these events, with the first team as its winner if the text says that it has one."""
    team, at = script.teams[0], max([event.at for event in events], default=0.0)
    winner = team if " won" in text else None
    ending = Notice(at + 600.0, kind, text.format(team.short), text.format(team.name), winner)
    return replace(script, events=(*events, ending))


def _postponed(script: Script) -> Script:
    if isinstance(script, FootballScript):
        return replace(script, events=(Postponement(0.0),))
    return replace(script, events=(Notice(0.0, NoticeKind.POSTPONED, "Match postponed"),))


def _walkover(script: Script) -> Script:
    if isinstance(script, FootballScript):
        return replace(script, events=(Ruling(0.0, "walkover"),))
    return _ended(script, (), NoticeKind.RESULT, "{} won by walkover")


def _without_play(script: Script) -> Script:
    if isinstance(script, FootballScript):
        return replace(script, events=(Ruling(0.0, "abandoned"),))
    rain = Notice(0.0, NoticeKind.RAIN, "Match delayed by rain")
    return _ended(script, (script.events[0], rain), NoticeKind.ABANDONED, "Match abandoned without a ball bowled")


def _awarded(script: Script) -> Script:
    if isinstance(script, FootballScript):
        at = script.time_of(Period.SECOND_HALF) + 900.0
        played = tuple(event for event in script.events if event.at <= at)
        return replace(script, events=(*played, Ruling(at + 600.0, "awarded", (3, 0))))
    played_overs, _ = _until_over(script, 5)
    return _ended(script, played_overs, NoticeKind.RESULT, "{} won (match awarded)")


def _suspended(script: Script) -> Script:
    if isinstance(script, FootballScript):
        at = script.time_of(Period.SECOND_HALF) + 900.0
        resumed_at = at + DAY_SECONDS
        stoppages = (Stoppage(at), Stoppage(resumed_at, DAY_SECONDS))
        before, after = _delayed(script.events, at, DAY_SECONDS)
        return replace(script, events=(*before, stoppages[0], stoppages[1], *after))
    played, _ = _until_over(script, 5)
    at = played[-1].at
    before_rain, after_rain = _delayed(script.events, at, DAY_SECONDS)
    rain = Notice(at + 1.0, NoticeKind.RAIN, "Match delayed by rain")
    return replace(script, events=(*before_rain, rain, Notice(at + DAY_SECONDS, NoticeKind.RESUME), *after_rain))


def _delayed(events: tuple[Event, ...], at: float, seconds: float) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
    """Returns the events up to a time, and those after it, so many seconds later."""

    def moved(event: Any) -> Any:
        of = {"ball": moved(event.ball)} if isinstance(event, WicketCard | OverCard) else {}
        return replace(event, at=event.at + seconds, **of)

    return tuple(event for event in events if event.at <= at), tuple(moved(one) for one in events if one.at > at)


def _until_over(script: CricketScript, number: int, innings: int = 1) -> tuple[tuple[CricketEvent, ...], int]:
    """Returns the events up to the end of an over, and the runs of the innings by then."""
    runs = 0
    for place, event in enumerate(script.events):
        if isinstance(event, Ball) and event.innings == innings:
            runs += event.total
        if isinstance(event, OverCard) and event.ball.innings == innings and event.ball.over + 1 == number:
            return script.events[: place + 1], runs
    return script.events, runs


def _revised(script: Script) -> Script:
    """Rain during the innings break reduces the second innings to five overs; the side that chases fails by four."""
    assert isinstance(script, CricketScript)
    played, runs = _until_over(script, 5)
    rain = Notice(script.time_of(NoticeKind.INNINGS_BREAK) + 60.0, NoticeKind.RAIN, "Match delayed by rain")
    events = tuple(sorted((*played, rain), key=lambda event: event.at))
    plans = (InningsPlan(0), InningsPlan(1, target=runs + 5, overs=5))
    return replace(_ended(script, events, NoticeKind.RESULT, "{} won by 4 runs (D/L method)"), plans=plans)


def _with_substitute(script: Script) -> Script:
    """A concussion substitute bats third for the side that bats second."""
    assert isinstance(script, CricketScript)
    team = script.teams[1]
    gone, twelfth = team.players[2], substitute(team)
    side = replace(team, players=(*team.players, twelfth))

    def changed(event: Any) -> Any:
        if isinstance(event, Notice):
            return replace(event, team=side) if event.team == team else event
        if not isinstance(event, Ball):
            return replace(event, ball=changed(event.ball))
        if event.innings != 1:
            return event
        striker, partner = (twelfth if one == gone else one for one in (event.striker, event.partner))
        wickets = tuple(replace(one, out=twelfth) if one.out == gone else one for one in event.wickets)
        return replace(event, striker=striker, partner=partner, wickets=wickets)

    order = tuple(twelfth if player == gone else player for player in team.players)
    plans = (InningsPlan(0), InningsPlan(1, order, chases=True))
    return replace(script, teams=(script.teams[0], side), events=tuple(map(changed, script.events)), plans=plans)


def renamed(team: Team, names: tuple[str, ...]) -> Team:
    """Returns the women's or under-19 side of a club."""
    if "women" in names:
        return team.other_side(f"{team.name} Women", f"{team.short}-W")
    return team.other_side(f"{team.name} Under-19s", f"{team.short}19")


def _objects(document: Document) -> Iterator[dict[str, Any]]:
    """Yields all objects of a document, outer ones first."""
    if isinstance(document, dict):
        yield document
    for value in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from _objects(value)


_SHORT_NAMES = ("shortName", "nameCode", "abbreviation", "sn", "team1short", "team2short")


def _without_short_names(document: Document) -> Document:
    for one in _objects(document):
        if "team1short" in one:
            one |= {"team1": "", "team2": ""}
        for name in _SHORT_NAMES:
            one.pop(name, None)
    return document


def _neutral(document: Document) -> Document:
    for one in _objects(document):
        one |= {name: value for name, value in (("homeAway", "neutral"), ("isHome", False)) if name in one}
        if "homeScore" in one and "awayTeam" in one:
            one["neutralGround"] = True
    return document


def _unconfirmed(document: Document) -> Document:
    for one in _objects(document):
        if "confirmed" in one and "home" in one:
            one["confirmed"] = False
        if one.get("type") == "PLAYING":
            one["type"] = "SQUAD"
        if "starter" in one:
            one["starter"] = False
        if one.get("tp"):
            one |= {"tb": one["tp"], "tp": ""}
    return document


def _all_start(document: Document) -> Document:
    for one in _objects(document):
        if "starter" in one:
            one["starter"] = True
    return document


def _page_data(document: Document) -> dict[str, Any] | None:
    return next((one["appPageProps"] for one in _objects(document) if "appPageProps" in one), None)


def _wrapped_again(document: Document) -> Document:
    if (props := _page_data(document)) is not None:
        props["data"] = {"match": None, "content": {}, "data": props["data"]}
    return document


def _unwrapped(document: Document) -> Document:
    if (props := _page_data(document)) is not None:
        props["data"] = props["data"].get("data", props["data"])
    return document


def _odd_fixtures(document: Document) -> Document:
    """Rows of fixtures have their start in seconds, as date and time, or not at all, and the key under another name."""
    rows = [one for one in _objects(document) if "mf" in one and "ti" in one]
    for row, kind in zip(rows, (0, 1, 2) * len(rows), strict=False):
        start = row.pop("ti") // 1000
        row["matchFkey"] = row.pop("mf")
        if kind == 0:
            row["ti"] = start
        elif kind == 1:
            row |= {"date": _utc(start)[:10], "time": _utc(start)[11:16]}
    return document


def _utc(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


_TOSS_TEXT = re.compile(r"[A-Z0-9-]{2,8} opt to (?:bat|bowl)")


def _late_toss(document: Document) -> Document:
    if isinstance(document, dict) and not any("getIV4" in name for name in document):
        for name in [name for name in document if "getPostMatchData" in name]:
            del document[name]
    for one in _objects(document):
        for name in ("comment1", "res"):
            if _TOSS_TEXT.fullmatch(str(one.get(name))):
                one[name] = ""
    return document


def _page_without_toss(html: str) -> str:
    return html if "getIV4" in html else _TOSS_TEXT.sub("", html)


def _unquoted_id(html: str) -> str:
    return html.replace('id="__NEXT_DATA__" type="application/json"', "id=__NEXT_DATA__ type=application/json")


SHAPES: dict[str, Shape] = {
    "no_short_names": Shape("teams and players have no short names", WITH_JSON, edit=_without_short_names),
    "neutral": Shape(
        "neutral venue: no side is at home", ("espncricinfo", "espn", *FOOTBALL, "sofascorecricket"), edit=_neutral
    ),
    "unconfirmed": Shape("line-ups are expected, not confirmed", WITH_LINEUPS, edit=_unconfirmed),
    "wrapped": Shape("the page's data is one level deeper, beside empty parts", ("espncricinfo",), edit=_wrapped_again),
    "unwrapped": Shape("the page's data has no extra level", ("espncricinfo",), edit=_unwrapped),
    "unquoted_id": Shape(
        "the attributes of the page's script have no quotes",
        ("espncricinfo", "sofascore", "sofascorecricket"),
        edit_page=_unquoted_id,
    ),
    "odd_fixtures": Shape("fixtures without a start in milliseconds", ("crex",), edit=_odd_fixtures),
    "late_toss": Shape(
        "only the page of the match details has the toss", ("crex",), edit=_late_toss, edit_page=_page_without_toss
    ),
    "postponed": Shape("postponed, in state post where a site has one", (*CRICKET, *FOOTBALL), _postponed),
    "walkover": Shape("won by walkover", (*CRICKET, *FOOTBALL), _walkover),
    "no_play": Shape("called off before play", (*CRICKET, *FOOTBALL), _without_play),
    "awarded": Shape("broken off and awarded to one side", (*CRICKET, *FOOTBALL), _awarded),
    "suspended": Shape("suspended and resumed on the next day", (*CRICKET, *FOOTBALL), _suspended),
    "doubleheader": Shape("the same teams play twice a day", (*CRICKET, *FOOTBALL)),
    "women": Shape("every second match is that of the women's sides of the same clubs", (*CRICKET, *FOOTBALL)),
    "under_19": Shape("every second match is that of the under-19 sides of the same clubs", (*CRICKET, *FOOTBALL)),
    "shootout": Shape("extra time and a shoot-out", FOOTBALL),
    "hundred": Shape("sets of five balls", CRICKET),
    "revised": Shape("overs and target of the second innings are revised", CRICKET, _revised),
    "twelve_players": Shape("a concussion substitute", CRICKET, _with_substitute),
    "twelve_starters": Shape("a concussion substitute counts as a starter", ("espn",), _with_substitute, _all_start),
}
