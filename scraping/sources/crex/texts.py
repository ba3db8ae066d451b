"""Reads the short texts that Crex prints: ball codes, scores, results and breaks of play.

Its own status numbers (`ms`, `st`, `status`) contradict each other in recordings and are not used.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from scraping.payloads import Innings, Phase, Side, Status
from scraping.sources import cricket, parsing

# "92/10(14.4" has no closing bracket; "92-10" is the DOM's spelling; "(48" without a dot counts balls. Negative numbers
# match, so that validation refuses them with the value named.
_SCORE = re.compile(
    r"\s*(?P<runs>-?\d{1,6})(?:[/-](?P<wickets>-?\d{1,3}))?\s*(?P<declared>d?)(?:ec)?\s*"
    r"(?:\(\s*(?P<overs>\d{1,4})(?:\.(?P<balls>\d{1,2}))?\s*(?:ov)?\)?)?\s*(?P<late>d?)(?:ec)?\s*",
    re.ASCII | re.IGNORECASE,
)
MAX_SCORE = 60  # characters
_FLAG_KEY = re.compile(r"/([0-9A-Za-z]{1,8})\.(?:png|svg|webp|jpg)(?:\?|$)")
NOT_BATTED = frozenset({"", "-", "--", "yet to bat", "did not bat", "dnb"})  # in place of a score

# The last-ball field also says what is about to happen: the ball starts, is in the air, is a free hit; the over ends.
BALL_MOMENTS = frozenset({"b", "o", "bc", "ba", "fh", "e", "wd", "nb", "w"})
DISMISSALS = frozenset(range(1, 8))  # bowled, caught, caught and bowled, run out, stumped, hit wicket, lbw
# Known texts that say nothing about status or break.
_OTHER_TEXTS = re.compile(
    r"\bneeds?\b|\btrail|\blead|\btarget\b|\breduced\b|\bday \d|\bsession\b|\bsuper over\b|\breview|free hit|"
    r"\bstarts?\b|\bbegins?\b|\btoss\b|abandon|power ?play|in the air|injur|\bopt(?:ed)? to\b",
    re.IGNORECASE | re.ASCII,
)


def read_code(code: str) -> cricket.BallCode:
    """Reads a code of Crex, where the number of a no-ball is the runs off the bat.

    In a recorded over "1nb" made two: its total, the partnership and the batter's figures agree; only the item's own
    score lags behind.
    """
    return cricket.read_code(code, adds_no_ball=True)


def recognized_code(code: str, path: str) -> cricket.BallCode:
    known = read_code(code)
    if not known.is_known:
        parsing.note_unrecognized(path, code)
    return known


def is_legal_ball(code: str) -> bool:
    text = code.lower()
    return "wd" not in text and "nb" not in text


def first_result(*values: Any) -> str:
    sentences = (parsing.plain(value).strip(" 🏆") for value in values)
    return next(filter(None, map(cricket.result_in, sentences)), "")


def is_known_text(sentence: str) -> bool:
    """Returns whether the text is in one of our tables."""
    is_known = cricket.phase_in(sentence) or cricket.result_in(sentence)
    return bool(is_known or cricket.POSTPONED.search(sentence) or _OTHER_TEXTS.search(sentence))


def status_and_phase(
    *, result: str, sentences: tuple[str, ...], has_play: bool, start_time: datetime | None, now: datetime
) -> tuple[Status, Phase]:
    """Checks the result text first: a finished match may still have an ordinary ball in its last-ball field."""
    if result:
        return (Status.ABANDONED if cricket.is_called_off(result) else Status.COMPLETED), Phase.FINISHED
    if not has_play and any(cricket.POSTPONED.search(sentence) for sentence in sentences):
        return Status.UPCOMING, Phase.POSTPONED
    has_begun = has_play or (start_time is not None and start_time <= now)
    if not has_begun:
        return Status.UPCOMING, Phase.SCHEDULED
    is_day_lost = any("abandon" in sentence.lower() for sentence in sentences)
    phases = filter(None, map(cricket.phase_in, sentences))
    return Status.LIVE, next(phases, Phase.RAIN if is_day_lost else Phase.PLAY)


@dataclass(frozen=True)
class Total:
    runs: int
    wickets: int
    overs: str
    is_declared: bool = False
    team: Side = "team_a"

    @property
    def has_play(self) -> bool:
        return bool(self.runs or self.wickets or self.is_declared or self.overs not in ("0.0", "0.00"))

    @property
    def is_possible(self) -> bool:
        try:
            Innings(number=1, **vars(self))
        except ValidationError:
            return False
        return True

    @property
    def progress(self) -> tuple[int, int, int]:
        overs, _, balls = self.overs.partition(".")
        return int(overs), int(balls), self.runs


def parse_total(score: str, team: Side = "team_a", per_over: int = 6) -> Total | None:
    """`team`: the side at the bat, `per_over`: legal balls, where they matter."""
    found = _SCORE.fullmatch(score) if len(score) <= MAX_SCORE else None
    if found is None:
        return None
    overs, balls = found["overs"], found["balls"]
    if overs is not None and balls is None:
        overs, balls = divmod(int(overs), per_over)
    is_declared = bool(found["declared"] or found["late"])
    overs_text = f"{int(overs or 0)}.{int(balls or 0)}"
    return Total(int(found["runs"]), int(found["wickets"] or 0), overs_text, is_declared, team)


def has_score(value: Any) -> bool:
    total = parse_total(parsing.text(value, 60))
    return total is not None and total.has_play


def flag_key(address: str | None) -> str:
    found = _FLAG_KEY.search(address) if address else None
    return found.group(1) if found else ""
