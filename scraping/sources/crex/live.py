"""The live answer (getSV3): scores as strings, the last ball or the name of the break as `B`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Innings, Side
from scraping.sources import parsing
from scraping.sources.base import Document
from scraping.sources.crex import schemas, texts
from scraping.sources.crex.schemas import EarlyResponse, LiveResponse, RecentOver, ScorecardInnings
from scraping.sources.crex.texts import BALLS_PER_OVER, Total, flag_key, parse_total

_TARGET = re.compile(r"target\D{0,20}(\d{1,3})\b", re.IGNORECASE | re.ASCII)
_LONG = re.compile(r"test|first.?class|\bfc\b|\bday\b|mdm", re.IGNORECASE)
_LIMITED = re.compile(r"t-?\d{1,2}|od[im]\b|\bod\b|list.?a|hundred|\b100|sixes|one.?day", re.IGNORECASE)


@dataclass(frozen=True)
class LiveState:
    """The parts of a live answer that we use."""

    team_keys: tuple[str, str]
    innings: Mapping[int, InningsTotal]  # by number, from 1: as many as the answer has
    at_hand: int  # the number of the innings at hand; 0: it does not say
    ball: str  # last ball or name of the break
    sentences: tuple[str, ...]  # everything that may name a break
    result: str
    match_type: str
    document_id: str
    toss_text: str
    announcement: str
    target: int | None  # of the innings at hand, where it is printed
    is_reduced: bool  # by rain, so that no target can be worked out

    @property
    def has_play(self) -> bool:
        """Whether a ball has been bowled."""
        return any(one.total.has_play for one in self.innings.values())


def is_long(match_type: str) -> bool:
    """Two innings a side: the third one is no super over."""
    return _LONG.search(match_type) is not None and not is_limited(match_type)


def is_limited(match_type: str) -> bool:
    """One innings a side: those after the second are super overs."""
    return _LIMITED.search(match_type) is not None


def live_data(document: Document) -> Mapping[str, Any]:
    """The body, with challenges and errors told apart from drift."""
    try:
        data = document.json()
    except SchemaBreak:
        parsing.raise_if_challenge(document.text(), document.url)
        raise
    parsing.raise_if_error_body(data, document.url)
    return parsing.mapping(data)


def parse_live(data: Mapping[str, Any], *, may_be_bare: bool = False, url: str = "") -> LiveState:
    """SchemaBreak where a field that we live on is gone; `may_be_bare`: before the start the scores may be absent."""
    model: type[EarlyResponse] = EarlyResponse if may_be_bare else LiveResponse
    answer = parsing.validated(model, data, schema=schemas.LIVE, url=url)
    first, _, second = answer.a.partition(".")
    ball = parsing.plain(answer.B)
    printed = tuple(map(parsing.plain, (ball, answer.comment1, answer.res, answer.ac)))
    known, at_hand = totals_in_live(answer, (first, second))
    match_type = parsing.text(answer.fo or answer.mt, 40)
    _note_unknown(ball, match_type)
    announcement = parsing.plain(answer.C)
    return LiveState(
        team_keys=(first, second),
        innings=known,
        at_hand=at_hand,
        ball=ball,
        sentences=(*filter(None, printed), *filter(texts.phase_in, (announcement,))),
        result=texts.first_result(answer.comment1, answer.res, answer.result, ball),
        match_type=match_type,
        document_id=parsing.text(answer.dt_id, 60),
        toss_text=printed[1],
        announcement=announcement,
        target=_target(announcement) or parsing.integer(answer.target) or None,
        is_reduced=bool(parsing.integer(answer.over_reduced))
        or bool(announcement and "reduced" in announcement.lower()),
    )


def _target(announcement: str) -> int | None:
    found = _TARGET.search(announcement) if announcement else None
    return int(found.group(1)) if found else None


def _note_unknown(ball: str, match_type: str) -> None:
    """A last ball that is neither a code nor a text that we understand is counted, and so is a new kind of match."""
    if match_type and not is_long(match_type) and not is_limited(match_type):
        parsing.note_unrecognized("fo", match_type)
    if not ball or ball.lower() in texts.BALL_MOMENTS or texts.read_code(ball).is_known:
        return
    if not texts.is_known_text(ball):
        parsing.note_unrecognized("B", ball)


SIDES: tuple[Side, Side] = ("team_a", "team_b")

# "92/10(14.4" has no closing bracket; "92-10" is the DOM's spelling; "(48" without a dot counts balls. Minus signs are
# let through to be refused with the value named.
_SECOND_INNINGS = re.compile(r"\s*[&,]\s*")


@dataclass(frozen=True)
class InningsTotal:
    side: Side
    total: Total


def totals_in_live(answer: EarlyResponse, keys: tuple[str, str]) -> tuple[dict[int, InningsTotal], int]:
    """The innings that a live answer tells, and which one is at hand."""
    known = dict(enumerate(_first_two(answer, keys), start=1))
    at_hand = max(parsing.integer(answer.h) or 0, (answer.inning or 1) - 1, _last_over(answer)) + 1
    if at_hand > 2 and at_hand > len(known):
        current = _of_recent_overs(answer.rb or (), at_hand, keys) or _of_rendering(answer, at_hand, keys)
        if current is not None:
            known[at_hand] = current
    return known, at_hand if known else 0


def _last_over(answer: EarlyResponse) -> int:
    return max((over.i for over in answer.rb), default=0) if answer.rb else 0


def _first_two(answer: EarlyResponse, keys: tuple[str, str]) -> list[InningsTotal]:
    """Both sides' `j` and `k`; a long match may have the second innings in the same string, or as `l` and `m`."""
    firsts: list[InningsTotal] = []
    seconds: list[InningsTotal] = []
    for side, name, score, later in ((SIDES[0], "j", answer.j, answer.l), (SIDES[1], "k", answer.k, answer.m)):
        totals = [_total(name, part) for part in _SECOND_INNINGS.split(score.strip()) if part]
        third = parsing.text(later, 40)
        if len(totals) == 1 and "/" in third and (more := parse_total(third)) is not None:
            totals.append(more)  # in this answer `l` and `m` are mostly recent overs
        firsts += [InningsTotal(side, total) for total in totals[:1]]
        seconds += [InningsTotal(side, total) for total in totals[1:2]]
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


def _of_recent_overs(overs: Sequence[RecentOver], number: int, keys: tuple[str, str]) -> InningsTotal | None:
    """The innings at hand from its last over: `ts` is the score after it, `o` counts from one."""
    own = [over for over in overs if over.i == number - 1 and over.bt in keys]
    if not own:
        return None
    last = max(own, key=lambda over: over.o)
    bowled = sum(texts.is_legal_ball(str(ball.u)) for ball in last.b)
    done = last.o if bowled >= BALLS_PER_OVER else last.o - 1
    total = parse_total(f"{last.ts}({done}.{bowled % BALLS_PER_OVER if bowled < BALLS_PER_OVER else 0}")
    return InningsTotal(SIDES[keys.index(last.bt)], total) if total else None


def _of_rendering(answer: EarlyResponse, number: int, keys: tuple[str, str]) -> InningsTotal | None:
    """The same from the readable fields of the page's copy; its team1 is the side now batting."""
    batting = flag_key(answer.team1flag)
    if batting not in keys or answer.inning != number or not answer.score1:
        return None
    total = parse_total(f"{answer.score1}({answer.over1 or '0.0'}")
    return InningsTotal(SIDES[keys.index(batting)], total) if total else None


def totals_on_scorecard(card: Sequence[ScorecardInnings], keys: tuple[str, str]) -> dict[int, InningsTotal]:
    """All innings, as the scorecard has them. PayloadRejected where it is another match's."""
    known: dict[int, InningsTotal] = {}
    for number, innings in enumerate(card, start=1):
        if innings.c not in keys:
            raise PayloadRejected(f"the scorecard is about another match: team {innings.c} is none of {'/'.join(keys)}")
        total = parse_total(innings.d)
        if total is None:
            raise SchemaBreak(f"crex.scorecard.v1: [{number - 1}].d (not a score: {innings.d[:40]!r})")
        known[number] = InningsTotal(SIDES[keys.index(innings.c)], total)
    return known


def merged_totals(live: Mapping[int, InningsTotal], card: Mapping[int, InningsTotal]) -> dict[int, InningsTotal]:
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
    known: Mapping[int, InningsTotal], *, is_long: bool, has_super_overs: bool, target: int | None, may_work_out: bool
) -> tuple[Innings, ...]:
    """`target`: of the last one, where it is printed; `may_work_out`: nothing has changed what the scores demand."""
    last = max(known, default=0)
    found = []
    for number, one in sorted(known.items()):
        demanded = target if number == last and number > 1 else None
        if demanded is None and (may_work_out or number > 2):
            demanded = _target_by_scores(known, number, is_long=is_long)
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


def _target_by_scores(known: Mapping[int, InningsTotal], number: int, *, is_long: bool) -> int | None:
    """What the side has to make to win, by the scores before it; None where it is not the last to bat."""
    before = [known.get(earlier) for earlier in range(1, number)]
    if is_long:
        if number != 4 or any(one is None for one in before):
            return None
        own = sum(one.total.runs for one in before if one and one.side == known[4].side)
        return max(sum(one.total.runs for one in before if one and one.side != known[4].side) - own + 1, 0)
    previous = before[-1] if before and number % 2 == 0 else None
    return previous.total.runs + 1 if previous else None
