"""The state of a cricket match, computed by applying its events in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from stadium.cricket.innings import Innings
from stadium.cricket.script import Ball, CricketEvent, CricketScript, Notice, NoticeKind
from stadium.matches.teams import Team

PAUSES = frozenset(
    {
        NoticeKind.DRINKS,
        NoticeKind.LUNCH,
        NoticeKind.TEA,
        NoticeKind.STUMPS,
        NoticeKind.RAIN,
        NoticeKind.INNINGS_BREAK,
        NoticeKind.POSTPONED,
    }
)


@dataclass(slots=True)
class CricketState:
    script: CricketScript
    innings: list[Innings] = field(default_factory=list)
    applied: int = 0
    status: str = "upcoming"
    phase: str = "scheduled"
    notice: Notice | None = None
    toss: str = ""
    toss_winner: Team | None = None
    toss_bats: bool = False
    winner: Team | None = None
    result: str = ""
    result_long: str = ""
    last_ball: Ball | None = None
    day: int = 1

    @property
    def current(self) -> Innings | None:
        return self.innings[-1] if self.innings else None

    @property
    def target(self) -> int | None:
        return self.current.target if self.current else None

    @property
    def is_paused(self) -> bool:
        """True while play is interrupted; `notice` has the reason."""
        return self.phase in PAUSES

    @property
    def is_over(self) -> bool:
        return self.status in ("completed", "abandoned")

    def apply(self, event: CricketEvent) -> None:
        self.applied += 1
        if isinstance(event, Ball):
            self.innings[event.innings].apply(event)
            self.last_ball = event
        elif isinstance(event, Notice):
            self._apply_notice(event)

    def _apply_notice(self, notice: Notice) -> None:
        if notice.kind is NoticeKind.PENALTY:
            self.innings[notice.innings].add_penalty(notice.runs)
            return
        if notice.kind is NoticeKind.DECLARED:
            self.innings[notice.innings].is_declared = True
            return
        if notice.kind is NoticeKind.RESUME and self.phase == "stumps":
            self.day += 1
        self.notice = notice
        if notice.kind is NoticeKind.TOSS:
            self.phase, self.toss = "toss", notice.text
            self.toss_winner, self.toss_bats = notice.team, notice.bats
        elif notice.kind in (NoticeKind.RESULT, NoticeKind.ABANDONED):
            self._conclude(notice)
        else:
            self._continue_play(notice)

    def _continue_play(self, notice: Notice) -> None:
        if notice.kind in (NoticeKind.INNINGS_START, NoticeKind.INNINGS_BREAK):
            self._open(notice.innings)
        if notice.kind in PAUSES:
            self.phase = notice.kind.value
        else:
            self.phase = "in_play"
        if self.innings:
            self.status = "live"

    def _conclude(self, notice: Notice) -> None:
        is_result = notice.kind is NoticeKind.RESULT
        self.status, self.phase = ("completed", "finished") if is_result else ("abandoned", "abandoned")
        self.result, self.result_long, self.winner = notice.text, notice.long_text, notice.team

    def _open(self, number: int) -> None:
        """Opens an innings at the break before it, because sites show it without a score from then on."""
        if len(self.innings) != number:
            return
        plan = self.script.plan(number)
        batting, bowling = self.script.teams if plan.batting == 0 else self.script.teams[::-1]
        target = self.innings[number - 1].runs + 1 if plan.chases else plan.target
        self.innings.append(Innings(number, batting, bowling, plan, self.script.balls_per_over, target))


def fold(script: CricketScript, events: Iterable[CricketEvent]) -> CricketState:
    state = CricketState(script)
    for event in events:
        state.apply(event)
    return state
