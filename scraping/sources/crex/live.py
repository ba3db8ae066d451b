"""The live response (getSV3) and the innings that follow from it and from the scorecard.

Scores are strings; `B` is the last ball or the name of a break. The response has the first innings of both sides and,
in its recent overs, the current one; the scorecard has all. Innings are in playing order, super overs included.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Side
from scraping.sources import broken_parts, cricket, parsing
from scraping.sources.broken_parts import is_broken
from scraping.sources.crex import schemas, texts
from scraping.sources.crex.schemas import EarlyResponse, LiveResponse, RecentOver, ScorecardInnings
from scraping.sources.crex.texts import Total, flag_key, parse_total

_TARGET = re.compile(r"target\D{0,20}(\d{1,3})\b", re.IGNORECASE | re.ASCII)
_LONG = re.compile(r"test|first.?class|\bfc\b|\bday\b|mdm", re.IGNORECASE)
_LIMITED = re.compile(r"t-?\d{1,2}|od[im]\b|\bod\b|list.?a|hundred|\b100|sixes|one.?day", re.IGNORECASE | re.ASCII)

SIDES: tuple[Side, Side] = ("team_a", "team_b")
_SECOND_INNINGS = re.compile(r"\s*[&,]\s*")


@dataclass(frozen=True)
class LiveState:
    team_keys: tuple[str, str]
    innings: Mapping[int, Total]  # by number, from 1: as many as the response has
    current_innings: int  # its number; 0: unknown
    ball: str  # last ball or name of the break
    sentences: tuple[str, ...]  # everything that may name a break
    result: str
    match_type: str
    document_id: str
    toss_text: str
    announcement: str
    target: int | None  # of the current innings, where it is printed
    is_reduced: bool  # by rain, or perhaps so, so that no target can be computed

    @property
    def has_play(self) -> bool:
        """Whether a ball has been bowled."""
        return any(one.has_play for one in self.innings.values())


def is_long(match_type: str) -> bool:
    """Returns whether each side has two innings, so that the third one is no super over."""
    return _LONG.search(match_type) is not None and not is_limited(match_type)


def is_limited(match_type: str) -> bool:
    """Returns whether each side has one innings, so that those after the second are super overs."""
    return _LIMITED.search(match_type) is not None


def parse_live(data: Mapping[str, Any], *, is_before_start: bool = False, url: str = "") -> LiveState:
    """Raises SchemaBreak without teams or score; before the start the scores may be missing."""
    model: type[EarlyResponse] = EarlyResponse if is_before_start else LiveResponse
    response = parsing.validated(model, data, schema=schemas.LIVE, url=url, needed=("a", "j", "k"))
    if "B" not in data and not is_before_start:
        broken_parts.note("B", "Field required")
    first, _, second = response.a.partition(".")
    ball = parsing.plain(response.B, 120)
    toss_text, *others = map(parsing.plain, (response.comment1, response.res, response.ac))
    totals, current_innings = totals_in_live(response, (first, second))
    match_type = parsing.text(response.fo or response.mt, 40)
    if match_type and not is_long(match_type) and not is_limited(match_type):
        parsing.note_unrecognized("fo", match_type)
    is_known_ball = not ball or ball.lower() in texts.BALL_MOMENTS or texts.read_code(ball).is_known
    if not is_known_ball and not texts.is_known_text(ball):
        parsing.note_unrecognized("B", ball)
    announcement = parsing.plain(response.C)
    target = _TARGET.search(announcement)
    return LiveState(
        team_keys=(first, second),
        innings=totals,
        current_innings=current_innings,
        ball=ball,
        sentences=(*filter(None, (ball, toss_text, *others)), *filter(cricket.phase_in, (announcement,))),
        result=texts.first_result(response.comment1, response.res, response.result, ball),
        match_type=match_type,
        document_id=parsing.text(response.dt_id, 60),
        toss_text=toss_text,
        announcement=announcement,
        target=(int(target[1]) if target else response.target) or None,
        is_reduced=bool(parsing.integer(response.over_reduced)) or "reduced" in announcement.lower() or is_broken("C"),
    )


def totals_in_live(response: EarlyResponse, keys: tuple[str, str]) -> tuple[dict[int, Total], int]:
    """Returns the totals by innings number, and the current number; raises SchemaBreak without a score in play."""
    totals = dict(enumerate(_printed_innings(response, keys), start=1))
    last_over = max((over.i for over in response.rb or ()), default=0)
    number = max(response.h or 0, (response.inning or 1) - 1, last_over) + 1
    if response.j is None and (totals or number > 1):
        raise SchemaBreak(f"{schemas.LIVE}: j (no score, although play has begun)")
    if number > max(len(totals), 1):
        per_over = cricket.balls_per_over(response.fo, response.mt)
        current = _of_recent_overs(response.rb or (), number, keys, per_over) or _of_rendering(response, number, keys)
        if current is not None and current.is_possible:
            totals[number] = current
        if 2 not in totals:
            broken_parts.note("k", "The score of the second innings")
    return totals, number if totals else 0


def _printed_innings(response: EarlyResponse, keys: tuple[str, str]) -> list[Total]:
    """Reads `j` and `k` of the sides; a long match may have second innings in the same string, or in `l` and `m`."""
    firsts: list[Total] = []
    seconds: list[Total] = []
    for side, name, score, later in ((SIDES[0], "j", response.j, response.l), (SIDES[1], "k", response.k, response.m)):
        printed = _SECOND_INNINGS.split(parsing.text(score, 200))
        parts = [part for part in printed if part.lower() not in texts.NOT_BATTED]
        totals = [_required_total(part, side, name) for part in parts]
        third = parsing.text(later, 40)
        if len(totals) == 1 and "/" in third and (more := parse_total(third, side)) is not None:
            totals.append(more)  # `l` and `m` are mostly recent overs
        firsts += totals[:1]
        seconds += totals[1:2]
    batting = {over.i: over.bt for over in response.rb or ()}
    if len(seconds) == 2 and is_broken("rb") and not batting.keys() & {2, 3}:
        seconds.clear()  # their order is unknown
    if len(seconds) == 2 and (batting.get(2) == keys[1] or batting.get(3) == keys[0]):
        seconds.reverse()  # the second side bats again first
    # the current innings has begun, even without a ball
    return [one for index, one in enumerate(firsts + seconds) if one.has_play or index == response.h]


def _required_total(score: str, side: Side, field: str) -> Total:
    total = parse_total(score, side)
    if total is None:
        raise SchemaBreak(f"{schemas.LIVE}: {field} (not a score: {score[:40]!r})")
    return total


def _of_recent_overs(overs: Sequence[RecentOver], number: int, keys: tuple[str, str], per_over: int) -> Total | None:
    """Returns the current innings from its last over: `ts` is the score after it, `o` counts from one."""
    own = [over for over in overs if over.i == number - 1 and over.bt in keys]
    if not own or is_broken("rb"):  # a ball or the last over may be missing
        return None
    last = max(own, key=lambda over: over.o)
    bowled = sum(texts.is_legal_ball(str(ball.u)) for ball in last.b)
    overs_text = f"{last.o}.0" if bowled >= per_over else f"{last.o - 1}.{bowled}"
    return parse_total(f"{last.ts}({overs_text}", SIDES[keys.index(last.bt)])


def _of_rendering(response: EarlyResponse, number: int, keys: tuple[str, str]) -> Total | None:
    """Returns the current innings from the display fields of the page's copy; its team1 is the batting side."""
    batting = flag_key(response.team1flag)
    if batting not in keys or response.inning != number or not response.score1 or is_broken("over1"):
        return None
    return parse_total(f"{response.score1}({response.over1 or '0.0'}", SIDES[keys.index(batting)])


def side_at_bat(innings: ScorecardInnings, keys: tuple[str, str]) -> Side:
    """Returns the side of an innings; raises PayloadRejected for the scorecard of another match."""
    if innings.c not in keys:
        raise PayloadRejected(f"the scorecard is about another match: team {innings.c} is none of {'/'.join(keys)}")
    return SIDES[keys.index(innings.c)]


def totals_on_scorecard(
    card: Mapping[int, ScorecardInnings], keys: tuple[str, str], per_over: int = 6
) -> dict[int, Total]:
    totals: dict[int, Total] = {}
    for number, innings in card.items():
        total = parse_total(innings.d or "", side_at_bat(innings, keys), per_over)
        if total is not None and total.is_possible:
            totals[number] = total
        elif innings.d is None or innings.d.strip().lower() not in texts.NOT_BATTED:
            broken_parts.note("innings[].d", "A score")
    return totals
