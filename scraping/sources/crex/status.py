"""What a match is doing, from the texts that the site prints. Its own status numbers (`ms`, `st`, `status`) contradict
each other in recordings and are not asked.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from scraping.payloads import Phase, Status, Toss
from scraping.sources import parsing

_ABANDONED = re.compile(r"abandon|no result|called off|cancel|washed out", re.IGNORECASE)
_RESULT = re.compile(
    r"\bwon\b|\btied\b|\bmatch tie\b|\bdrawn?\b|walkover|forfeit|\bawarded\b|\bconceded\b", re.IGNORECASE
)
_TOSS_TALK = re.compile(r"\btoss\b", re.IGNORECASE)
_DAY_ONLY = re.compile(r"\bday \d|for the day|day's play|\bsession\b", re.IGNORECASE)
_SUPER_OVER = re.compile(r"super over", re.IGNORECASE)
_TIED = re.compile(r"\bti(?:ed|e)\b", re.IGNORECASE)
_WON = re.compile(r"\bwon\b", re.IGNORECASE)
_TOSS = re.compile(
    r"\W*(?P<winner>.{1,120}?) (?:(?:have |has )?won the toss(?:.{0,20}?\b(?P<chose>bat|bowl|field))?"
    r"|(?:opt|opted|chose|elected|elect) to (?P<opted>bat|bowl|field))",
    re.IGNORECASE,
)
_PHASES = (
    (re.compile(r"inn(?:ing)?s? break|end of innings", re.IGNORECASE), Phase.INNINGS_BREAK),
    (re.compile(r"\blunch\b|\bdinner\b", re.IGNORECASE), Phase.LUNCH),
    (re.compile(r"\btea\b", re.IGNORECASE), Phase.TEA),
    (re.compile(r"\bstumps\b|end of day|close of play|day \d+ ends?\b", re.IGNORECASE), Phase.STUMPS),
    (re.compile(r"\bdrinks\b|time-?\s?out", re.IGNORECASE), Phase.DRINKS),
    (re.compile(r"\brain(?:s|ed|ing|y)?\b|\bwet\b|bad light|delay|\bweather\b|abandon", re.IGNORECASE), Phase.RAIN),
    (re.compile(r"interrupt|suspend|play stopped|play halted", re.IGNORECASE), Phase.INTERRUPTED),
)
# Texts that say nothing about status or break, and are no news either.
_TALK = re.compile(
    r"\bneeds?\b|\btrail|\blead|\btarget\b|\breduced\b|\bday \d|\bsession\b|\bsuper over\b|\breview|free hit|"
    r"\bstarts?\b|\bbegins?\b|\btoss\b|power ?play|in the air|injur|\bopt(?:ed)? to\b",
    re.IGNORECASE,
)
_POSTPONED = re.compile(r"postpone|reschedul", re.IGNORECASE)


def result_in(sentence: str) -> str:
    """The sentence, if it says how the match ended."""
    sentence = sentence.strip(" \t\r\n🏆")
    if _ABANDONED.search(sentence):
        return "" if _DAY_ONLY.search(sentence) else sentence  # a day of a long match washed out is not its end
    if _TOSS_TALK.search(sentence) or not _RESULT.search(sentence):
        return ""
    is_level = bool(_SUPER_OVER.search(sentence)) and not _WON.search(sentence)
    return "" if is_level else sentence  # a tie that a super over follows is not the end


def first_result(*values: Any) -> str:
    return next(filter(None, (result_in(parsing.plain(value)) for value in values)), "")


def toss_in(sentence: str) -> Toss | None:
    found = _TOSS.match(sentence)
    if found is None:
        return None
    decision = (found["chose"] or found["opted"] or "").lower()
    return Toss(winner=found["winner"], decision="" if not decision else "bat" if decision == "bat" else "field")


def phase_in(sentence: str) -> Phase | None:
    """The break that a sentence speaks of; ball codes like "4", "w" or "^2" are too short to speak of one."""
    if len(sentence) <= 2:
        return None
    return next((phase for pattern, phase in _PHASES if pattern.search(sentence)), None)


def is_understood(sentence: str) -> bool:
    """Whether this text is one that we know what to make of."""
    patterns = (_ABANDONED, _RESULT, _POSTPONED, _TALK)
    return phase_in(sentence) is not None or any(pattern.search(sentence) for pattern in patterns)


def is_level(result: str) -> bool:
    """A tie that nobody has won since: where a super over is played, that is not the end."""
    return bool(_TIED.search(result)) and not _WON.search(result)


def judge(
    *, result: str, sentences: tuple[str, ...], has_play: bool, start_time: datetime | None, now: datetime
) -> tuple[Status, Phase]:
    """Result text first: a finished match was seen with an ordinary ball still in its last-ball field."""
    if result:
        return (Status.ABANDONED if _ABANDONED.search(result) else Status.COMPLETED), Phase.FINISHED
    if not has_play and any(_POSTPONED.search(sentence) for sentence in sentences):
        return Status.UPCOMING, Phase.POSTPONED
    has_begun = has_play or (start_time is not None and start_time <= now)
    if not has_begun:
        return Status.UPCOMING, Phase.SCHEDULED
    phase = next(filter(None, (phase_in(sentence) for sentence in sentences)), Phase.PLAY)
    return Status.LIVE, phase
