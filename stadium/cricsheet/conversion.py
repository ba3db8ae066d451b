"""Converts recordings into scripts: the events are those of the file, their times are invented.

The file names every ball but no time of day, so times and breaks are generated from a seed, the file's name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from random import Random

from stadium.cricket.generator import TOSS_LEAD_SECONDS
from stadium.cricket.innings import Innings
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
from stadium.cricsheet.breaks import SECONDS, TEXTS, breaks
from stadium.cricsheet.document import CricsheetError, Delivery, Document, InningsRecord, Over, read
from stadium.cricsheet.outcome import ending
from stadium.cricsheet.teams import KeyRegistry, RecordedTeams
from stadium.matches.teams import Player

_ALWAYS_INVENTED = ("the time of every ball", "the start time", "short names", "keys of teams and players")


class ScriptBuilder:
    """`now` is in seconds after the scheduled start."""

    def __init__(self, name: str, document: Document, teams: RecordedTeams) -> None:
        self.document, self.teams = document, teams
        self.random = Random(f"cricsheet:{name}")
        self.now = 0.0
        self.deliveries = 0
        self.events: list[CricketEvent] = []
        self.plans = tuple(innings_plan(document, teams, number) for number in range(len(document.innings)))
        self.breaks = breaks(document)
        self.ending = ending(document, teams.by_name)
        self.has_rained = False

    def run(self) -> tuple[CricketEvent, ...]:
        self._toss()
        for number in range(len(self.document.innings)):
            if number:
                self._innings_break(number)
            innings = self._innings(number)
            self._rain_after(number, innings)
        self._conclude()
        return tuple(self.events)

    def _toss(self) -> None:
        toss = self.document.info.toss
        if not toss.winner or not toss.decision:
            return
        winner, bats = self.teams.by_name[toss.winner], toss.decision == "bat"
        text = f"{winner.short} opt to {'bat' if bats else 'bowl'}"
        self.events.append(Notice(-TOSS_LEAD_SECONDS, NoticeKind.TOSS, text, team=winner, bats=bats))

    def _add_notice(self, kind: NoticeKind, innings: int = 0, runs: int = 0, text: str = "") -> None:
        self.events.append(Notice(self._tick(5), kind, text or TEXTS.get(kind, ""), innings=innings, runs=runs))

    def _tick(self, seconds: float) -> float:
        self.now += seconds
        return round(self.now, 2)

    def _pause(self, kind: NoticeKind, innings: int = 0) -> None:
        self._add_notice(kind, innings)
        self.now += SECONDS[kind] * self.random.uniform(0.9, 1.1)

    def _innings_break(self, number: int) -> None:
        """The break between two innings, with the night or the rain that reduces the overs of the next one."""
        self._pause(NoticeKind.INNINGS_BREAK, number)
        before = self.document.innings[number - 1]
        if self.breaks.get((number - 1, len(before.overs) - 1)) is NoticeKind.STUMPS:
            self._pause(NoticeKind.STUMPS)
            self._add_notice(NoticeKind.RESUME)
        scheduled, planned = self.document.info.overs, self.plans[number]
        if scheduled and not planned.is_super_over and 0 < planned.overs < scheduled and not self.has_rained:
            self._rain()

    def _rain(self) -> None:
        self._pause(NoticeKind.RAIN)
        self.has_rained = True

    def _innings(self, number: int) -> Innings:
        part, plan = self.document.innings[number], self.plans[number]
        batting, bowling = self.teams.sides(part.team)
        innings = Innings(number, batting, bowling, plan, self.document.info.balls_per_over, plan.target)
        self._add_notice(NoticeKind.INNINGS_START, number)
        if part.penalty_runs.pre:
            self._penalty(innings, part.penalty_runs.pre)
        for place, over in enumerate(part.overs):
            self._over(innings, over, is_last=place == len(part.overs) - 1)
            if (number, place) in self.breaks and place < len(part.overs) - 1:
                self._pause(self.breaks[number, place])
                self._add_notice(NoticeKind.RESUME)
        if part.penalty_runs.post:
            self._penalty(innings, part.penalty_runs.post)
        if part.declared or part.forfeited:
            self._add_notice(
                NoticeKind.DECLARED, number, text="Innings declared" if part.declared else "Innings forfeited"
            )
        return innings

    def _penalty(self, innings: Innings, runs: int) -> None:
        innings.add_penalty(runs)
        text = f"{runs} penalty runs to {innings.batting.short}"
        self._add_notice(NoticeKind.PENALTY, innings.number, runs, text)

    def _over(self, innings: Innings, over: Over, *, is_last: bool) -> None:
        self.now += self.random.uniform(25, 55)
        legal = 0
        for index, delivery in enumerate(over.deliveries, start=1):
            counts = not {"wides", "noballs"} & set(delivery.extras)
            is_done = index == len(over.deliveries) and (
                not is_last or legal + counts >= self._length(innings.number, over)
            )
            self._ball(innings, over, delivery, index, legal + 1, is_done=is_done)
            legal += counts
        if innings.overs and innings.overs[-1].number == over.over + 1:
            self.events.append(OverCard(self._tick(4), innings.overs[-1].balls[-1]))

    def _length(self, number: int, over: Over) -> int:
        """Returns the number of legal balls of the over as the umpires counted them."""
        miscounted = self.document.innings[number].miscounted_overs.get(str(over.over))
        return miscounted.balls if miscounted else self.document.info.balls_per_over

    def _ball(
        self, innings: Innings, over: Over, delivery: Delivery, index: int, number: int, *, is_done: bool
    ) -> None:
        self.deliveries += 1
        ball = Ball(
            self._tick(self.random.triangular(22, 48, 30)), innings.number, over.over, number, self.deliveries,
            self.teams.player(delivery.batter), self.teams.player(delivery.non_striker),
            self.teams.player(delivery.bowler), delivery.runs.batter, self.teams.extras(delivery),
            self.teams.wickets(delivery), index, not delivery.runs.non_boundary, is_done,
        )  # fmt: skip
        self.events.append(ball)
        innings.apply(ball)
        falls = sum(wicket.counts for wicket in ball.wickets)
        self.events += [WicketCard(self._tick(3), ball, which) for which in range(falls)]
        self.now += self.random.uniform(30, 70) if ball.wickets else 0

    def _rain_after(self, number: int, innings: Innings) -> None:
        """Adds rain where overs are missing at the end of an innings."""
        is_last = number == len(self.document.innings) - 1
        if was_cut_short(self.document, innings) and not (is_last and not self._was_decided_by_rain()):
            self._rain()

    def _was_decided_by_rain(self) -> bool:
        return self.ending.is_abandoned or self.document.info.outcome.method in ("D/L", "VJD")

    def _conclude(self) -> None:
        kind = NoticeKind.ABANDONED if self.ending.is_abandoned else NoticeKind.RESULT
        if self.ending.is_abandoned and not self._is_raining():
            self._rain()
        at = self._tick(10)
        self.events.append(Notice(at, kind, self.ending.text, self.ending.long_text, self.ending.winner))

    def _is_raining(self) -> bool:
        last = self.events[-1] if self.events else None
        return isinstance(last, Notice) and last.kind is NoticeKind.RAIN

    def invented(self) -> tuple[str, ...]:
        """Lists the parts of the script that are not in the recording."""
        stops = {event.kind: None for event in self.events if isinstance(event, Notice) and event.kind in SECONDS}
        return (
            *_ALWAYS_INVENTED,
            *self.teams.invented,
            *(f"the time of {kind.value.replace('_', ' ')}" for kind in stops),
        )


def build_script(name: str, document: Document, teams: RecordedTeams) -> CricketScript:
    builder = ScriptBuilder(name, document, teams)
    events = builder.run()
    info, fixture = document.info, teams.fixture(builder.invented())
    return CricketScript(
        teams.order, info.overs or 0, events, teams.format, builder.plans, info.balls_per_over, fixture
    )


def innings_plan(document: Document, teams: RecordedTeams, number: int) -> InningsPlan:
    part = document.innings[number]
    limit = 1 if part.super_over else math.ceil(part.target.overs or document.info.overs or 0)
    return InningsPlan(
        batting=[team.name for team in teams.order].index(part.team),
        order=_order(part, teams),
        target=_target(document, number),
        overs=limit,
        is_super_over=part.super_over,
        absent=len(part.absent_hurt),
    )


def _order(part: InningsRecord, teams: RecordedTeams) -> tuple[Player, ...]:
    """The batting order, as the players appear at the crease."""
    names = dict.fromkeys(name for ball in part.deliveries for name in (ball.batter, ball.non_striker))
    return tuple(teams.player(name) for name in names)


def _target(document: Document, number: int) -> int | None:
    part, earlier = document.innings[number], document.innings[:number]
    if part.target.runs is not None:
        return part.target.runs
    if part.super_over:
        supers = [innings for innings in earlier if innings.super_over]
        return supers[-1].runs + 1 if len(supers) % 2 == 1 else None
    is_last = number == (3 if document.is_multi_day else 1)
    theirs = sum(innings.runs for innings in earlier if innings.team != part.team)
    own = sum(innings.runs for innings in earlier if innings.team == part.team)
    return theirs - own + 1 if is_last and theirs >= own else None


def was_cut_short(document: Document, innings: Innings) -> bool:
    """True if the side had overs and batters left and had not won."""
    part, plan = document.innings[innings.number], innings.plan
    if plan is None or not plan.overs or plan.is_super_over or part.declared or part.forfeited:
        return False
    bowled = sum(over.is_complete for over in innings.overs)
    has_won = innings.target is not None and innings.runs >= innings.target
    return bowled < plan.overs and not innings.is_all_out and not has_won


@dataclass(frozen=True, slots=True)
class Recording:
    name: str  # of the file, without its suffix
    script: CricketScript


@dataclass(frozen=True, slots=True)
class Folder:
    recordings: tuple[Recording, ...]
    rejected: tuple[str, ...]  # error messages of files that can't be played


def load(path: Path, registry: KeyRegistry | None = None) -> CricketScript:
    """Returns the script of the match in one file."""
    document = read(path)
    try:
        return build_script(path.stem, document, RecordedTeams(document, registry or KeyRegistry()))
    except CricsheetError as error:
        raise CricsheetError(f"{path}: {error}") from error


def load_all(path: Path) -> Folder:
    """Loads the matches of a folder, or of one file. Invalid files are rejected; if all are, that is an error."""
    if not path.exists():
        raise CricsheetError(f"{path}: no such file or folder")
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    registry, recordings, rejected = KeyRegistry(), [], []
    for file in files:
        try:
            recordings.append(Recording(file.stem, load(file, registry)))
        except CricsheetError as error:
            rejected.append(str(error))
    if not recordings:
        raise CricsheetError(rejected[0] if rejected else f"{path}: contains no *.json file")
    return Folder(tuple(recordings), tuple(rejected))
