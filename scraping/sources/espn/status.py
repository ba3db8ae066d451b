"""What a cricket match is doing: the sentence that tells its end first, then the state, then the words beside it."""

from __future__ import annotations

import re

from scraping.errors import PayloadRejected
from scraping.payloads import Innings, Phase, Status
from scraping.sources import parsing
from scraping.sources.espn.answers import MatchStatus, Note, is_true
from scraping.sources.parsing import note_unrecognized

_CALLED_OFF = re.compile(r"abandon|no result|called off|cancel+ed|washed out", re.IGNORECASE)
_DECIDED = re.compile(r"\bwon\b|\btied\b|\bdrawn\b|match draw|walkover|forfeit|awarded", re.IGNORECASE)
_POSTPONED = re.compile(r"postpone|reschedul", re.IGNORECASE)
_ONE_DAY = re.compile(r"\bday \d|for the day|day's play|\bsession\b", re.IGNORECASE)
_TOSS = re.compile(r"\btoss\b|elected to|chose to", re.IGNORECASE)
_SUPER_OVER = re.compile(r"super over", re.IGNORECASE)
_WON = re.compile(r"\bwon\b", re.IGNORECASE)
_PHASES = (
    (re.compile(r"inn(?:ing)?s? break|end of innings|between innings", re.IGNORECASE), Phase.INNINGS_BREAK),
    (re.compile(r"\blunch\b|\bdinner\b|\bsupper\b", re.IGNORECASE), Phase.LUNCH),
    (re.compile(r"\btea\b", re.IGNORECASE), Phase.TEA),
    (re.compile(r"\bstumps\b|end of day|close of play|day \d+ ends?\b", re.IGNORECASE), Phase.STUMPS),
    (re.compile(r"\bdrinks\b|time-?\s?out", re.IGNORECASE), Phase.DRINKS),
    (re.compile(r"\brain|\bwet\b|bad light|delay|\bweather\b|outfield|dust|fog", re.IGNORECASE), Phase.RAIN),
    (re.compile(r"interrupt|suspend|play stopped|play halted", re.IGNORECASE), Phase.INTERRUPTED),
)
_ORDINARY = re.compile(
    r"live|in progress|\d\w\w innings?|scheduled|result|final|complete[d]?|full time|super over|play|toss|"
    r"match yet to begin|status_\w+",
    re.IGNORECASE,
)
_CLOSE = re.compile(r"(?P<runs>\d{1,4})(?:/(?P<wickets>\d{1,2}))?d? \((?:[^()]*, )?(?P<overs>\d{1,3}(?:\.\d)?) ov\)")
_BY_STATE = {
    "pre": (Status.UPCOMING, Phase.SCHEDULED),
    "in": (Status.LIVE, Phase.PLAY),
    "post": (Status.COMPLETED, Phase.FINISHED),
}


def ending_in(status: MatchStatus, said: str | None) -> str:
    """The sentence that tells how the match ended. It may come while the state still says that there is play."""
    sentences = (parsing.plain(text) for text in (status.summary, status.type.detail, said, status.type.description))
    return next((sentence for sentence in sentences if _is_ending(sentence)), "")


def judge(status: MatchStatus, ending: str, *, has_play: bool) -> tuple[Status, Phase]:
    """A match that is put off has state "post" and is not completed: it is still to come."""
    words = [parsing.plain(word) for word in (status.type.description, status.type.detail, status.type.name)]
    state = status.type.state
    if state not in _BY_STATE:
        note_unrecognized("header.competitions[0].status.type.state", state)
        raise PayloadRejected(f"unknown state {state[:40]!r} of a match")
    if not has_play and not is_true(status.type.completed) and any(map(_POSTPONED.search, words)):
        return Status.UPCOMING, Phase.POSTPONED
    if ending:
        return (Status.ABANDONED if _CALLED_OFF.search(ending) else Status.COMPLETED), Phase.FINISHED
    judged, phase = _BY_STATE[state]
    if judged is not Status.LIVE:
        return judged, phase
    sentences = (*words[:2], parsing.plain(status.summary))
    return judged, next(filter(None, map(_phase_in, sentences)), None) or _ordinary(words[0])


def has_closed(notes: list[Note], innings: tuple[Innings, ...]) -> bool:
    """Whether the last close of play still stands: not a ball has been bowled since the score that it tells."""
    told = [parsing.plain(one.text) for one in notes if one.type == "closeofplay"]
    if not told or not innings:
        return False
    found = _CLOSE.search(told[-1])
    if found is None or "end of match" in told[-1]:
        return False
    last = innings[-1]
    return (found["runs"], int(found["wickets"] or 10), _overs(found["overs"])) == (
        str(last.runs),
        last.wickets,
        last.overs,
    )


def _is_ending(sentence: str) -> bool:
    if _CALLED_OFF.search(sentence):
        return not _ONE_DAY.search(sentence)  # a day of a long match that is washed out is not its end
    if _TOSS.search(sentence) or not _DECIDED.search(sentence):
        return False
    return bool(_WON.search(sentence)) or not _SUPER_OVER.search(sentence)  # a tie that a super over follows


def _phase_in(sentence: str) -> Phase | None:
    return next((phase for pattern, phase in _PHASES if pattern.search(sentence)), None)


def _ordinary(description: str) -> Phase:
    if description and not _ORDINARY.fullmatch(description):
        note_unrecognized("header.competitions[0].status.type.description", description)
    return Phase.PLAY


def _overs(text: str) -> str:
    return text if "." in text else f"{text}.0"
