"""Ball by ball: the incidents response of a cricket match as events, newest first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from scraping import event_keys
from scraping.payloads import Event, Innings
from scraping.sources import cricket, parsing
from scraping.sources.cricket import ball_kind
from scraping.sources.parsing import note_unrecognized, validated
from scraping.sources.sofascore import schemas
from scraping.sources.sofascore.schemas import DeliveriesResponse, Delivery, Person

_SCORE = re.compile(r"(\d{1,4})/(\d{1,2})", re.ASCII)
_NOT_OUT = re.compile(r"retired(?!\s+out)", re.IGNORECASE)  # hurt or not out: the score does not count it
_CODES = {"wide": "wd", "no_ball": "nb", "bye": "b", "leg_bye": "lb"}
_ILLEGAL = ("wide", "no_ball")
_SAID_ILLEGAL = re.compile(r"\bwide\b|\bno[ -]ball\b", re.IGNORECASE)  # for a W, only the text shows it


@dataclass(slots=True)
class Ball:
    """A delivery; fields that depend on its neighbours in the list are filled in afterwards."""

    row: Delivery
    innings: int
    over: int  # completed overs before it
    kind: str
    runs: int | None
    is_wicket: bool
    is_legal: bool
    index: int | None = None  # place in its over, extras counted; None: unknown
    ball: int | None = None  # of the label

    @property
    def label(self) -> str | None:
        return None if self.ball is None else f"{self.over}.{self.ball}"


def checked(response: Any, url: str = "") -> list[Delivery]:
    """Returns the deliveries of an incidents response, newest first; other kinds are counted and left out."""
    rows = validated(DeliveriesResponse, response, schema=schemas.INCIDENTS, url=url).incidents
    for row in rows:
        if row.incidentType != "ball":
            note_unrecognized("incidents[].incidentType", row.incidentType)
    return [row for row in rows if row.incidentType == "ball"]


def balls_of(rows: Sequence[Delivery]) -> list[Ball]:
    """Returns the balls, oldest first; one without a position in the match is counted and left out."""
    found: dict[int, Ball] = {}
    for row in reversed(rows):
        if row.id is None or not row.inningNumber or not row.over:
            note_unrecognized("incidents[]", f"a ball without id, innings or over: {row.id}")
            continue
        found[row.id] = _ball(row, row.inningNumber, row.over - 1)
    ordered = list(found.values())
    if all(ball.row.number is not None for ball in ordered):
        ordered.sort(key=lambda ball: (ball.innings, ball.row.number or 0))
    _index(ordered)
    _label(ordered)
    return ordered


def events_of(balls: Sequence[Ball]) -> tuple[Event, ...]:
    """Returns the events, newest first; a wicket comes after its ball."""
    events: list[Event] = []
    for ball in balls:
        events.append(_event(ball))
        if ball.is_wicket:
            events.append(_dismissal(ball))
    return tuple(reversed(cricket.with_unnamed_wickets(events)))


def are_all(balls: Sequence[Ball], innings: Sequence[Innings]) -> bool:
    """Returns whether these are all balls: no gap since the first one, and the last score is the current one."""
    by_number = {number: list(group) for number, group in groupby(balls, key=lambda ball: ball.innings)}
    if by_number.keys() - {one.number for one in innings}:
        return False
    return all(_is_whole(by_number.get(one.number, []), one) for one in innings)


def _is_whole(balls: list[Ball], innings: Innings) -> bool:
    if not balls:
        return innings.overs == "0.0" and innings.runs == 0
    numbers = [ball.row.number for ball in balls]
    if None not in numbers and numbers != list(range(1, len(balls) + 1)):
        return False
    if None in numbers and sum(ball.runs or 0 for ball in balls) != innings.runs:
        return False
    return _score(balls[-1].row) in (None, (innings.runs, innings.wickets))


def _ball(row: Delivery, innings: int, over: int) -> Ball:
    label = (row.incidentClassLabel or row.incidentClass or "").strip()
    labelled, stated = _kind(label)
    runs = row.totalRuns if row.totalRuns is not None else row.runs if row.runs is not None else stated
    is_wicket = row.wicket is True and not _NOT_OUT.search(row.bowlDetail or "")
    said = f"{row.commentary or ''} {row.bowlDetail or ''}"
    is_legal = labelled not in _ILLEGAL and not (row.wicket is True and _SAID_ILLEGAL.search(said))
    if labelled == "other":
        note_unrecognized("incidents[].incidentClassLabel", label)
    kind = "wicket" if is_wicket else labelled
    if kind == "other" or (labelled == "wicket" and not is_wicket):
        kind = {0: "dot", 4: "four", 6: "six"}.get(runs or 0, "runs")
    return Ball(row, innings, over, kind, runs, is_wicket, is_legal)


@lru_cache(maxsize=256)
def _kind(label: str) -> tuple[str, int | None]:
    return ball_kind(label)


def _index(balls: list[Ball]) -> None:
    """Sets the position of each ball in its over, unknown where the list begins within an over or has a gap."""
    before: Ball | None = None
    for ball in balls:
        ball.index = _place(ball, before)
        before = ball


def _place(ball: Ball, before: Ball | None) -> int | None:
    if before is None or ball.innings != before.innings:
        is_first = ball.over == 0 and ball.row.number in (None, 1)
        return 1 if is_first else None
    if ball.row.number is not None and before.row.number is not None and ball.row.number != before.row.number + 1:
        return None
    if ball.over != before.over:
        return 1
    return None if before.index is None else before.index + 1


def _label(balls: list[Ball]) -> None:
    """Sets the number of each ball's label: a wide or no-ball has that of the next ball.

    Our numbers are used where the source's agree for the other balls, or count every delivery; else the source's.
    """
    for _, group in groupby(balls, key=lambda ball: (ball.innings, ball.over)):
        over = list(group)
        counted = [1 + sum(ball.is_legal for ball in over[:place]) for place in range(len(over))]
        stated = [ball.row.ball for ball in over]
        agrees = all(s == c for ball, s, c in zip(over, stated, counted, strict=True) if ball.is_legal)
        counts_all = None in stated or stated == [ball.index for ball in over]
        takes_ours = over[-1].index is not None and (agrees or counts_all)
        for ball, number in zip(over, counted if takes_ours else stated, strict=True):
            ball.ball = number


def _event(ball: Ball) -> Event:
    return Event(
        id=str(ball.row.id),
        kind=ball.kind,
        innings=ball.innings,
        over=ball.label,
        ordinal=event_keys.position(ball.innings, ball.over, ball.index) if ball.index is not None else None,
        slot=event_keys.ball(ball.innings, ball.over, ball.index) if ball.index is not None else "",
        runs=ball.runs,
        description=parsing.text(f"{ball.label or ''} {_who(ball)}{parsing.plain(ball.row.commentary, 300)}"),
        detail=_detail(ball),
    )


def _dismissal(ball: Ball) -> Event:
    score = _score(ball.row)
    out = _name(ball.row.dismissedBatsman) or _name(ball.row.batsman)
    text = parsing.text(f"{out} {(ball.row.bowlDetail or 'out').lower()}".strip(), 200)
    detail: dict[str, str | int | float | bool | None] = {"player": out, "text": text}
    if score:
        detail["wicket"] = score[1]
    return Event(
        id=f"{ball.row.id}:w",
        kind="dismissal",
        innings=ball.innings,
        over=ball.label,
        slot=event_keys.wicket(ball.innings, score[1]) if score else "",
        description=text,
        detail=detail,
    )


def _detail(ball: Ball) -> dict[str, str | int | float | bool | None]:
    detail: dict[str, str | int | float | bool | None] = {"ball": _code(ball)}
    if score := _score(ball.row):
        detail["score"] = f"{score[0]}/{score[1]}"
    for ours, person in (("batter", ball.row.batsman), ("bowler", ball.row.bowler)):
        if name := _name(person):
            detail[ours] = name
    return detail


def _code(ball: Ball) -> str:
    if ball.is_wicket:
        return "W"
    return f"{'' if ball.runs is None else ball.runs}{_CODES.get(ball.kind, '')}"


def _score(row: Delivery) -> tuple[int, int] | None:
    found = _SCORE.fullmatch((row.score or "").strip())
    return (int(found[1]), int(found[2])) if found else None


def _who(ball: Ball) -> str:
    bowler, batter = _name(ball.row.bowler), _name(ball.row.batsman)
    return f"{bowler} to {batter}: " if bowler and batter else ""


def _name(person: Person | None) -> str:
    return _cleaned(person.name or person.shortName or "") if person else ""


@lru_cache(maxsize=2048)
def _cleaned(name: str) -> str:
    return parsing.text(name, 120)
