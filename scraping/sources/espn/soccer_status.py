"""What a football match is doing: the name of its status, else its state."""

from __future__ import annotations

import re

from scraping.errors import PayloadRejected
from scraping.payloads import Phase, Status
from scraping.sources.espn.soccer_answers import SoccerStatus
from scraping.sources.parsing import note_unrecognized

_UPCOMING, _LIVE, _DONE = Status.UPCOMING, Status.LIVE, Status.COMPLETED
_BY_NAME = {
    "SCHEDULED": (_UPCOMING, Phase.SCHEDULED),
    "TBD": (_UPCOMING, Phase.SCHEDULED),
    "POSTPONED": (_UPCOMING, Phase.POSTPONED),  # its state is "post", and it is not completed
    "FIRST_HALF": (_LIVE, Phase.PLAY),
    "SECOND_HALF": (_LIVE, Phase.PLAY),
    "IN_PROGRESS": (_LIVE, Phase.PLAY),
    "HALFTIME": (_LIVE, Phase.HALFTIME),
    "END_PERIOD": (_LIVE, Phase.HALFTIME),
    "END_OF_REGULATION": (_LIVE, Phase.EXTRA_TIME),
    "OVERTIME": (_LIVE, Phase.EXTRA_TIME),
    "EXTRA_TIME": (_LIVE, Phase.EXTRA_TIME),
    "FIRST_HALF_EXTRA_TIME": (_LIVE, Phase.EXTRA_TIME),
    "SECOND_HALF_EXTRA_TIME": (_LIVE, Phase.EXTRA_TIME),
    "HALFTIME_ET": (_LIVE, Phase.EXTRA_TIME),
    "END_OF_EXTRATIME": (_LIVE, Phase.PENALTIES),
    "SHOOTOUT": (_LIVE, Phase.PENALTIES),
    "SUSPENDED": (_LIVE, Phase.INTERRUPTED),
    "DELAYED": (_LIVE, Phase.INTERRUPTED),
    "RAIN_DELAY": (_LIVE, Phase.INTERRUPTED),
    "FULL_TIME": (_DONE, Phase.FINISHED),
    "FINAL": (_DONE, Phase.FINISHED),
    "FINAL_AET": (_DONE, Phase.FINISHED),
    "FINAL_PEN": (_DONE, Phase.FINISHED),
    "FINAL_AGT": (_DONE, Phase.FINISHED),
    "FORFEIT": (_DONE, Phase.FINISHED),
    "CANCELED": (Status.ABANDONED, Phase.FINISHED),
    "ABANDONED": (Status.ABANDONED, Phase.FINISHED),
}
_ENDINGS = {"FINAL_AET": "AET", "FINAL_PEN": "AP"}
_CLOCK = re.compile(r"(\d{1,3})'?(?:\s*\+\s*(\d{1,2})'?)?", re.ASCII)


def judge(status: SoccerStatus) -> tuple[Status, Phase]:
    """A name that we do not know is noted, and the state decides; where that says nothing, the reading is refused."""
    name, state = _name(status), status.type.state
    if name in _BY_NAME:
        judged, phase = _BY_NAME[name]
        return (_UPCOMING, Phase.SCHEDULED) if phase is Phase.INTERRUPTED and state == "pre" else (judged, phase)
    note_unrecognized("status.type.name", status.type.name)
    if state == "pre":
        return _UPCOMING, Phase.SCHEDULED
    if state == "in":
        return _LIVE, Phase.PLAY
    if state == "post" and status.type.completed:
        return _DONE, Phase.FINISHED
    raise PayloadRejected(f"unknown status {status.type.name[:60]!r}, state {state[:20]!r}, and it is not completed")


def clock(status: SoccerStatus, judged: Status, phase: Phase) -> str:
    """The minute being played ("37", "45+2"), HT, PEN, FT, AET or AP; empty where the source does not say."""
    if judged is _DONE:
        return _ENDINGS.get(_name(status), "FT")
    if judged is not _LIVE or phase is Phase.INTERRUPTED:
        return ""
    if phase is Phase.HALFTIME:
        return "HT"
    return "PEN" if phase is Phase.PENALTIES else minute_of(status.display_clock) or ""


def minute_of(text: str | None) -> str | None:
    """ "90'+8'" is 90+8."""
    found = _CLOCK.fullmatch((text or "").strip())
    if found is None:
        return None
    return f"{int(found[1])}+{int(found[2])}" if found[2] and int(found[2]) else str(int(found[1]))


def _name(status: SoccerStatus) -> str:
    return status.type.name.upper().removeprefix("STATUS_")
