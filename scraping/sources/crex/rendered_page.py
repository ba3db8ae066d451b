"""The rendered page: the last resort when neither the live response nor the page's embedded state can be read.

Every field has several selectors, the newest first. The result is a partial state: short names and no event ids.
"""

import re
from dataclasses import replace

from parsel import Selector

from scraping.errors import LayoutChanged
from scraping.payloads import Innings, LastEvent, MatchState, Sport, Team, Teams, score_of
from scraping.sources import cricket, markup, parsing
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
COMMENTARY = ".cm-b-roundcard"
MAX_HEADERS = 8

_SCORE = re.compile(r"\d{1,4}[-/]\d{1,2}(?:\s?d(?:ec)?\b)?", re.ASCII)
_OVERS = re.compile(r"\(\s*(\d{1,3}(?:\.\d)?)(?:\s*ov)?\s*\)", re.ASCII)


def state_of_page(page: Document, reading: Reading) -> MatchState:
    """Returns the state that the page shows; raises LayoutChanged, with the page as evidence, without two teams."""
    root = markup.tree_of(page.text())
    sides = _headers(root)
    if not sides:
        raise LayoutChanged(
            f"no match header found; tried {', '.join(HEADERS)} with {', '.join(NAMES)}",
            url=page.url,
            evidence=page.text()[: parsing.EVIDENCE_CHARACTERS],
            selector=", ".join(HEADERS),
        )
    (name_a, _), (name_b, _) = sides
    printed = tuple(filter(None, (_first(root, (selector,), 500) for selector in RESULTS)))
    result = texts.first_result(*printed)
    innings = _innings([total for _, total in sides])
    start_time = parsing.iso_moment(_first(root, DATES))
    status, phase = texts.status_and_phase(
        result=result, sentences=printed, has_play=bool(innings), start_time=start_time, now=reading.captured_at
    )
    series = _first(root, SERIES)
    return MatchState(
        sport=Sport.CRICKET,
        title=title_of(name_a, name_b),
        status=status,
        phase=phase,
        teams=Teams(team_a=Team(name=name_a, short_name=name_a[:24]), team_b=Team(name=name_b, short_name=name_b[:24])),
        score=score_of(innings),
        innings=innings,
        current_innings=len(innings) or None,
        toss=cricket.toss_in(_first(root, TOSS)),
        venue=_first(root, VENUES),
        start_time=start_time,
        last_event=_last_event(root),
        result=result,
        metadata={"series": series} if series else {},
    )


def _headers(root: Selector) -> list[tuple[str, Total | None]]:
    for selector in HEADERS:
        sides = [(name, _total(node)) for node in root.css(selector)[:MAX_HEADERS] if (name := _first(node, NAMES))]
        if len(sides) >= 2:
            return sides[:2]
    return []


def _total(node: Selector) -> Total | None:
    """Distinguishes score and overs by the bracket: the second side has them in reverse order."""
    for selector in SCORES:
        printed = " ".join(node.css(f"{selector} ::text, {selector}::text").getall())
        scores, overs = _SCORE.findall(printed), _OVERS.findall(printed)
        if scores:  # of two innings in one line the later one
            played = (f"({overs[-1]}" if "." in overs[-1] else f"({overs[-1]}.0") if overs else ""
            return parse_total(scores[-1] + played)
    return None


def _innings(totals: list[Total | None]) -> tuple[Innings, ...]:
    """Assumes that the first side shown is batting: the page does not say which side batted first."""
    begun = [replace(total, team=side) for side, total in zip(SIDES, totals, strict=True) if total is not None]
    numbered = enumerate(reversed(begun), start=1)
    return tuple(Innings(number=number, **vars(total)) for number, total in numbered if total.has_play)


def _last_event(root: Selector) -> LastEvent | None:
    for card in root.css(COMMENTARY)[:1]:
        if code := _first(card, (".cm-b-ballupdate",)):
            kind = texts.recognized_code(code, ".cm-b-ballupdate").kind
            said = f"{_first(card, ('.cm-b-over',))} {_first(card, ('.cm-b-comment-c1',), 500)}"
            return LastEvent(type=kind, description=said.strip())
    return None


def _first(node: Selector, selectors: tuple[str, ...], limit: int = 120) -> str:
    for selector in selectors:
        for found in node.css(selector)[:1]:
            if text := parsing.text(" ".join(" ".join(found.css("::text").getall()).split()), limit):
                return text
    return ""
