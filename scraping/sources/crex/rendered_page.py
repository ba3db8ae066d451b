"""The rendered page: the last resort when neither the live response nor the page's embedded state can be read.

Every field has several selectors, the newest first. The result is a partial state: short names and no event ids.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from parsel import Selector

from scraping.errors import LayoutChanged
from scraping.payloads import Innings, LastEvent, MatchState, Sport, Team, Teams, score_of
from scraping.sources import parsing
from scraping.sources.base import Document, Reading
from scraping.sources.crex import texts
from scraping.sources.crex.live import SIDES
from scraping.sources.crex.payload import title_of
from scraping.sources.crex.texts import Total, parse_total

HEADERS = (".team-inning", ".team-innings", ".team-content", ".live-c-w .team-score", ".team-info")
NAMES = (".team-name", ".team-content .name", "[class*='team-name']")
SCORES = (".team-score .runs span", ".runs span", ".team-score span", ".total-overs", "span")
RESULTS = (".final-result", ".team-result .result-box span", ".result-box", ".comment", ".reason", ".result")
VENUES = (".match-venue", "[class*='venue']")
SERIES = (".s-name", ".snameTag")
TOSS = (".toss-wrap p",)
DATES = (".match-date",)
COMMENTARY = (".cm-b-roundcard",)
STRIP = "#slideOver .overs-slide"
EVIDENCE_CHARACTERS = 20_000

_SCORE = re.compile(r"\d{1,4}[-/]\d{1,2}(?:\s?d(?:ec)?\b)?", re.ASCII)
_OVERS = re.compile(r"\(\s*(\d{1,3}(?:\.\d)?)(?:\s*ov)?\s*\)", re.ASCII)


@dataclass(frozen=True)
class Header:
    """One side of the match header."""

    name: str
    total: Total | None


def state_of_page(page: Document, reading: Reading) -> MatchState:
    """Returns the state that the page shows; raises LayoutChanged, with the page as evidence, without two teams."""
    root = Selector(text=page.text() or "<html></html>", type="html")
    sides = headers(root)
    if len(sides) < 2:
        raise LayoutChanged(
            f"no match header found; tried {', '.join(HEADERS)} with {', '.join(NAMES)}",
            url=page.url,
            evidence=page.text()[:EVIDENCE_CHARACTERS],
        )
    printed = tuple(filter(None, (_texts(root, selector) for selector in RESULTS)))
    result = texts.first_result(*printed)
    innings = _innings(sides)
    start_time = parsing.iso_moment(_first(root, DATES))
    state_of_play, phase = texts.status_and_phase(
        result=result, sentences=printed, has_play=bool(innings), start_time=start_time, now=reading.captured_at
    )
    series = _first(root, SERIES)
    return MatchState(
        sport=Sport.CRICKET,
        title=title_of(sides[0].name, sides[1].name, ""),
        status=state_of_play,
        phase=phase,
        teams=Teams(team_a=_team(sides[0]), team_b=_team(sides[1])),
        score=score_of(innings),
        innings=innings,
        current_innings=len(innings) or None,
        toss=texts.toss_in(_first(root, TOSS)),
        venue=_first(root, VENUES),
        start_time=start_time,
        last_event=_last_event(root),
        result=result,
        metadata={"series": series} if series else {},
    )


def headers(root: Selector) -> list[Header]:
    """Returns the sides by the first selector that finds two of them with names."""
    for selector in HEADERS:
        sides = [side for side in map(_header, root.css(selector)) if side.name]
        if len(sides) >= 2:
            return sides[:2]
    return []


def _header(node: Selector) -> Header:
    """Distinguishes score and overs by the bracket: the second side has them in reverse order."""
    for selector in SCORES:
        printed = " ".join(node.css(f"{selector} ::text, {selector}::text").getall())
        scores, overs = _SCORE.findall(printed), _OVERS.findall(printed)
        if scores:  # of two innings in one line the later one
            played = (f"({overs[-1]}" if "." in overs[-1] else f"({overs[-1]}.0") if overs else ""
            return Header(_first(node, NAMES), parse_total(scores[-1] + played))
    return Header(_first(node, NAMES), None)


def _innings(sides: list[Header]) -> tuple[Innings, ...]:
    """Assumes that the first side shown is batting: the page does not say which side batted first."""
    begun = [(side, header.total) for side, header in zip(SIDES, sides, strict=True) if header.total is not None]
    return tuple(
        Innings(
            number=number,
            team=side,
            runs=total.runs,
            wickets=total.wickets,
            overs=total.overs,
            is_declared=total.is_declared,
        )
        for number, (side, total) in enumerate(reversed(begun), start=1)
        if total.has_play
    )


def _team(header: Header) -> Team:
    return Team(name=header.name, short_name=header.name[:24])


def _last_event(root: Selector) -> LastEvent | None:
    for selector in COMMENTARY:
        for card in root.css(selector)[:1]:
            code, said = _texts(card, ".cm-b-ballupdate"), _texts(card, ".cm-b-comment-c1")
            if code:
                kind = texts.recognized_code(code, ".cm-b-ballupdate").kind
                return LastEvent(type=kind, description=f"{_texts(card, '.cm-b-over')} {said}".strip())
    return _last_on_strip(root)


def _last_on_strip(root: Selector) -> LastEvent | None:
    """Returns the newest ball of the overs strip, whose last over comes last."""
    for slide in root.css(STRIP)[-1:]:
        balls = [text for ball in slide.css(".over-ball") if (text := " ".join(ball.css("::text").getall()).strip())]
        if balls:
            kind = texts.recognized_code(balls[-1], ".over-ball").kind
            return LastEvent(type=kind, description=f"{_texts(slide, 'span')}: {balls[-1]}")
    return None


def _first(node: Selector, selectors: tuple[str, ...]) -> str:
    return next(filter(None, (_texts(node, selector, 120) for selector in selectors)), "")


def _texts(node: Selector, selector: str, limit: int = 500) -> str:
    found = node.css(selector)
    return parsing.text(" ".join(" ".join(found[0].css("::text").getall()).split()), limit) if found else ""
