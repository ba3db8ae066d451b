"""The pages of plays: one event for each delivery, and one for each wicket.

The list runs from the first ball of the match to the last, 25 to a page, so the newest are on the LAST page, and only
a response has the number of pages. A poll requests the list itself, which is page 1 with that number, and then the last
page (`follow_up`); `older_events` pages backwards from there. Where the list has the current innings only, those before
it are requested by number. Positions come from `over.unique`, which counts wides and no-balls, so that a page that
begins within an over has them too; `date` is the time of the session, not of the ball.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scraping import event_keys
from scraping.errors import PayloadRejected
from scraping.payloads import Event
from scraping.sources import cricket, parsing
from scraping.sources.cricket import ball_kind
from scraping.sources.espn.schemas import PLAYS, Dismissal, Person, Play, PlayByPlay
from scraping.sources.parsing import note_unrecognized, validated

_NO_BALL = re.compile(r"no[ -]?ball", re.IGNORECASE)
_WIDE = re.compile(r"\bwides?\b", re.IGNORECASE)
_LEG_BYE = re.compile(r"leg[ -]?byes?", re.IGNORECASE)
_BYE = re.compile(r"\bbyes?\b", re.IGNORECASE)
_NOT_OUT = re.compile(r"retired\s*-?\s*(?:hurt|not out|ill)|\bhurt\b|not out", re.IGNORECASE)
_KNOWN_TYPES = frozenset(
    {"run", "runs", "no run", "four", "six", "wide", "no ball", "bye", "leg bye", "out", "wicket", "penalty"}
)
_MOST_IN_OVER = 60  # an over of more deliveries than that is a fault of the source


@dataclass(frozen=True)
class Page:
    """One page of the list, oldest delivery first."""

    number: int
    pages: int
    count: int  # deliveries on all pages
    listed: int  # on this one, with what is no delivery
    plays: tuple[Play, ...]


def page_of(data: Any, url: str) -> Page:
    """Returns a page without its items that have no over: these are commentary between the balls."""
    commentary = parsing.mapping(parsing.mapping(data).get("commentary"))
    items = commentary.get("items")
    listed = items if isinstance(items, list) else None
    balls = [item for item in listed if not _is_talk(item)] if listed is not None else items
    whole = {**parsing.mapping(data), "commentary": {**commentary, "items": balls}} if commentary else data
    response = validated(PlayByPlay, whole, schema=PLAYS, url=url).commentary
    return Page(response.page_index, response.page_count, response.count, len(listed or ()), tuple(response.items))


def are_all(pages: Sequence[Page]) -> bool:
    """Returns whether these pages are the whole list, from the first ball of the match."""
    if any(play.period > 1 for page in pages[:1] for play in page.plays[:1]):
        return False
    have = {page.number: page.listed for page in pages}
    wanted = max((page.pages for page in pages), default=0)
    listed = sum(have.values())
    return bool(have) and set(have) >= set(range(1, wanted + 1)) and all(page.count == listed for page in pages)


def refuse_others(plays: Sequence[Play], team_ids: frozenset[str]) -> None:
    """Raises PayloadRejected where the batting side is none of the match's two: plays do not name their match."""
    strange = next((play.team.id for play in plays if play.team and play.team.id not in team_ids), None)
    if strange is not None:
        raise PayloadRejected(f"the plays are about another match: team {strange[:40]} bats in them")


def events_of(plays: Sequence[Play]) -> tuple[Event, ...]:
    """Returns the events, newest first, each id once; `plays` may be in any order."""
    unique = {play.id: play for play in plays}
    ordered = sorted(unique.values(), key=_order)
    indexes = _indexes(ordered)
    fine = _own_extras(ordered)
    found: list[Event] = []
    for play, index in zip(ordered, indexes, strict=True):
        found.append(_ball(play, index, has_own_extras=play.id in fine))
        if _counts(play.dismissal):
            found.append(_dismissal(play))
    return tuple(reversed(cricket.with_unnamed_wickets(found)))


def _is_talk(item: Any) -> bool:
    return isinstance(item, dict) and item.get("over") is None


def _order(play: Play) -> tuple[int, int, float, int]:
    over = play.over
    return play.period, over.number, over.unique if over.unique is not None else 0.0, play.sequence or 0


def _indexes(ordered: Sequence[Play]) -> list[int | None]:
    """Returns the position of each delivery within its over, counted where the stated positions repeat."""
    stated = [_stated_index(play) for play in ordered]
    twice = {
        place
        for place, count in Counter((p.period, p.over.number, i) for p, i in zip(ordered, stated, strict=True)).items()
        if count > 1 or place[2] is None
    }
    doubtful = {(period, over) for period, over, _ in twice}
    first = ordered[0] if ordered else None
    is_start = first is not None and first.over.ball <= 1 and (first.period, first.over.number) == (1, 1)
    counted = event_keys.indexes(((p.period, p.over.number) for p in ordered), begins_with_the_over=is_start)
    return [
        by_count if (play.period, play.over.number) in doubtful else by_word
        for play, by_word, by_count in zip(ordered, stated, counted, strict=True)
    ]


def _stated_index(play: Play) -> int | None:
    """Reads `unique` 11.05 (the tenth is 11.1, for 11.10), else `sequence` 101105."""
    over = play.over.number - 1
    if play.over.unique is not None:
        whole, index = divmod(round(play.over.unique * 100), 100)
    else:
        rest = (play.sequence or 0) - play.period * event_keys.FIRST_POSITION
        whole, index = divmod(rest, 100)
    return index if whole == over and 1 <= index <= _MOST_IN_OVER else None


def _own_extras(ordered: Sequence[Play]) -> frozenset[str]:
    """Returns the ids of deliveries whose `over.wide` and `over.noBall` are their own figures.

    Figures that all balls of an over share are taken for totals of the over, as `over.runs` is.
    """
    by_over: dict[tuple[int, int], list[Play]] = {}
    for play in ordered:
        by_over.setdefault((play.period, play.over.number), []).append(play)
    return frozenset(
        play.id
        for balls in by_over.values()
        if len(balls) == 1 or len({(one.over.wide, one.over.no_ball) for one in balls}) > 1
        for play in balls
    )


def _ball(play: Play, index: int | None, *, has_own_extras: bool) -> Event:
    over = play.over.number - 1
    code = _code(play, has_own_extras=has_own_extras)
    detail: dict[str, str | int | float | bool | None] = {
        "score": f"{play.innings.runs}/{play.innings.wickets}",
        "ball": code,
    }
    detail |= {name: who for name, who in (("batter", _name(play.batsman)), ("bowler", _name(play.bowler))) if who}
    return Event(
        id=parsing.text(play.id, 118),
        kind=ball_kind(code)[0],
        innings=play.period,
        over=_label(play),
        ordinal=event_keys.position(play.period, over, index) if index else None,
        slot=event_keys.ball(play.period, over, index) if index else "",
        runs=play.score_value,
        description=_description(play),
        happened_at=parsing.moment(play.bbb_timestamp, per_second=1000),
        detail=detail,
    )


def _dismissal(play: Play) -> Event:
    out = play.dismissal
    assert out is not None
    player = _name(out.batsman) or _name(play.batsman)
    how = parsing.plain(out.text, 200) or parsing.plain(out.type, 60)
    return Event(
        id=f"{parsing.text(play.id, 118)}:w",
        kind="dismissal",
        innings=play.period,
        over=_label(play),
        slot=event_keys.wicket(play.period, play.innings.wickets),
        description=parsing.text(f"{player} {how}".strip() or "Wicket"),
        happened_at=parsing.moment(play.bbb_timestamp, per_second=1000),
        detail={"player": player, "text": how, "wicket": play.innings.wickets},
    )


def _counts(out: Dismissal | None) -> bool:
    """Returns whether the dismissal is a wicket: the source also marks a batter who retires hurt and may come back."""
    if out is None or not out.dismissal:
        return False
    text = " ".join(filter(None, (out.type, out.retired_text)))
    return not _NOT_OUT.search(text)


def _code(play: Play, *, has_own_extras: bool) -> str:
    """Returns a code like "4", "1nb" or "W", from the type of the play, then its sentence, then the over's figures."""
    if _counts(play.dismissal):
        return "W"
    kind, runs = play.play_type.description.strip().lower(), play.score_value
    text = (play.short_text or "").partition(",")[2]
    if kind not in _KNOWN_TYPES:
        note_unrecognized("commentary.items[].playType.description", kind)
    if _NO_BALL.search(kind) or _NO_BALL.search(text) or (has_own_extras and play.over.no_ball > 0):
        return f"{runs}nb"
    if _WIDE.search(kind) or _WIDE.search(text) or (has_own_extras and play.over.wide > 0):
        return f"{runs}wd"
    if _LEG_BYE.search(kind) or _LEG_BYE.search(text):
        return f"{runs}lb"
    if _BYE.search(kind) or _BYE.search(text):
        return f"{runs}b"
    return str(runs)


def _label(play: Play) -> str:
    """Returns a label like "11.5"; `overs` of a wide or no-ball is the label of the next ball."""
    over = play.over.number - 1
    for stated in (play.over.actual, play.over.overs):
        if stated is not None:
            whole, ball = divmod(round(stated * 10), 10)
            if whole == over and ball:
                return f"{over}.{ball}"
    return f"{over}.{max(play.over.ball, 1)}"[:10]


def _description(play: Play) -> str:
    return parsing.plain(" ".join(filter(None, (play.short_text, play.text)))) or play.play_type.description[:500]


def _name(person: Person | None) -> str:
    return parsing.plain(person.athlete.display_name, 120) if person and person.athlete else ""
