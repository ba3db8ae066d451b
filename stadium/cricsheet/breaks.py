"""Breaks of play in a recorded match. They are invented: a recording only has the days of the match."""

from __future__ import annotations

from stadium.cricket.script import NoticeKind
from stadium.cricsheet.document import Document

Place = tuple[int, int]  # innings and over, both from 0: the break follows that over

TEXTS = {
    NoticeKind.DRINKS: "Drinks Break",
    NoticeKind.LUNCH: "Lunch Break",
    NoticeKind.TEA: "Tea Break",
    NoticeKind.STUMPS: "Stumps",
    NoticeKind.RAIN: "Match delayed by rain",
    NoticeKind.INNINGS_BREAK: "Innings Break",
}
SECONDS = {  # shorter than real breaks, so that a Test can be played in minutes
    NoticeKind.DRINKS: 240.0,
    NoticeKind.LUNCH: 900.0,
    NoticeKind.TEA: 600.0,
    NoticeKind.STUMPS: 1800.0,
    NoticeKind.RAIN: 900.0,
    NoticeKind.INNINGS_BREAK: 600.0,
}
_DAY = (
    (1 / 6, NoticeKind.DRINKS),
    (1 / 3, NoticeKind.LUNCH),
    (1 / 2, NoticeKind.DRINKS),
    (2 / 3, NoticeKind.TEA),
    (5 / 6, NoticeKind.DRINKS),
)
_SHORTEST_DAY = 12  # overs; a shorter one has no meals
_LONG_INNINGS = 40  # overs; a shorter one has no drinks break


def breaks(document: Document) -> dict[Place, NoticeKind]:
    """Divides the overs evenly between the days of the match; there is no break at the end of the match."""
    places = [(number, place) for number, innings in enumerate(document.innings) for place in range(len(innings.overs))]
    found: dict[Place, NoticeKind] = {}
    days = len(document.info.dates)
    for day in range(days):
        begin, end = (round(len(places) * edge / days) for edge in (day, day + 1))
        if document.is_multi_day and end - begin >= _SHORTEST_DAY:
            found |= {places[begin + int((end - begin) * share) - 1]: kind for share, kind in _DAY}
        if day + 1 < days and 0 < end < len(places):
            found[places[end - 1]] = NoticeKind.STUMPS
    if (document.info.overs or 0) >= _LONG_INNINGS:
        found = _drinks(document) | found
    return {place: kind for place, kind in found.items() if kind is NoticeKind.STUMPS or not _ends(document, place)}


def _drinks(document: Document) -> dict[Place, NoticeKind]:
    third = (document.info.overs or 0) // 3
    return {
        (number, place): NoticeKind.DRINKS
        for number, innings in enumerate(document.innings)
        for place in (third - 1, 2 * third - 1)
        if place < len(innings.overs) and not innings.super_over
    }


def _ends(document: Document, place: Place) -> bool:
    """True at the end of an innings, which has its own break."""
    return place[1] == len(document.innings[place[0]].overs) - 1
