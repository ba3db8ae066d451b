"""The pages of plays: one event for each delivery, and one for each wicket.

The list runs from the first ball of the match to the last, 25 to a page, so the newest are on the LAST page, and only
a response has the number of pages. A poll requests the list itself, which is page 1 with that number, and then the last
page (`follow_up`); `older_events` pages backwards from there. Where the list has the current innings only, those before
it are requested by number. Positions come from `over.unique`, which counts wides and no-balls, so that a page that
begins within an over has them too; `date` is the time of the session, not of the ball.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any

from scraping import event_keys
from scraping.errors import PayloadRejected
from scraping.payloads import Event
from scraping.sources import cricket, parsing
from scraping.sources.broken_parts import is_broken
from scraping.sources.espn import site
from scraping.sources.espn.schemas import PLAYS, Dismissal, Play, Plays
from scraping.sources.parsing import note_unrecognized, readable

_EXTRAS = tuple(
    (re.compile(pattern, re.IGNORECASE), mark)
    for pattern, mark in ((r"no[ -]?ball", "nb"), (r"\bwides?\b", "wd"), (r"leg[ -]?byes?", "lb"), (r"\bbyes?\b", "b"))
)
_NOT_OUT = re.compile(r"retired\s*-?\s*(?:hurt|not out|ill)|\bhurt\b|not out", re.IGNORECASE)
_KNOWN_TYPES = frozenset(
    {"run", "runs", "no run", "four", "six", "wide", "no ball", "bye", "leg bye", "out", "wicket", "penalty"}
)
_MOST_IN_OVER = 60  # an over of more deliveries than that is a fault of the source


def page_of(data: Any, url: str) -> Plays | None:
    """Returns a page of the list, without items that are commentary between the balls; None for another response."""
    commentary = parsing.mapping(data).get("commentary")
    listed = parsing.mapping(commentary).get("items")
    if isinstance(listed, list):
        balls = [item for item in listed if not isinstance(item, dict) or item.get("over") is not None]
        commentary = {**parsing.mapping(commentary), "items": balls, "listed": len(listed)}
    page = readable(Plays, commentary, schema=PLAYS, url=url, path="commentary")
    if page is None or page.page_index is not None:
        return page
    return page.model_copy(update={"page_index": site.number_in(url, "page") or 1})


def are_all(pages: Sequence[Plays]) -> bool:
    if not pages or is_broken("items") or any(play.period > 1 for play in pages[0].items[:1]):
        return False
    numbers, listed = {page.page_index for page in pages}, sum(page.listed for page in pages)
    wanted = max(page.page_count or 0 for page in pages)
    return wanted > 0 and numbers >= set(range(1, wanted + 1)) and all(page.count == listed for page in pages)


def refuse_others(plays: Sequence[Play], team_ids: Collection[str]) -> None:
    """Raises PayloadRejected where the batting side is none of the match's two: plays do not name their match."""
    stated = (play.batting_team_id for play in plays if play.batting_team_id is not None)
    strange = next((team for team in stated if team not in team_ids), None)
    if strange is not None:
        raise PayloadRejected(f"the plays are about another match: team {strange[:40]} bats in them")


def events_of(
    plays: Sequence[Play], fallen: cricket.Fallen = cricket.NONE_FALLEN, per_over: int = 6
) -> tuple[Event, ...]:
    """Returns the events, newest first, each id once; `plays` may be in any order."""
    unique = {play.id: play for play in plays}
    ordered = sorted(unique.values(), key=lambda play: (*_over(play), play.over.unique or 0.0, play.sequence or 0))
    own_extras = _own_extras(ordered)
    found: list[Event] = []
    for play, index in zip(ordered, _indexes(ordered), strict=True):
        ball = cricket.ball_event(
            parsing.text(play.id, 118),
            _code(play, has_own_extras=play.id in own_extras),
            (play.period, play.over.number - 1, index),
            label=_label(play),
            runs=play.score_value,
            score=""
            if None in (play.innings_runs, play.innings_wickets)
            else f"{play.innings_runs}/{play.innings_wickets}",
            description=parsing.plain(" ".join(filter(None, (play.short_text, play.text)))) or play.type[:500],
            happened_at=parsing.moment(play.bbb_timestamp, per_second=1000),
            batter=parsing.plain(play.batsman, 120),
            bowler=parsing.plain(play.bowler, 120),
        )
        found.append(ball)
        out = play.dismissal
        if out is not None and _counts(out):
            player = parsing.plain(out.batsman or play.batsman, 120)
            found.append(cricket.dismissal_event(ball, play.innings_wickets, player, _manner(out, player)))
    return tuple(reversed(cricket.with_unnamed_wickets(found, fallen, per_over)))


def _manner(out: Dismissal, player: str) -> str:
    """Returns the manner of the dismissal without the batter's name, with which the source's text begins."""
    text = parsing.plain(out.text, 200)
    for stated in (player, out.batsman_full, out.batsman_name, out.batsman_short):
        name = parsing.plain(stated)
        if name and re.match(rf"{re.escape(name)}(?:[:,\s]|$)", text, re.IGNORECASE):
            text = text[len(name) :].strip(":, ")
    return text or parsing.plain(out.type, 60)


def _over(play: Play) -> tuple[int, int]:
    return play.period, play.over.number


def _indexes(ordered: Sequence[Play]) -> list[int | None]:
    """Returns positions within overs: stated, counted where these repeat, None where a play has been left out."""
    stated = [_stated_index(play) for play in ordered]
    counts = Counter((_over(play), index) for play, index in zip(ordered, stated, strict=True))
    doubtful = {over for (over, index), count in counts.items() if count > 1 or index is None}
    is_start = bool(ordered) and ordered[0].over.ball <= 1 and _over(ordered[0]) == (1, 1)
    counted = event_keys.indexes(map(_over, ordered), begins_with_the_over=is_start)
    return [
        by_statement if _over(play) not in doubtful else None if is_broken("items") else by_count
        for play, by_statement, by_count in zip(ordered, stated, counted, strict=True)
    ]


def _stated_index(play: Play) -> int | None:
    """Reads `unique` 11.05 (the tenth is 11.1, for 11.10), else `sequence` 101105."""
    if play.over.unique is not None:
        whole, index = divmod(round(play.over.unique * 100), 100)
    else:
        whole, index = divmod((play.sequence or 0) - play.period * event_keys.FIRST_POSITION, 100)
    return index if whole == play.over.number - 1 and 1 <= index <= _MOST_IN_OVER else None


def _own_extras(ordered: Sequence[Play]) -> set[str]:
    """Returns the ids of deliveries with extras of their own: what all balls of an over share is its total."""
    found: set[str] = set()
    for _, group in groupby(ordered, key=_over):
        balls = list(group)
        if len(balls) == 1 or len({(one.over.wide, one.over.no_ball) for one in balls}) > 1:
            found |= {play.id for play in balls}
    return found


def _counts(out: Dismissal) -> bool:
    """Returns whether the dismissal is a wicket: the source also marks a batter who retires hurt and may come back."""
    return bool(out.dismissal) and not _NOT_OUT.search(" ".join(filter(None, (out.type, out.retired_text))))


def _code(play: Play, *, has_own_extras: bool) -> str:
    """Returns a code like "4", "1nb" or "W", from the type of the play, then its sentence, then the over's figures."""
    if play.dismissal is not None and _counts(play.dismissal):
        return "W"
    kind = play.type.strip().lower()
    if kind not in _KNOWN_TYPES:
        note_unrecognized("commentary.items[].playType.description", kind)
    figures = {"nb": play.over.no_ball, "wd": play.over.wide} if has_own_extras else {}
    said = (kind, (play.short_text or "").partition(",")[2])
    marks = (mark for pattern, mark in _EXTRAS if any(map(pattern.search, said)) or (figures.get(mark) or 0) > 0)
    return f"{play.score_value}{next(marks, '')}"


def _label(play: Play) -> str:
    """Returns a label like "11.5"; `overs` of a wide or no-ball is the label of the next ball."""
    over = play.over.number - 1
    for stated in (play.over.actual, play.over.overs):
        whole, ball = divmod(round((stated or 0) * 10), 10)
        if whole == over and ball:
            return f"{over}.{ball}"
    return f"{over}.{max(play.over.ball, 1)}"[:10]
