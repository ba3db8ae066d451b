"""Versioned schemas of Crex's responses: the fields that we rely on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Discriminator, Field, Tag, model_validator

from scraping.errors import SchemaBreak
from scraping.payloads import MAX_INNINGS, Team
from scraping.sources import broken_parts, parsing
from scraping.sources.parsing import Response

LIVE, FEED, SCORECARD = "crex.live.v1", "crex.feed.v1", "crex.scorecard.v1"
SQUADS, LIST, PAGE, DOM = "crex.squads.v1", "crex.list.v1", "crex.page.v1", "crex.dom.v1"

Key = Annotated[str, Field(pattern=r"^[0-9A-Za-z]{1,8}$")]
MaybeKey = Annotated[str, Field(pattern=r"^[0-9A-Za-z]{0,8}$")]
Maybe = str | int | float | None
MAX_TARGET = 4000


def _as_number(value: Any) -> Any:
    number = parsing.integer(value)
    return (value or None) if number is None else number


Number = BeforeValidator(_as_number)  # also as text; an empty text is none
Line = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
InningsIndex = Annotated[int, Field(ge=0, lt=MAX_INNINGS)]  # from 0


class RecentBall(Response):
    u: str | int  # the code, "nb1"


class RecentOver(Response):
    """An over of `rb`."""

    i: InningsIndex
    o: int  # over, from 1
    bt: str  # the side at the bat
    ts: str  # its score after the over
    b: list[RecentBall]


class EarlyResponse(Response):
    """getSV3 before the start: only the teams are required. A score may be null."""

    a: Annotated[str, Field(pattern=r"^[0-9A-Za-z]{1,8}\.[0-9A-Za-z]{1,8}$")]  # team keys, in batting order
    j: str | None = None  # the first team's first innings
    k: str | None = None
    # The last ball, or the name of the break.
    B: Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)] = ""
    h: Annotated[InningsIndex | None, Number] = None  # the innings at hand
    l: Any = None  # noqa: E741  # recent overs; in the list of matches the third innings
    m: Any = None
    fo: str | None = None
    mt: str | None = None
    dt_id: Any = None
    comment1: str | None = None
    res: str | None = None
    result: str | None = None
    ac: str | None = None
    C: str | None = None  # an announcement
    over_reduced: Any = None
    rb: Annotated[list[RecentOver] | None, BeforeValidator(lambda overs: overs or None)] = None
    # What the copy in the page adds. Its team1 is the side now batting.
    inning: Annotated[Annotated[int, Field(ge=0, le=MAX_INNINGS)] | None, Number] = None  # from 1
    target: Annotated[Annotated[int, Field(ge=0, le=MAX_TARGET)] | None, Number] = None
    team1flag: str | None = None
    score1: str | None = None
    over1: str | None = None


class LiveResponse(EarlyResponse):
    """getSV3 after the start."""

    j: str | None
    k: str | None


class FeedItem(Response):
    """The fields of all items of the ball feed. Texts that are only shown may be of any type."""

    id: Annotated[int | str, Field(union_mode="left_to_right")]
    inning: InningsIndex | None = None
    o: Maybe = None  # over


class BallItem(FeedItem):
    inning: InningsIndex
    o: Annotated[str, BeforeValidator(lambda over: str(over) if isinstance(over, float) else over)]  # "11.5"
    b: str | int  # the code
    s: Any = None  # the score after it
    c1: Any = None
    c2: Any = None
    pf: Any = None
    bf: Any = None
    delivery: int | None = None  # running number over the match


class WicketItem(FeedItem):
    inning: InningsIndex
    player_fullname: Any = None
    player: Any = None
    r: int | str | None = None
    b: int | str | None = None
    manner: Any = Field(default=None, alias="wicketDesc")
    dismissal: int | str | None = None
    wn: int | str | None = None  # which wicket; none for one that does not count


class OverItem(FeedItem):
    inning: InningsIndex
    o: int | str  # from 1
    runs: int | str | None = None
    s: Any = None
    rb: str | None = None  # the over's codes, "1.4.W.1nb"
    team: Any = None


class OtherItem(FeedItem):
    type: str | None = None
    c1: Any = None
    c2: Any = None


_BY_FLAG = {64: "wicket", 32: "over", 2: "ball", 4: "ball", 8: "ball"}
_BY_LETTER = {"w": "wicket", "o": "over", "b": "ball"}


def item_kind(item: Any) -> str:
    """Returns the kind by the item's `type` letter, or by its `fv` number where the letter is missing."""
    letter, flag = (item.get("type"), item.get("fv")) if isinstance(item, Mapping) else (None, None)
    if isinstance(letter, str) and letter:
        return _BY_LETTER.get(letter, "other")
    return _BY_FLAG.get(flag, "other") if isinstance(flag, int) else "other"


AnyItem = Annotated[
    Annotated[BallItem, Tag("ball")]
    | Annotated[WicketItem, Tag("wicket")]
    | Annotated[OverItem, Tag("over")]
    | Annotated[OtherItem, Tag("other")],
    Discriminator(item_kind),
]


class ScorecardInnings(Response):
    """One innings of getSC4."""

    c: Key  # the side at the bat
    d: str | None = None  # "421/5d(690": balls, or overs where there is a dot
    b: list[str] = []  # KEY.runs.balls.4s.6s.../...
    a: list[str] = []  # KEY.runs.balls.maidens.wickets


class SquadsResponse(Response):
    """getIV4."""

    t: Annotated[str, Field(pattern=r"^[0-9A-Za-z]{1,8}-[0-9A-Za-z]{1,8}$")]
    tp: Line = ""  # who plays: teams split by "/", players by "-", KEY.matches.role.x.foreign.injured
    tb: Line = ""  # the squads
    x: Line = ""  # captain/keeper/captain/keeper


class ListedMatch(Response):
    """One match of getLiveMatches."""

    b: Key
    c: Key
    j: str | None = None
    k: str | None = None
    l: str | None = None  # noqa: E741
    m: str | None = None
    res: str | None = None
    result: str | None = None
    ac: str | None = None
    ti: int | str | None = None  # milliseconds
    q: str | None = None  # "^" and the series' key
    finished_at: int | str | None = Field(default=None, alias="finishTime")

    @property
    def named_teams(self) -> tuple[Team | None, Team | None]:
        return None, None

    @property
    def start_time(self) -> datetime | None:
        return _moment(self.ti)


_MOST_SECONDS = 10**11  # a larger number counts milliseconds


def _moment(value: Any) -> datetime | None:
    return parsing.moment(value, per_second=1 if (parsing.integer(value) or 0) < _MOST_SECONDS else 1000)


FIXTURE_KEYS = ("mf", "matchFkey")  # names of the field with the match's key


class ListedFixture(ListedMatch):
    """One match of getFixture. Some rows name the teams and not their keys."""

    match_key: Annotated[Key, BeforeValidator(lambda key: str(key) if isinstance(key, int) else key)] = Field(
        validation_alias=AliasChoices(*FIXTURE_KEYS)
    )
    b: MaybeKey = ""
    c: MaybeKey = ""
    team1: Maybe = None
    team2: Maybe = None
    short1: Maybe = Field(default=None, alias="t1SName")
    short2: Maybe = Field(default=None, alias="t2SName")
    t: Maybe = None  # the start, as a time
    date: Maybe = None
    time: Maybe = None

    @model_validator(mode="after")
    def has_two_teams(self) -> ListedFixture:
        if not all(key or team for key, team in zip((self.b, self.c), self.named_teams, strict=True)):
            raise ValueError("no keys (b, c) and no names (team1, team2) of the teams")
        return self

    @property
    def named_teams(self) -> tuple[Team | None, Team | None]:
        first, second = (
            Team(name=name, short_name=parsing.text(short, 24)) if (name := parsing.text(team, 120)) else None
            for team, short in ((self.team1, self.short1), (self.team2, self.short2))
        )
        return first, second

    @property
    def start_time(self) -> datetime | None:
        whole = super().start_time or _moment(self.t) or parsing.iso_moment(self.t)
        return whole or parsing.iso_moment(f"{self.date}T{self.time}")


class MetaTeam(Response):
    name: str
    fkey: Key


class MatchMeta(Response):
    """The required fields of a page's `match-KEY`."""

    fkey: str
    team1: MetaTeam
    team2: MetaTeam


def scorecard_innings(response: Any) -> dict[int, ScorecardInnings]:
    """Returns the readable innings by number, whatever is wrong with others; raises SchemaBreak where none is."""
    listed = response.get("innings") if isinstance(response, dict) else response
    innings = {
        number: one
        for number, row in enumerate(listed[:MAX_INNINGS] if isinstance(listed, list) else (), start=1)
        if (one := parsing.readable(ScorecardInnings, row, schema=SCORECARD, path="innings[]")) is not None
    }
    if response is not None and listed != [] and not innings:
        parsing.validated(list[ScorecardInnings], listed, schema=SCORECARD, path="innings")
    return innings


def readable_innings(response: Any) -> dict[int, ScorecardInnings]:
    """Returns the same for a reading that can do without the scorecard: without innings where it cannot be read."""
    try:
        return scorecard_innings(response)
    except SchemaBreak as broken:
        broken_parts.note("innings", str(broken))
        return {}
