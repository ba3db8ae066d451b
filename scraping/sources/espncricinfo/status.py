"""What a match is doing: its `state` decides, the texts say more. A result is told before the state says POST."""

from __future__ import annotations

import re

from scraping.payloads import Phase, Status
from scraping.sources import parsing
from scraping.sources.espncricinfo.schemas import Brief
from scraping.sources.parsing import note_unrecognized

_STATES = {"PRE": Status.UPCOMING, "LIVE": Status.LIVE, "POST": Status.COMPLETED}
_PHASES = (
    (re.compile(r"inn(?:ing)?s? break|end of innings", re.IGNORECASE), Phase.INNINGS_BREAK),
    (re.compile(r"\blunch\b|\bdinner\b|\bsupper\b", re.IGNORECASE), Phase.LUNCH),
    (re.compile(r"\btea\b", re.IGNORECASE), Phase.TEA),
    (re.compile(r"\bstumps\b|end of day|close of play", re.IGNORECASE), Phase.STUMPS),
    (re.compile(r"\bdrinks\b|time-?\s?out", re.IGNORECASE), Phase.DRINKS),
    (re.compile(r"\brain\b|\bwet\b|bad light|delayed", re.IGNORECASE), Phase.RAIN),
    (re.compile(r"interrupt|suspend|play stopped", re.IGNORECASE), Phase.INTERRUPTED),
)
_ABANDONED = re.compile(r"abandon|no result|called off|cancel|washed out", re.IGNORECASE)
_POSTPONED = re.compile(r"postpone|reschedul", re.IGNORECASE)
_DAY_ONLY = re.compile(r"\bday \d|for the day|day's play|\bsession\b|innings abandon", re.IGNORECASE)
_WON = re.compile(r"\bwon\b(?! the toss)", re.IGNORECASE)
_LEVEL = re.compile(r"\bmatch (?:\w+ ){0,3}(?:tied?|drawn?)\b|^(?:tied|drawn)\b", re.IGNORECASE)
_ENDED = re.compile(r"result|no result|abandoned|match (?:tied|drawn|abandoned)", re.IGNORECASE)
_PLACEHOLDER = "{{"  # the page's own script writes how long it is until the start
_IN_PLAY = frozenset({"", "live"})


def status_and_phase(match: Brief, *, has_play: bool) -> tuple[Status, Phase, str]:
    """Status, phase, and the sentence that says how it ended."""
    status = _status_of(match, has_play=has_play)
    said, sentence = _word(match), parsing.plain(match.status_text)
    if match.is_cancelled:
        return Status.ABANDONED, Phase.FINISHED, _final(sentence) or "Match cancelled"
    if not has_play and status is not Status.LIVE and _POSTPONED.search(f"{said} {sentence}"):
        return Status.UPCOMING, Phase.POSTPONED, ""
    if status is Status.COMPLETED or _ENDED.fullmatch(said):
        is_off = _is_called_off(said) or _is_called_off(sentence)
        return (Status.ABANDONED if is_off else Status.COMPLETED), Phase.FINISHED, _final(sentence)
    if result := result_in(sentence, is_level_final=not match.is_super_over):
        return (Status.ABANDONED if _is_called_off(result) else Status.COMPLETED), Phase.FINISHED, result
    if status is Status.UPCOMING:
        return status, (_phase_in(said) or Phase.SCHEDULED), ""
    return status, _phase(said), ""


def result_in(sentence: str, *, is_level_final: bool = True) -> str:
    """The sentence, if it says how the match ended. A tie that a super over follows is not the end."""
    if _is_called_off(sentence) or _WON.search(sentence):
        return sentence
    is_level = bool(_LEVEL.search(sentence)) and "super over" not in sentence.lower()
    return sentence if is_level and is_level_final else ""


def _status_of(match: Brief, *, has_play: bool) -> Status:
    known = _STATES.get(match.state.upper())
    if known is not None:
        return known
    note_unrecognized("match.state", match.state)
    return Status.LIVE if has_play else Status.UPCOMING


def _word(match: Brief) -> str:
    """The status as the site has it in English, whatever language the page is in."""
    text = parsing.plain(match.status_english or match.status)
    return "" if _PLACEHOLDER in text else text


def _final(sentence: str) -> str:
    return "" if _PLACEHOLDER in sentence else sentence


def _is_called_off(text: str) -> bool:
    """A day of a long match that is washed out is not its end."""
    return bool(_ABANDONED.search(text)) and not _DAY_ONLY.search(text)


def _phase(said: str) -> Phase:
    if said.lower() in _IN_PLAY:
        return Phase.PLAY
    phase = _phase_in(said)
    if phase is None:
        note_unrecognized("match.status", said)
    return phase or Phase.PLAY


def _phase_in(said: str) -> Phase | None:
    return next((phase for pattern, phase in _PHASES if pattern.search(said)), None)
