"""The live answer (getSV3): scores as strings, the last ball or the name of the break as `B`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scraping.errors import SchemaBreak
from scraping.sources import parsing
from scraping.sources.base import Document
from scraping.sources.crex import codes, schemas, status
from scraping.sources.crex.innings import Known, known_in_live
from scraping.sources.crex.schemas import EarlyAnswer, LiveAnswer

_TARGET = re.compile(r"target\D{0,20}(\d{1,3})\b", re.IGNORECASE | re.ASCII)
_LONG = re.compile(r"test|first.?class|\bfc\b|\bday\b|mdm", re.IGNORECASE)
_LIMITED = re.compile(r"t-?\d{1,2}|od[im]\b|\bod\b|list.?a|hundred|\b100|sixes|one.?day", re.IGNORECASE)


@dataclass(frozen=True)
class LiveState:
    """The parts of a live answer that we use."""

    team_keys: tuple[str, str]
    innings: Mapping[int, Known]  # by number, from 1: as many as the answer has
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
    model: type[EarlyAnswer] = EarlyAnswer if may_be_bare else LiveAnswer
    answer = parsing.validated(model, data, schema=schemas.LIVE, url=url)
    first, _, second = answer.a.partition(".")
    ball = parsing.plain(answer.B)
    printed = tuple(map(parsing.plain, (ball, answer.comment1, answer.res, answer.ac)))
    known, at_hand = known_in_live(answer, (first, second))
    match_type = parsing.text(answer.fo or answer.mt, 40)
    _note_unknown(ball, match_type)
    announcement = parsing.plain(answer.C)
    return LiveState(
        team_keys=(first, second),
        innings=known,
        at_hand=at_hand,
        ball=ball,
        sentences=(*filter(None, printed), *filter(status.phase_in, (announcement,))),
        result=status.first_result(answer.comment1, answer.res, answer.result, ball),
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
    if not ball or ball.lower() in codes.MOMENTS or codes.read(ball).is_known:
        return
    if not status.is_understood(ball):
        parsing.note_unrecognized("B", ball)
