"""The live answer (getSV3): scores as strings, the last ball or the name of the break as `B`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from scraping.errors import SchemaBreak
from scraping.payloads import Innings, Score, SideScore
from scraping.sources import challenge, loose
from scraping.sources.base import Document
from scraping.sources.crex import status

Side = Literal["team_a", "team_b"]
SIDES: tuple[Side, Side] = ("team_a", "team_b")

# "92/10(14.4" has no closing bracket; "92-10" is the DOM's spelling; "(48" without a dot counts balls. Minus signs are
# let through to be refused with the value named.
_SCORE = re.compile(
    r"\s*(?P<runs>-?\d{1,6})(?:[/-](?P<wickets>-?\d{1,3}))?\s*d?(?:ec)?\s*"
    r"(?:\(\s*(?P<overs>\d{1,4})(?:\.(?P<balls>\d{1,2}))?\s*(?:ov)?\)?)?\s*d?",
    re.ASCII,
)
_SECOND_INNINGS = re.compile(r"\s*[&,]\s*")


@dataclass(frozen=True)
class Total:
    """One innings' score as printed."""

    runs: int
    wickets: int
    overs: str

    @property
    def has_play(self) -> bool:
        return bool(self.runs or self.wickets or self.overs not in ("0.0", "0.00"))


@dataclass(frozen=True)
class LiveState:
    """The parts of a live answer that we use."""

    team_keys: tuple[str, str]
    innings: tuple[Innings, ...]
    ball: str  # last ball or name of the break
    sentences: tuple[str, ...]  # everything that may name a break
    result: str
    match_type: str
    document_id: str
    toss_text: str

    @property
    def has_play(self) -> bool:
        """Whether a ball has been bowled."""
        return any(one.runs or one.wickets or one.overs != "0.0" for one in self.innings)


def parse_total(score: str) -> Total | None:
    found = _SCORE.fullmatch(score)
    if found is None:
        return None
    overs, balls = found["overs"], found["balls"]
    if overs is not None and balls is None:
        overs, balls = divmod(int(overs), 6)
    return Total(int(found["runs"]), int(found["wickets"] or 0), f"{int(overs or 0)}.{int(balls or 0)}")


def live_data(document: Document) -> Mapping[str, Any]:
    """The body, with challenges and errors told apart from drift."""
    try:
        data = document.json()
    except SchemaBreak:
        challenge.raise_if_challenge(document.text(), document.url)
        raise
    challenge.raise_if_error_body(data, document.url)
    return loose.mapping(data)


def parse_live(data: Mapping[str, Any], *, may_be_bare: bool = False) -> LiveState:
    """SchemaBreak where a field that we live on is gone; `may_be_bare`: before the start the scores may be absent."""
    wanted = ("a",) if may_be_bare else ("a", "j", "k", "B")
    missing = [name for name in wanted if not isinstance(data.get(name), str | int | float)]
    if missing:
        raise SchemaBreak(
            f"the live answer lacks {', '.join(missing)}; it has {', '.join(sorted(data)[:20]) or 'nothing'}"
        )
    keys = loose.text(data["a"]).split(".")
    if len(keys) != 2 or not all(keys):
        raise SchemaBreak(f"the live answer's `a` is {loose.text(data['a'], 40)!r}, not two team keys")
    ball = loose.plain(data.get("B"))
    printed = (ball, loose.plain(data.get("comment1")), loose.plain(data.get("res")), loose.plain(data.get("ac")))
    return LiveState(
        team_keys=(keys[0], keys[1]),
        innings=_innings(data, keys),
        ball=ball,
        sentences=tuple(filter(None, printed)),
        result=status.first_result(data.get("comment1"), data.get("res"), data.get("result"), ball),
        match_type=loose.text(data.get("fo") or data.get("mt"), 40),
        document_id=loose.text(data.get("dt_id"), 60),
        toss_text=printed[1],
    )


def _innings(data: Mapping[str, Any], keys: list[str]) -> tuple[Innings, ...]:
    firsts: list[tuple[Side, Total]] = []
    seconds: list[tuple[Side, Total]] = []
    for side, name, later in ((SIDES[0], "j", "l"), (SIDES[1], "k", "m")):
        totals = [_total(name, part) for part in _SECOND_INNINGS.split(loose.text(data.get(name))) if part]
        more = parse_total(loose.text(data.get(later)))  # in this answer `l` and `m` are mostly recent overs
        if len(totals) == 1 and more is not None and "/" in loose.text(data.get(later)):
            totals.append(more)
        firsts += [(side, total) for total in totals[:1]]
        seconds += [(side, total) for total in totals[1:2]]
    if _follow_on(data, keys, seconds):
        seconds.reverse()
    begun = [pair for place, pair in enumerate(firsts + seconds) if pair[1].has_play or _is_opening(data, place)]
    return tuple(
        Innings(number=number, team=side, runs=total.runs, wickets=total.wickets, overs=total.overs)
        for number, (side, total) in enumerate(begun, start=1)
    )


def _is_opening(data: Mapping[str, Any], place: int) -> bool:
    """Whether an innings without a ball is the one at hand: the site opens the next one, with 0/0, at the break."""
    return loose.integer(data.get("h")) == place


def _total(name: str, score: str) -> Total:
    total = parse_total(score)
    if total is None:
        raise SchemaBreak(f"the live answer's `{name}` is {score[:40]!r}, not a score")
    return total


def _follow_on(data: Mapping[str, Any], keys: list[str], seconds: list[tuple[Side, Total]]) -> bool:
    """Whether the second side batted third; the recent overs say who bats in which innings."""
    if len(seconds) < 2:
        return False
    batting = {loose.integer(over.get("i")): loose.text(over.get("bt"), 20) for over in loose.rows(data.get("rb"))}
    return batting.get(2) == keys[1] or batting.get(3) == keys[0]


def score_of(innings: tuple[Innings, ...]) -> Score:
    """Each side's latest innings."""
    latest = {one.team: SideScore(runs=one.runs, wickets=one.wickets, overs=one.overs) for one in innings}
    return Score(team_a=latest.get("team_a", SideScore()), team_b=latest.get("team_b", SideScore()))
