"""Turns a recording into a script: what happened as it says, when it happened as a match might have gone."""

from __future__ import annotations

from random import Random

from stadium.cricket.innings import Innings
from stadium.cricket.script import (
    Ball,
    CricketEvent,
    CricketScript,
    Notice,
    NoticeKind,
    OverCard,
    WicketCard,
)
from stadium.cricsheet.breaks import SECONDS, TEXTS, breaks
from stadium.cricsheet.cast import Cast
from stadium.cricsheet.document import Delivery, Document, Over
from stadium.cricsheet.outcome import ending
from stadium.cricsheet.plans import plans, was_cut_short

TOSS_LEAD_SECONDS = 900.0
_ALWAYS_INVENTED = ("the time of every ball", "the start time", "short names", "keys of teams and players")


class Retelling:
    """`now` runs in seconds after the start. The random stream hangs on the file's name alone."""

    def __init__(self, name: str, document: Document, cast: Cast) -> None:
        self.document, self.cast = document, cast
        self.random = Random(f"cricsheet:{name}")
        self.now = 0.0
        self.deliveries = 0
        self.events: list[CricketEvent] = []
        self.plans = plans(document, cast)
        self.breaks = breaks(document)
        self.ending = ending(document, cast.teams)
        self.has_rained = False

    def run(self) -> tuple[CricketEvent, ...]:
        self._toss()
        for number in range(len(self.document.innings)):
            if number:
                self._change_over(number)
            innings = self._innings(number)
            self._weather_after(number, innings)
        self._conclude()
        return tuple(self.events)

    def _toss(self) -> None:
        toss = self.document.info.toss
        if not toss.winner or not toss.decision:
            return
        winner, bats = self.cast.teams[toss.winner], toss.decision == "bat"
        text = f"{winner.short} opt to {'bat' if bats else 'bowl'}"
        self.events.append(Notice(-TOSS_LEAD_SECONDS, NoticeKind.TOSS, text, team=winner, bats=bats))

    def _tell(self, kind: NoticeKind, innings: int = 0, runs: int = 0, text: str = "") -> None:
        self.events.append(Notice(self._tick(5), kind, text or TEXTS.get(kind, ""), innings=innings, runs=runs))

    def _tick(self, seconds: float) -> float:
        self.now += seconds
        return round(self.now, 2)

    def _pause(self, kind: NoticeKind, innings: int = 0) -> None:
        self._tell(kind, innings)
        self.now += SECONDS[kind] * self.random.uniform(0.9, 1.1)

    def _change_over(self, number: int) -> None:
        """Between two innings; a night may lie there, and rain that takes overs away from the side to bat."""
        self._pause(NoticeKind.INNINGS_BREAK, number)
        before = self.document.innings[number - 1]
        if self.breaks.get((number - 1, len(before.overs) - 1)) is NoticeKind.STUMPS:
            self._pause(NoticeKind.STUMPS)
            self._tell(NoticeKind.RESUME)
        scheduled, planned = self.document.info.overs, self.plans[number]
        if scheduled and not planned.is_super_over and 0 < planned.overs < scheduled and not self.has_rained:
            self._rain()

    def _rain(self) -> None:
        self._pause(NoticeKind.RAIN)
        self.has_rained = True

    def _innings(self, number: int) -> Innings:
        part, plan = self.document.innings[number], self.plans[number]
        batting, bowling = self.cast.sides(part.team)
        innings = Innings(number, batting, bowling, plan, self.document.info.balls_per_over, plan.target)
        self._tell(NoticeKind.INNINGS_START, number)
        if part.penalty_runs.pre:
            self._penalty(innings, part.penalty_runs.pre)
        for place, over in enumerate(part.overs):
            self._over(innings, over, is_last=place == len(part.overs) - 1)
            if (number, place) in self.breaks and place < len(part.overs) - 1:
                self._pause(self.breaks[number, place])
                self._tell(NoticeKind.RESUME)
        if part.penalty_runs.post:
            self._penalty(innings, part.penalty_runs.post)
        if part.declared or part.forfeited:
            self._tell(NoticeKind.DECLARED, number, text="Innings declared" if part.declared else "Innings forfeited")
        return innings

    def _penalty(self, innings: Innings, runs: int) -> None:
        innings.add_penalty(runs)
        text = f"{runs} penalty runs to {innings.batting.short}"
        self._tell(NoticeKind.PENALTY, innings.number, runs, text)

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
        """How many balls the umpires gave it."""
        miscounted = self.document.innings[number].miscounted_overs.get(str(over.over))
        return miscounted.balls if miscounted else self.document.info.balls_per_over

    def _ball(
        self, innings: Innings, over: Over, delivery: Delivery, index: int, number: int, *, is_done: bool
    ) -> None:
        self.deliveries += 1
        ball = Ball(
            self._tick(self.random.triangular(22, 48, 30)), innings.number, over.over, number, self.deliveries,
            self.cast.player(delivery.batter), self.cast.player(delivery.non_striker),
            self.cast.player(delivery.bowler), delivery.runs.batter, self.cast.extras(delivery),
            self.cast.wickets(delivery), index, not delivery.runs.non_boundary, is_done,
        )  # fmt: skip
        self.events.append(ball)
        innings.apply(ball)
        falls = sum(wicket.counts for wicket in ball.wickets)
        self.events += [WicketCard(self._tick(3), ball, which) for which in range(falls)]
        self.now += self.random.uniform(30, 70) if ball.wickets else 0

    def _weather_after(self, number: int, innings: Innings) -> None:
        """Where overs are missing at the end of an innings, rain took them."""
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
        """What the recording does not say and the script nevertheless has."""
        stops = {event.kind: None for event in self.events if isinstance(event, Notice) and event.kind in SECONDS}
        return (
            *_ALWAYS_INVENTED,
            *self.cast.invented,
            *(f"the time of {kind.value.replace('_', ' ')}" for kind in stops),
        )


def script_of(name: str, document: Document, cast: Cast) -> CricketScript:
    retelling = Retelling(name, document, cast)
    events = retelling.run()
    info, occasion = document.info, cast.occasion(retelling.invented())
    return CricketScript(
        cast.order, info.overs or 0, events, cast.format, retelling.plans, info.balls_per_over, occasion
    )
