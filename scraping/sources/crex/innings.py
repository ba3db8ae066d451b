"""Whose innings stands where. The live answer has both sides' first innings and, in its recent overs, the one at hand;
the scorecard has all of them. What is put together here is in the order they were played, super overs included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Innings, Score, Side, SideScore
from scraping.sources import parsing
from scraping.sources.crex import codes
from scraping.sources.crex.schemas import EarlyAnswer, InningsCard, RecentOver

SIDES: tuple[Side, Side] = ("team_a", "team_b")
BALLS = 6

# "92/10(14.4" has no closing bracket; "92-10" is the DOM's spelling; "(48" without a dot counts balls. Minus signs are
# let through to be refused with the value named.
_SCORE = re.compile(
    r"\s*(?P<runs>-?\d{1,6})(?:[/-](?P<wickets>-?\d{1,3}))?\s*(?P<declared>d?)(?:ec)?\s*"
    r"(?:\(\s*(?P<overs>\d{1,4})(?:\.(?P<balls>\d{1,2}))?\s*(?:ov)?\)?)?\s*(?P<late>d?)(?:ec)?\s*",
    re.ASCII | re.IGNORECASE,
)
_SECOND_INNINGS = re.compile(r"\s*[&,]\s*")
_FLAG_KEY = re.compile(r"/([0-9A-Za-z]{1,8})\.(?:png|svg|webp|jpg)(?:\?|$)")


@dataclass(frozen=True)
class Total:
    """One innings' score as printed."""

    runs: int
    wickets: int
    overs: str
    is_declared: bool = False

    @property
    def has_play(self) -> bool:
        return bool(self.runs or self.wickets or self.is_declared or self.overs not in ("0.0", "0.00"))

    @property
    def progress(self) -> tuple[int, int, int]:
        overs, _, balls = self.overs.partition(".")
        return int(overs), int(balls), self.runs


@dataclass(frozen=True)
class Known:
    side: Side
    total: Total


def parse_total(score: str) -> Total | None:
    found = _SCORE.fullmatch(score)
    if found is None:
        return None
    overs, balls = found["overs"], found["balls"]
    if overs is not None and balls is None:
        overs, balls = divmod(int(overs), BALLS)
    is_declared = bool(found["declared"] or found["late"])
    return Total(int(found["runs"]), int(found["wickets"] or 0), f"{int(overs or 0)}.{int(balls or 0)}", is_declared)


def flag_key(address: str | None) -> str:
    """The team key in a flag's address."""
    found = _FLAG_KEY.search(address) if address else None
    return found.group(1) if found else ""


def known_in_live(answer: EarlyAnswer, keys: tuple[str, str]) -> tuple[dict[int, Known], int]:
    """The innings that a live answer tells, and which one is at hand."""
    known = dict(enumerate(_first_two(answer, keys), start=1))
    at_hand = max(parsing.integer(answer.h) or 0, (answer.inning or 1) - 1, _last_over(answer)) + 1
    if at_hand > 2 and at_hand > len(known):
        current = _of_recent_overs(answer.rb or (), at_hand, keys) or _of_rendering(answer, at_hand, keys)
        if current is not None:
            known[at_hand] = current
    return known, at_hand if known else 0


def _last_over(answer: EarlyAnswer) -> int:
    return max((over.i for over in answer.rb), default=0) if answer.rb else 0


def _first_two(answer: EarlyAnswer, keys: tuple[str, str]) -> list[Known]:
    """Both sides' `j` and `k`; a long match may have the second innings in the same string, or as `l` and `m`."""
    firsts: list[Known] = []
    seconds: list[Known] = []
    for side, name, score, later in ((SIDES[0], "j", answer.j, answer.l), (SIDES[1], "k", answer.k, answer.m)):
        totals = [_total(name, part) for part in _SECOND_INNINGS.split(score.strip()) if part]
        third = parsing.text(later, 40)
        if len(totals) == 1 and "/" in third and (more := parse_total(third)) is not None:
            totals.append(more)  # in this answer `l` and `m` are mostly recent overs
        firsts += [Known(side, total) for total in totals[:1]]
        seconds += [Known(side, total) for total in totals[1:2]]
    if len(seconds) == 2 and _second_side_bats_third(answer.rb or (), keys):
        seconds.reverse()
    at_hand = parsing.integer(answer.h)  # an innings without a ball has begun if it is the one at hand
    return [one for place, one in enumerate(firsts + seconds) if one.total.has_play or place == at_hand]


def _second_side_bats_third(overs: Sequence[RecentOver], keys: tuple[str, str]) -> bool:
    batting = {over.i: over.bt for over in overs}
    return batting.get(2) == keys[1] or batting.get(3) == keys[0]


def _total(name: str, score: str) -> Total:
    total = parse_total(score)
    if total is None:
        raise SchemaBreak(f"crex.live.v1: {name} (not a score: {score[:40]!r})")
    return total


def _of_recent_overs(overs: Sequence[RecentOver], number: int, keys: tuple[str, str]) -> Known | None:
    """The innings at hand from its last over: `ts` is the score after it, `o` counts from one."""
    own = [over for over in overs if over.i == number - 1 and over.bt in keys]
    if not own:
        return None
    last = max(own, key=lambda over: over.o)
    bowled = sum(codes.is_legal(str(ball.u)) for ball in last.b)
    done = last.o if bowled >= BALLS else last.o - 1
    total = parse_total(f"{last.ts}({done}.{bowled % BALLS if bowled < BALLS else 0}")
    return Known(SIDES[keys.index(last.bt)], total) if total else None


def _of_rendering(answer: EarlyAnswer, number: int, keys: tuple[str, str]) -> Known | None:
    """The same from the readable fields of the page's copy; its team1 is the side now batting."""
    batting = flag_key(answer.team1flag)
    if batting not in keys or answer.inning != number or not answer.score1:
        return None
    total = parse_total(f"{answer.score1}({answer.over1 or '0.0'}")
    return Known(SIDES[keys.index(batting)], total) if total else None


def known_on_card(card: Sequence[InningsCard], keys: tuple[str, str]) -> dict[int, Known]:
    """All innings, as the scorecard has them. PayloadRejected where it is another match's."""
    known: dict[int, Known] = {}
    for number, innings in enumerate(card, start=1):
        if innings.c not in keys:
            raise PayloadRejected(f"the scorecard is about another match: team {innings.c} is none of {'/'.join(keys)}")
        total = parse_total(innings.d)
        if total is None:
            raise SchemaBreak(f"crex.scorecard.v1: [{number - 1}].d (not a score: {innings.d[:40]!r})")
        known[number] = Known(SIDES[keys.index(innings.c)], total)
    return known


def merged(live: Mapping[int, Known], card: Mapping[int, Known]) -> dict[int, Known]:
    """The live answer is the fresher one, except where the card has come further: it is asked a moment later."""
    both = dict(card)
    for number, one in live.items():
        other = card.get(number)
        is_behind = other is not None and number > 2 and other.total.progress > one.total.progress
        if not is_behind:
            both[number] = one
        if other is not None and other.total.is_declared and not both[number].total.is_declared:
            both[number] = other
    return dict(sorted(both.items()))


def innings_of(
    known: Mapping[int, Known], *, is_long: bool, has_super_overs: bool, target: int | None, may_work_out: bool
) -> tuple[Innings, ...]:
    """`target`: of the last one, where it is printed; `may_work_out`: nothing has changed what the scores demand."""
    last = max(known, default=0)
    found = []
    for number, one in sorted(known.items()):
        demanded = target if number == last and number > 1 else None
        if demanded is None and (may_work_out or number > 2):
            demanded = _demanded(known, number, is_long=is_long)
        found.append(
            Innings(
                number=number,
                team=one.side,
                runs=one.total.runs,
                wickets=one.total.wickets,
                overs=one.total.overs,
                is_declared=one.total.is_declared,
                is_super_over=number > 2 and has_super_overs,
                target=demanded,
            )
        )
    return tuple(found)


def _demanded(known: Mapping[int, Known], number: int, *, is_long: bool) -> int | None:
    """What the side has to make to win, by the scores before it; None where it is not the last to bat."""
    before = [known.get(earlier) for earlier in range(1, number)]
    if is_long:
        if number != 4 or any(one is None for one in before):
            return None
        own = sum(one.total.runs for one in before if one and one.side == known[4].side)
        return max(sum(one.total.runs for one in before if one and one.side != known[4].side) - own + 1, 0)
    previous = before[-1] if before and number % 2 == 0 else None
    return previous.total.runs + 1 if previous else None


def score_of(innings: Sequence[Innings]) -> Score:
    """Each side's latest innings, super overs apart."""
    latest = {
        one.team: SideScore(runs=one.runs, wickets=one.wickets, overs=one.overs)
        for one in innings
        if not one.is_super_over
    }
    return Score(team_a=latest.get("team_a", SideScore()), team_b=latest.get("team_b", SideScore()))
