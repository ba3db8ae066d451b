"""Ball by ball: the incidents response of a cricket match as events, newest first."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from scraping.payloads import Event, Innings
from scraping.sources import cricket, parsing
from scraping.sources.parsing import note_unrecognized
from scraping.sources.sofascore.schemas import Delivery, InningsRow, Person

_SCORE = re.compile(r"(\d{1,4})/(\d{1,2})", re.ASCII)
_NOT_OUT = re.compile(r"retired(?!\s+out)", re.IGNORECASE)  # hurt or not out: the score does not count it
_CODES = {"wide": "wd", "no_ball": "nb", "bye": "b", "leg_bye": "lb"}
_SAID_ILLEGAL = re.compile(r"\bwide\b|\bno[ -]ball\b", re.IGNORECASE)  # for a W, only the text shows it


@dataclass(slots=True)
class Ball:
    """A delivery; fields that depend on its neighbours in the list are filled in afterwards."""

    row: Delivery
    innings: int
    over: int  # completed overs before it
    kind: str
    runs: int | None
    is_legal: bool
    score: tuple[int, int] | None  # of the innings, after the ball
    index: int | None = None  # place in its over, extras counted; None: unknown
    ball: int | None = None  # of the label


def balls_in(listed: Sequence[Delivery]) -> list[Delivery]:
    """Returns the deliveries, newest first; other kinds are counted and left out."""
    for row in listed:
        if row.incidentType != "ball":
            note_unrecognized("incidents[].incidentType", row.incidentType)
    return [row for row in listed if row.incidentType == "ball"]


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
    before: Ball | None = None
    for ball in ordered:
        ball.index = _place(ball, before)
        before = ball
    _label(ordered)
    return ordered


def _ball(row: Delivery, innings: int, over: int) -> Ball:
    label = (row.incidentClassLabel or row.incidentClass or "").strip()
    kind, stated, _ = cricket.read_code(label)
    if kind == "other":
        note_unrecognized("incidents[].incidentClassLabel", label)
    said = f"{row.commentary or ''} {row.bowlDetail or ''}"
    is_legal = kind not in ("wide", "no_ball") and not (row.wicket is True and _SAID_ILLEGAL.search(said))
    runs = next((number for number in (row.totalRuns, row.runs, stated) if number is not None), None)
    if row.wicket is True and not _NOT_OUT.search(row.bowlDetail or ""):
        kind = "wicket"
    elif kind in ("other", "wicket"):
        kind = cricket.KIND_BY_RUNS.get(runs or 0, "runs")
    score = _SCORE.fullmatch((row.score or "").strip())
    return Ball(row, innings, over, kind, runs, is_legal, (int(score[1]), int(score[2])) if score else None)


def _place(ball: Ball, before: Ball | None) -> int | None:
    """Returns the position in the over, unknown where the list begins within an over or has a gap."""
    number = ball.row.number
    if before is None or ball.innings != before.innings:
        return 1 if ball.over == 0 and number in (None, 1) else None
    if number is not None and before.row.number is not None and number != before.row.number + 1:
        return None
    if ball.over != before.over:
        return 1
    return None if before.index is None else before.index + 1


def _label(balls: list[Ball]) -> None:
    """Sets the labels' numbers: ours where the source's agree for legal balls or count all, else the source's."""
    for _, group in groupby(balls, key=lambda ball: (ball.innings, ball.over)):
        over = list(group)
        counted = [1 + sum(ball.is_legal for ball in over[:place]) for place in range(len(over))]
        stated = [ball.row.ball for ball in over]
        agrees = all(s == c for ball, s, c in zip(over, stated, counted, strict=True) if ball.is_legal)
        counts_all = None in stated or stated == [ball.index for ball in over]
        takes_ours = over[-1].index is not None and (agrees or counts_all)
        for ball, number in zip(over, counted if takes_ours else stated, strict=True):
            ball.ball = number


def events_of(
    balls: Sequence[Ball], fallen: cricket.Fallen = cricket.NONE_FALLEN, per_over: int = 6
) -> tuple[Event, ...]:
    """Returns the events, newest first; a wicket comes after its ball."""
    events: list[Event] = []
    for ball in balls:
        event = _event(ball)
        events.append(event)
        if ball.kind == "wicket":
            player = _name(ball.row.dismissedBatsman) or _name(ball.row.batsman)
            text = parsing.text(f"{player} {(ball.row.bowlDetail or 'out').lower()}", 200)
            wicket = ball.score[1] if ball.score else None
            events.append(cricket.dismissal_event(event, wicket, player, text, description=text))
    return tuple(reversed(cricket.with_unnamed_wickets(events, fallen, per_over)))


def fallen_in(rows: Sequence[InningsRow]) -> cricket.Fallen:
    """Returns player and manner of each wicket, where the list of innings has the over of each."""
    found: dict[tuple[int, int], tuple[str, str]] = {}
    for row in rows:
        out = [(line, how) for line in row.battingLine if (how := (line.wicketTypeName or "").strip())]
        out = [(line, how) for line, how in out if how.lower() != "not out" and not _NOT_OUT.search(how)]
        if all(line.fowOver is not None for line, _ in out):
            out.sort(key=lambda one: one[0].fowOver or 0)  # in batting order where two fell with one ball
            for number, (line, how) in enumerate(out, start=1):
                found[row.number, number] = (_name(line.player) or _cleaned(line.playerName or ""), how.lower())
    return found


def _event(ball: Ball) -> Event:
    row, label = ball.row, None if ball.ball is None else f"{ball.over}.{ball.ball}"
    batter, bowler = _name(row.batsman), _name(row.bowler)
    names = f"{bowler} to {batter}: " if bowler and batter else ""
    return cricket.ball_event(
        str(row.id),
        "W" if ball.kind == "wicket" else f"{'' if ball.runs is None else ball.runs}{_CODES.get(ball.kind, '')}",
        (ball.innings, ball.over, ball.index),
        kind=ball.kind,
        label=label,
        runs=ball.runs,
        score=f"{ball.score[0]}/{ball.score[1]}" if ball.score else "",
        description=parsing.text(f"{label or ''} {names}{parsing.plain(row.commentary, 300)}"),
        batter=batter,
        bowler=bowler,
    )


def _name(person: Person | None) -> str:
    return _cleaned(person.name or person.shortName or "") if person else ""


@lru_cache(maxsize=2048)
def _cleaned(name: str) -> str:
    return parsing.text(name, 120)


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
    return balls[-1].score in (None, (innings.runs, innings.wickets))
