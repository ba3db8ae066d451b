"""The live response (getSV3) and the innings that follow from it and from the scorecard.

Scores are strings; `B` is the last ball or the name of a break. The response has the first innings of both sides and,
in its recent overs, the current one; the scorecard has all. Innings are in playing order, super overs included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Innings, Side
from scraping.sources import parsing
from scraping.sources.crex import schemas, texts
from scraping.sources.crex.schemas import EarlyResponse, LiveResponse, RecentOver, ScorecardInnings
from scraping.sources.crex.texts import BALLS_PER_OVER, Total, flag_key, parse_total

_TARGET = re.compile(r"target\D{0,20}(\d{1,3})\b", re.IGNORECASE | re.ASCII)
_LONG = re.compile(r"test|first.?class|\bfc\b|\bday\b|mdm", re.IGNORECASE)
_LIMITED = re.compile(r"t-?\d{1,2}|od[im]\b|\bod\b|list.?a|hundred|\b100|sixes|one.?day", re.IGNORECASE)

SIDES: tuple[Side, Side] = ("team_a", "team_b")
_SECOND_INNINGS = re.compile(r"\s*[&,]\s*")


@dataclass(frozen=True)
class LiveState:
    """The parts of a live response that we use."""

    team_keys: tuple[str, str]
    innings: Mapping[int, InningsTotal]  # by number, from 1: as many as the response has
    current_innings: int  # its number; 0: unknown
    ball: str  # last ball or name of the break
    sentences: tuple[str, ...]  # everything that may name a break
    result: str
    match_type: str
    document_id: str
    toss_text: str
    announcement: str
    target: int | None  # of the current innings, where it is printed
    is_reduced: bool  # by rain, so that no target can be computed

    @property
    def has_play(self) -> bool:
        """Whether a ball has been bowled."""
        return any(one.total.has_play for one in self.innings.values())


def is_long(match_type: str) -> bool:
    """Returns whether each side has two innings, so that the third one is no super over."""
    return _LONG.search(match_type) is not None and not is_limited(match_type)


def is_limited(match_type: str) -> bool:
    """Returns whether each side has one innings, so that those after the second are super overs."""
    return _LIMITED.search(match_type) is not None


def parse_live(data: Mapping[str, Any], *, is_before_start: bool = False, url: str = "") -> LiveState:
    """Raises SchemaBreak for a missing required field; before the start the scores may be missing."""
    model: type[EarlyResponse] = EarlyResponse if is_before_start else LiveResponse
    response = parsing.validated(model, data, schema=schemas.LIVE, url=url)
    first, _, second = response.a.partition(".")
    ball = parsing.plain(response.B)
    printed = tuple(map(parsing.plain, (ball, response.comment1, response.res, response.ac)))
    totals, current_innings = totals_in_live(response, (first, second))
    match_type = parsing.text(response.fo or response.mt, 40)
    _note_unknown(ball, match_type)
    announcement = parsing.plain(response.C)
    return LiveState(
        team_keys=(first, second),
        innings=totals,
        current_innings=current_innings,
        ball=ball,
        sentences=(*filter(None, printed), *filter(texts.phase_in, (announcement,))),
        result=texts.first_result(response.comment1, response.res, response.result, ball),
        match_type=match_type,
        document_id=parsing.text(response.dt_id, 60),
        toss_text=printed[1],
        announcement=announcement,
        target=_target(announcement) or parsing.integer(response.target) or None,
        is_reduced=bool(parsing.integer(response.over_reduced))
        or bool(announcement and "reduced" in announcement.lower()),
    )


def _target(announcement: str) -> int | None:
    found = _TARGET.search(announcement) if announcement else None
    return int(found.group(1)) if found else None


def _note_unknown(ball: str, match_type: str) -> None:
    """Counts a last ball that is neither a known code nor a known text, and an unknown kind of match."""
    if match_type and not is_long(match_type) and not is_limited(match_type):
        parsing.note_unrecognized("fo", match_type)
    if not ball or ball.lower() in texts.BALL_MOMENTS or texts.read_code(ball).is_known:
        return
    if not texts.is_known_text(ball):
        parsing.note_unrecognized("B", ball)


@dataclass(frozen=True)
class InningsTotal:
    side: Side
    total: Total


def totals_in_live(response: EarlyResponse, keys: tuple[str, str]) -> tuple[dict[int, InningsTotal], int]:
    """Returns the totals by innings number, and the number of the current innings."""
    totals = dict(enumerate(_first_two(response, keys), start=1))
    number = max(parsing.integer(response.h) or 0, (response.inning or 1) - 1, _last_over(response)) + 1
    if number > 2 and number > len(totals):
        current = _of_recent_overs(response.rb or (), number, keys) or _of_rendering(response, number, keys)
        if current is not None:
            totals[number] = current
    return totals, number if totals else 0


def _last_over(response: EarlyResponse) -> int:
    return max((over.i for over in response.rb), default=0) if response.rb else 0


def _first_two(response: EarlyResponse, keys: tuple[str, str]) -> list[InningsTotal]:
    """Reads `j` and `k` of the sides; a long match may have second innings in the same string, or in `l` and `m`."""
    firsts: list[InningsTotal] = []
    seconds: list[InningsTotal] = []
    for side, name, score, later in ((SIDES[0], "j", response.j, response.l), (SIDES[1], "k", response.k, response.m)):
        totals = [_total(name, part) for part in _SECOND_INNINGS.split(score.strip()) if part]
        third = parsing.text(later, 40)
        if len(totals) == 1 and "/" in third and (more := parse_total(third)) is not None:
            totals.append(more)  # `l` and `m` are mostly recent overs
        firsts += [InningsTotal(side, total) for total in totals[:1]]
        seconds += [InningsTotal(side, total) for total in totals[1:2]]
    if len(seconds) == 2 and _second_side_bats_third(response.rb or (), keys):
        seconds.reverse()
    current = parsing.integer(response.h)  # the current innings has begun, even without a ball
    return [one for index, one in enumerate(firsts + seconds) if one.total.has_play or index == current]


def _second_side_bats_third(overs: Sequence[RecentOver], keys: tuple[str, str]) -> bool:
    batting = {over.i: over.bt for over in overs}
    return batting.get(2) == keys[1] or batting.get(3) == keys[0]


def _total(name: str, score: str) -> Total:
    total = parse_total(score)
    if total is None:
        raise SchemaBreak(f"crex.live.v1: {name} (not a score: {score[:40]!r})")
    return total


def _of_recent_overs(overs: Sequence[RecentOver], number: int, keys: tuple[str, str]) -> InningsTotal | None:
    """Returns the current innings from its last over: `ts` is the score after it, `o` counts from one."""
    own = [over for over in overs if over.i == number - 1 and over.bt in keys]
    if not own:
        return None
    last = max(own, key=lambda over: over.o)
    bowled = sum(texts.is_legal_ball(str(ball.u)) for ball in last.b)
    done = last.o if bowled >= BALLS_PER_OVER else last.o - 1
    total = parse_total(f"{last.ts}({done}.{bowled % BALLS_PER_OVER if bowled < BALLS_PER_OVER else 0}")
    return InningsTotal(SIDES[keys.index(last.bt)], total) if total else None


def _of_rendering(response: EarlyResponse, number: int, keys: tuple[str, str]) -> InningsTotal | None:
    """Returns the current innings from the display fields of the page's copy; its team1 is the batting side."""
    batting = flag_key(response.team1flag)
    if batting not in keys or response.inning != number or not response.score1:
        return None
    total = parse_total(f"{response.score1}({response.over1 or '0.0'}")
    return InningsTotal(SIDES[keys.index(batting)], total) if total else None


def totals_on_scorecard(card: Sequence[ScorecardInnings], keys: tuple[str, str]) -> dict[int, InningsTotal]:
    """Returns the totals of a scorecard by innings number; raises PayloadRejected for one of another match."""
    totals: dict[int, InningsTotal] = {}
    for number, innings in enumerate(card, start=1):
        if innings.c not in keys:
            raise PayloadRejected(f"the scorecard is about another match: team {innings.c} is none of {'/'.join(keys)}")
        total = parse_total(innings.d)
        if total is None:
            raise SchemaBreak(f"crex.scorecard.v1: [{number - 1}].d (not a score: {innings.d[:40]!r})")
        totals[number] = InningsTotal(SIDES[keys.index(innings.c)], total)
    return totals


def merged_totals(live: Mapping[int, InningsTotal], card: Mapping[int, InningsTotal]) -> dict[int, InningsTotal]:
    """Prefers the live total, except where the scorecard, which is requested a moment later, is further on."""
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
    totals: Mapping[int, InningsTotal],
    *,
    is_long: bool,
    has_super_overs: bool,
    target: int | None,
    may_compute_target: bool,
) -> tuple[Innings, ...]:
    """Returns the innings of the payload.

    `target` is the printed one of the last innings; `may_compute_target` is false where rain has changed the target.
    """
    last = max(totals, default=0)
    found = []
    for number, one in sorted(totals.items()):
        target_here = target if number == last and number > 1 else None
        if target_here is None and (may_compute_target or number > 2):
            target_here = _target_by_scores(totals, number, is_long=is_long)
        found.append(
            Innings(
                number=number,
                team=one.side,
                runs=one.total.runs,
                wickets=one.total.wickets,
                overs=one.total.overs,
                is_declared=one.total.is_declared,
                is_super_over=number > 2 and has_super_overs,
                target=target_here,
            )
        )
    return tuple(found)


def _target_by_scores(totals: Mapping[int, InningsTotal], number: int, *, is_long: bool) -> int | None:
    """Returns the runs that the side needs to win, from the scores before it; None where it is not the last to bat."""
    before = [totals.get(earlier) for earlier in range(1, number)]
    if is_long:
        if number != 4 or any(one is None for one in before):
            return None
        own = sum(one.total.runs for one in before if one and one.side == totals[4].side)
        return max(sum(one.total.runs for one in before if one and one.side != totals[4].side) - own + 1, 0)
    previous = before[-1] if before and number % 2 == 0 else None
    return previous.total.runs + 1 if previous else None
