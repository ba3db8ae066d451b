"""The list of matches: the list answer, the page's blob, or the cards on the page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urljoin

from parsel import Selector

from scraping.errors import LayoutChanged, SchemaBreak
from scraping.payloads import DiscoveredMatch, Sport, Status
from scraping.sources import challenge, loose
from scraping.sources.base import Document, Reading
from scraping.sources.crex import blob, status
from scraping.sources.crex.dom import EVIDENCE_CHARACTERS
from scraping.sources.crex.facts import Facts, with_mapping
from scraping.sources.crex.live import parse_total

CARDS = (".live-card", ".match-card-container", ".match-card", "[class*='match-card']")
_KEY = re.compile(r"-match-updates-([0-9A-Za-z]{1,8})(?=[/?#]|$)|/scoreboard/([0-9A-Za-z]{1,8})/")
_KEY_SHAPE = re.compile(r"[0-9A-Za-z]{1,8}", re.ASCII)


def matches_of(reading: Reading, base_url: str) -> list[DiscoveredMatch]:
    """The matches, by the first way that shows any. LayoutChanged where no list can be found."""
    page = reading.document("page")
    html = page.text() if page else ""
    state = blob.page_state(html) if html else None
    if page is not None and state is None:
        challenge.raise_if_challenge(html, page.url)
    cards = _cards(html, page.url if page else base_url)
    listed = _listed(reading.document("list"))
    if listed is None and state is not None:
        listed = _as_list(blob.answer(state, blob.MATCH_LIST))
    if listed is not None:
        names = _names(state or {})
        built = f"{base_url.rstrip('/')}/cricket-live-score/match-updates-"
        urls = {key: cards[key][0] if key in cards else built + key for key in listed}
        return [
            _of_item(key, item, url=urls[key], names=names, captured_at=reading.captured_at)
            for key, item in listed.items()
        ]
    if cards:
        return [_of_card(key, url, card, reading.captured_at) for key, (url, card) in cards.items()]
    raise LayoutChanged(
        f"no list of matches found; tried the list answer, the page's state and {', '.join(CARDS)}",
        url=page.url if page else base_url,
        evidence=html[:EVIDENCE_CHARACTERS],
    )


def match_key(url: str) -> str:
    """The match key in a page's address, old or new form; empty if there is none."""
    found = _KEY.search(url)
    return (found.group(1) or found.group(2)) if found else ""


def _listed(document: Document | None) -> dict[str, Mapping[str, Any]] | None:
    if document is None or document.status >= 400:
        return None
    try:
        data = document.json()
    except SchemaBreak:
        challenge.raise_if_challenge(document.text(), document.url)
        return None
    challenge.raise_if_error_body(data, document.url)
    return _as_list(data)


def _as_list(data: Any) -> dict[str, Mapping[str, Any]] | None:
    """The items by match key; None if this is not a list (an empty one is)."""
    if not isinstance(data, dict):
        return None
    items: dict[str, Mapping[str, Any]] = {
        key: item
        for key, item in data.items()
        if _KEY_SHAPE.fullmatch(key) and isinstance(item, dict) and ("b" in item or "c" in item)
    }
    return items if items or not data else None


def _cards(html: str, page_url: str) -> dict[str, tuple[str, Selector]]:
    """Address and card by match key."""
    cards: dict[str, tuple[str, Selector]] = {}
    root = Selector(text=html or "<html></html>", type="html")
    for selector in (*CARDS, "body"):
        for card in root.css(selector):
            for href in card.css("a::attr(href)").getall():
                if key := match_key(href):
                    cards.setdefault(key, (_absolute(page_url, href), card))
        if cards:
            break
    return cards


def _absolute(page_url: str, href: str) -> str:
    try:
        return urljoin(page_url, href)
    except ValueError:
        return href


def _of_item(key: str, item: Mapping[str, Any], *, url: str, names: Facts, captured_at: datetime) -> DiscoveredMatch:
    start_time = loose.moment(item.get("ti"), per_second=1000)
    sides = [loose.text(item.get(side), 20) for side in ("b", "c")]
    known = [names.teams[side].name if side in names.teams else side for side in sides]
    return DiscoveredMatch(
        source_event_id=key,
        url=url,
        title=" v ".join(filter(None, known)),
        sport=Sport.CRICKET,
        status=_status(item, start_time, captured_at),
        start_time=start_time,
    )


def _status(item: Mapping[str, Any], start_time: datetime | None, now: datetime) -> Status:
    result = status.first_result(item.get("res"), item.get("result"))
    totals = [parse_total(loose.text(item.get(name))) for name in ("j", "k", "l", "m")]
    sentences = tuple(loose.plain(item.get(name)) for name in ("res", "ac"))
    judged, _ = status.judge(
        result=result,
        sentences=sentences,
        has_play=any(total is not None and total.has_play for total in totals),
        start_time=start_time,
        now=now,
    )
    return Status.COMPLETED if judged is Status.LIVE and item.get("finishTime") else judged


def _of_card(key: str, url: str, card: Selector, now: datetime) -> DiscoveredMatch:
    names = [" ".join(" ".join(name.css("::text").getall()).split()) for name in card.css(".team-name")[:2]]
    printed = tuple(loose.plain(text) for text in card.css(".comment, .result, .reason, .not-started").getall())
    tag = " ".join(card.css(".liveTag::text").getall())
    scores = " ".join(card.css(".team-score ::text, .total-overs ::text").getall())
    judged, _ = status.judge(
        result=status.first_result(*printed),
        sentences=printed,
        has_play=bool(re.search(r"\d[-/]\d", scores)) or "live" in tag.lower(),
        start_time=None,
        now=now,
    )
    title = loose.text(" v ".join(filter(None, names)))
    return DiscoveredMatch(source_event_id=key, url=url, title=title, sport=Sport.CRICKET, status=judged)


def _names(state: Mapping[str, Any]) -> Facts:
    facts = Facts()
    for answer in blob.answers(state, blob.MAPPING):
        facts = with_mapping(facts, answer)
    return facts
