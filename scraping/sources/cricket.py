"""Cricket that several sources share: ball codes, events of deliveries, texts of breaks and results.

Two wickets may fall with one ball (a dismissal, and the next batter is timed out) where the source's list of balls has
room for one. The score shows that there were two, and the fall of wickets names both by number. Without it the named
one is the first, except for a batter who was timed out or retired, and the other has no name.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from scraping import event_keys
from scraping.payloads import Event, LastEvent, Phase, Side, Team, Toss
from scraping.sources import parsing

_CODE_TOKEN = re.compile(r"(\d{1,2})?(wd|nb|lb|pen|b|w|\^\d)(\d{1,2})?|(\d{1,2})(?!\d)", re.ASCII)
_CODE_KINDS = (("w", "wicket"), ("^", "wicket"), ("wd", "wide"), ("nb", "no_ball"), ("lb", "leg_bye"), ("b", "bye"))
KIND_BY_RUNS = {0: "dot", 4: "four", 6: "six"}
UNNAMED_WICKET = "another wicket fell with this ball; the source names one"
AFTER_THE_BALL = re.compile(r"timed[ -]out|retired", re.IGNORECASE)
Fallen = Mapping[tuple[int, int], tuple[str, str]]  # player and manner by innings and number of the wicket
NONE_FALLEN: Fallen = {}
OTHER_SIDE: dict[Side, Side] = {"team_a": "team_b", "team_b": "team_a"}
ALL_OUT = 10
_PHASES = tuple(
    (re.compile(pattern, re.IGNORECASE | re.ASCII), phase)
    for pattern, phase in (
        (r"inn(?:ing)?s? break|end of (?:the )?inn|between innings", Phase.INNINGS_BREAK),
        (r"\blunch\b|\bdinner\b|\bsupper\b", Phase.LUNCH),
        (r"\btea\b", Phase.TEA),
        (r"\bstumps\b|end of day|close of play|day \d+ ends?\b", Phase.STUMPS),
        (r"\bdrinks\b|time-?\s?out", Phase.DRINKS),
        (r"\brain(?:s|ed|ing|y)?\b|\bwet\b|bad light|delay|\bweather\b|outfield|\bdust|\bfog", Phase.RAIN),
        (r"interrupt|suspend|play stopped|play halted", Phase.INTERRUPTED),
    )
)
POSTPONED = re.compile(r"postpone|reschedul", re.IGNORECASE)
_CALLED_OFF = re.compile(r"abandon|no result|called off|cancel|washed out", re.IGNORECASE)
_DECIDED = re.compile(
    r"\bwon\b|\bbeat\b|\bdefeat(?:ed)?\b|\btied\b|\bmatch tie\b|\bdrawn?\b|walkover|forfeit|\bawarded\b|\bconceded\b",
    re.IGNORECASE,
)
_WON = re.compile(r"\bwon\b|\bbeat\b", re.IGNORECASE)
_TIED = re.compile(r"\btied?\b", re.IGNORECASE)
_SETS_OF_FIVE = re.compile(r"\bhundred\b|\b100[ -]?balls?\b|\b100b\b", re.IGNORECASE | re.ASCII)
_TOSS = re.compile(r"\btoss\b|elected to|chose to", re.IGNORECASE)
_TOSS_WON = re.compile(
    r"\W*(?P<winner>.{1,120}?)[ ,]+(?:(?:have |has )?won the toss(?:.{0,20}?\b(?P<chose>bat|bowl|field))?"
    r"|(?:opt|opted|chose|elected|elect|decided) to (?P<opted>bat|bowl|field))",
    re.IGNORECASE,
)
_PART_OF_MATCH = re.compile(
    r"\bday \d|for the day|day's play|\bsession\b|\bstumps\b|innings abandon|\bneeds?\b",
    re.IGNORECASE | re.ASCII,
)


class BallCode(NamedTuple):
    kind: str
    runs: int | None
    is_known: bool


@lru_cache(maxsize=1024)  # a poll may have all balls of the match
def read_code(code: str, *, adds_no_ball: bool = False) -> BallCode:
    """Returns the kind of a delivery and all runs that it added.

    Codes: "4", "1nb", "5wd", "2lb", "W", "1wd+W"; "nb1" in Crex's recent overs, "^2" (caught) as its last ball.
    `adds_no_ball`: the number of a no-ball is the runs off the bat, to which its own run is added. Five and seven
    cannot be scored with one stroke: there the number is the total.
    """
    text = code.strip().lower().replace(" ", "")
    found = _CODE_TOKEN.findall(text.replace("+", "|"))
    spelled = "".join("".join(groups) for groups in found)
    if not found or spelled != text.replace("+", "") or text == "b":  # "B" alone: the bowler starts his run
        return BallCode("other", None, is_known=False)
    marks = {mark[:1] if mark.startswith("^") else mark for _, mark, _, _ in found}
    runs = 0
    for before, mark, after, plain in found:
        number = int(before or after or plain or 0)
        if mark == "nb" and adds_no_ball and number not in (5, 7):
            number += 1
        runs += number or int(mark in ("wd", "nb", "lb"))
    kind = next((kind for mark, kind in _CODE_KINDS if mark in marks), "")
    return BallCode(kind or ("other" if marks - {""} else KIND_BY_RUNS.get(runs, "runs")), runs, is_known=True)


def phase_in(text: str) -> Phase | None:
    return next((phase for pattern, phase in _PHASES if pattern.search(text)), None)


def is_called_off(text: str) -> bool:
    """Returns whether the match is called off; the loss of one day of a long match is not its end."""
    return bool(_CALLED_OFF.search(text)) and not _PART_OF_MATCH.search(text)


def result_in(sentence: str, *, is_tie_final: bool = True) -> str:
    """Returns the sentence if it states the end of the match, else an empty text. A super over may follow a tie."""
    if is_called_off(sentence):
        return sentence
    is_about_part = _PART_OF_MATCH.search(sentence) and "won by" not in sentence.lower()
    if is_about_part or _TOSS.search(sentence) or not _DECIDED.search(sentence):
        return ""
    if _TIED.search(sentence) and not _WON.search(sentence):
        return sentence if is_tie_final and "super over" not in sentence.lower() else ""
    return sentence


def toss_in(sentence: str, teams: Iterable[Team] = ()) -> Toss | None:
    """Returns the toss that a sentence reports, with the full name of its winner if `teams` has it."""
    found = _TOSS_WON.match(sentence[:200])  # the names in it are short
    if found is None:
        return None
    decision = (found["chose"] or found["opted"] or "").lower()
    full = {team.short_name: team.name for team in teams}
    winner = full.get(found["winner"], found["winner"])
    return Toss(winner=winner, decision="" if not decision else "bat" if decision == "bat" else "field")


def balls_per_over(*texts: str | None) -> int:
    """Returns five for The Hundred, which the format, the competition or the series names; else six."""
    return 5 if any(_SETS_OF_FIVE.search(text) for text in texts if text) else 6


def overs_text(overs: float, per_over: int = 6) -> str:
    """Formats 14.4 (14 overs and 4 balls) and 50; 19.6 is twenty overs."""
    done, balls = divmod(round(overs * 10), 10)
    return f"{done + balls // per_over}.{balls % per_over}"


def ball_event(
    identity: str,
    code: str,
    place: tuple[int, int, int | None],
    *,
    label: str | None,
    runs: int | None,
    score: str = "",
    description: str = "",
    kind: str = "",
    happened_at: datetime | None = None,
    is_counted: bool = True,
    **people: str,
) -> Event:
    """Returns a delivery's event. `place`: innings, completed overs, index or None; `is_counted`: no gap after it."""
    innings, over, index = place
    kind = kind or read_code(code).kind
    detail: dict[str, str | int | float | bool | None] = {"score": score, "ball": code, **people}
    return Event(
        id=identity,
        kind=kind,
        innings=innings,
        over=label,
        ordinal=event_keys.position(innings, over, index) if index and is_counted else None,
        slot=event_keys.ball(innings, over, index) if index else "",
        runs=runs,
        is_critical=kind != "other",
        description=description,
        happened_at=happened_at,
        detail={name: value for name, value in detail.items() if value != ""},
    )


def dismissal_event(ball: Event, wicket: int | None, player: str, manner: str, description: str = "") -> Event:
    """Returns the event of the wicket that fell with a ball; `wicket`: its number in the innings, if it is known."""
    detail: dict[str, str | int | float | bool | None] = {"player": player, "text": manner}
    return Event(
        id=f"{ball.id}:w",
        kind="dismissal",
        innings=ball.innings,
        over=ball.over,
        slot=event_keys.wicket(ball.innings or 0, wicket) if wicket else "",
        description=description or parsing.text(f"{player} {manner}") or "Wicket",
        happened_at=ball.happened_at,
        detail=detail if wicket is None else detail | {"wicket": wicket},
    )


def last_event_of(events: Iterable[Event]) -> LastEvent | None:
    """Returns the newest counted ball; `events` are newest first."""
    newest = next((event for event in events if event.ordinal is not None), None)
    return newest.as_last_event() if newest is not None else None


def with_unnamed_wickets(events: Iterable[Event], fallen: Fallen = NONE_FALLEN, per_over: int = 6) -> list[Event]:
    """Adds the other wickets of a ball and numbers all. `events`: oldest first, a dismissal after its ball."""
    found: list[Event] = []
    ball = before = None
    for event in events:
        if event.slot.startswith("b:"):
            before, ball = ball, event
        if event.kind == "dismissal" and ball is not None and event.id == f"{ball.id}:w":
            found += _all_wickets(event, _wickets_of_ball(ball, before, per_over), fallen)
        else:
            found.append(event)
    return found


def _all_wickets(named: Event, count: int, fallen: Fallen) -> list[Event]:
    """Returns the wickets of a ball in their order. `count`: how many fell by the scores, 0 where it is unknown."""
    last, innings, player = named.detail.get("wicket"), named.innings, named.detail.get("player")
    if not isinstance(last, int) or last > ALL_OUT or innings is None:
        return [named]
    first = max(last - max(count, 1) + 1, 1)
    by_name = {number: fallen[innings, number][0] for number in range(1, last + 1) if (innings, number) in fallen}
    if count == 0 and player and by_name.get(last - 1) == player:
        first = last - 1  # the ball before is not on the list; the fall of wickets shows that two fell
    stated = (number for number in range(first, last + 1) if player and by_name.get(number) == player)
    is_last = AFTER_THE_BALL.search(str(named.detail.get("text")))
    own = next(stated, last if is_last else first)
    others = [number for number in range(first, last + 1) if number != own]
    wickets = [_numbered(named, innings, own)]
    wickets += [_another(named, innings, number, place, fallen) for place, number in enumerate(others, start=2)]
    return sorted(wickets, key=lambda one: one.detail["wicket"] or 0)


def _numbered(named: Event, innings: int, number: int) -> Event:
    detail = named.detail | {"wicket": number}
    return named.model_copy(update={"slot": event_keys.wicket(innings, number), "detail": detail})


def _another(named: Event, innings: int, number: int, place: int, fallen: Fallen) -> Event:
    player, manner = fallen.get((innings, number), ("", UNNAMED_WICKET))
    update = {
        "id": f"{named.id}{place}"[:120],
        "slot": event_keys.wicket(innings, number),
        "description": parsing.text(f"{player} {manner}") or UNNAMED_WICKET,
        "detail": {"player": player, "text": manner, "wicket": number},
    }
    return named.model_copy(update=update)


def _wickets_of_ball(ball: Event, before: Event | None, per_over: int) -> int:
    """Returns the number of wickets of the ball by the scores; 0 where it is unknown."""
    now = _wickets_after(ball)
    if now is None:
        return 0
    if ball.ordinal is not None and ball.ordinal == event_keys.position(ball.innings or 0, 0, 1):
        return now
    then = _wickets_after(before) if before is not None and _follows(ball, before, per_over) else None
    return 0 if then is None else now - then


def _follows(ball: Event, before: Event, per_over: int) -> bool:
    """Returns whether `ball` follows `before` directly; across overs only after the last legal ball."""
    if ball.ordinal is None or before.ordinal is None or ball.innings != before.innings:
        return False
    if ball.ordinal == before.ordinal + 1:
        return True
    is_last = (before.over or "").endswith(f".{per_over}") and before.kind not in ("wide", "no_ball")
    return is_last and ball.ordinal in event_keys.successors(before.ordinal)


def _wickets_after(ball: Event) -> int | None:
    _, _, wickets = str(ball.detail.get("score") or "").partition("/")
    return int(wickets) if parsing.is_number(wickets) else None
