"""The list of live matches (list response, its copy in the page, or the page's match cards) and the fixtures.

The fixtures (getFixture) are twenty matches a page; pages below zero are past.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime
from typing import Any
from urllib.parse import urljoin

import orjson
from parsel import Selector

from scraping.errors import LayoutChanged, SchemaBreak
from scraping.payloads import DiscoveredMatch, Sport, Status, Team
from scraping.sources import parsing
from scraping.sources.base import ListPlan, Reading, Request
from scraping.sources.crex import schemas, site, texts
from scraping.sources.crex.details import MatchDetails, with_mapping
from scraping.sources.crex.schemas import ListedMatch
from scraping.sources.crex.site import match_key
from scraping.sources.crex.texts import parse_total

CARDS = (".live-card", ".match-card-container", ".match-card", "[class*='match-card']")
_KEY_SHAPE = re.compile(r"[0-9A-Za-z]{1,8}", re.ASCII)
_FIXTURE_PAGES = (-1, 0, 1)
_FIXTURES = "fixtures"


def matches_of(reading: Reading, base_url: str) -> list[DiscoveredMatch]:
    """Returns the matches of the first place that lists any; raises LayoutChanged without a list."""
    page, document = reading.document("page"), reading.document("list")
    html, url = (page.text(), page.url) if page else ("", base_url)
    state = site.page_state(html)
    if state is None:
        parsing.raise_if_challenge(html, url)
    cards = _cards(html, url)
    listed, broken = None, None
    try:
        listed = site.first_parsed(document, page, site.MATCH_LIST, _as_list)
    except SchemaBreak as failure:
        broken = failure
    if listed is not None:
        names = with_mapping(MatchDetails(), *site.embedded_responses(state, site.MAPPING))
        urls = {key: card_url for key, (card_url, _) in cards.items()}
        return [
            _of_item(key, item, names, reading, url=urls.get(key) or _match_url(key, base_url))
            for key, item in listed.items()
        ]
    if cards:
        return [_of_card(key, card_url, card, reading.captured_at) for key, (card_url, card) in cards.items()]
    if document is not None:
        parsing.raise_if_challenge(document.text(), document.url)
    raise broken or LayoutChanged(
        f"no list of matches found; tried the list response, the page's state and {', '.join(CARDS)}",
        url=url,
        evidence=html[: parsing.EVIDENCE_CHARACTERS],
    )


def _match_url(key: str, base_url: str) -> str:
    return f"{base_url.rstrip('/')}/cricket-live-score/match-updates-{key}"


def _as_list(data: Any) -> dict[str, ListedMatch] | None:
    """Returns the items by match key, or None where this is no list; raises SchemaBreak for an invalid item."""
    parsing.raise_if_error_body(data, "")
    if not isinstance(data, dict):
        return None
    items = {
        key: item
        for key, item in data.items()
        if _KEY_SHAPE.fullmatch(key) and isinstance(item, dict) and ("b" in item or "c" in item)
    }
    if data and not items:
        return None
    return parsing.validated(dict[str, ListedMatch], items, schema=schemas.LIST, path="matches")


def _cards(html: str, page_url: str) -> dict[str, tuple[str, Selector]]:
    """Returns address and card by match key."""
    cards: dict[str, tuple[str, Selector]] = {}
    root = Selector(text=html or "<html></html>", type="html")
    for selector in (*CARDS, "body"):
        for card in root.css(selector):
            for href in card.css("a::attr(href)").getall():
                if key := match_key(href):
                    with suppress(ValueError):  # not an address
                        cards.setdefault(key, (urljoin(page_url, href), card))
        if cards:
            break
    return cards


def _of_item(key: str, item: ListedMatch, names: MatchDetails, reading: Reading, *, url: str) -> DiscoveredMatch:
    start_time = parsing.moment(item.ti, per_second=1000)
    totals = [parse_total(score.strip()) for score in (item.j, item.k, item.l, item.m) if score]
    judged, _ = texts.status_and_phase(
        result=texts.first_result(item.res, item.result),
        sentences=tuple(map(parsing.plain, (item.res, item.ac))),
        has_play=any(total is not None and total.has_play for total in totals),
        start_time=start_time,
        now=reading.captured_at,
    )
    known = [names.teams.get(side) for side in (item.b, item.c)]
    return DiscoveredMatch(
        source_event_id=key,
        url=url,
        title=" v ".join(team.name if team else side for team, side in zip(known, (item.b, item.c), strict=True)),
        sport=Sport.CRICKET,
        status=Status.COMPLETED if judged is Status.LIVE and item.finished_at else judged,
        start_time=start_time,
        teams=tuple(team for team in known if team) if all(known) else (),
        series=names.series_names.get((item.q or "").lstrip("^"), ""),
    )


def _of_card(key: str, url: str, card: Selector, now: datetime) -> DiscoveredMatch:
    names = [" ".join(" ".join(name.css("::text").getall()).split()) for name in card.css(".team-name")[:2]]
    names = [name for name in names if name]
    printed = tuple(parsing.plain(text) for text in card.css(".comment, .result, .reason, .not-started").getall())
    tag = " ".join(card.css(".liveTag::text").getall())
    scores = " ".join(card.css(".team-score ::text, .total-overs ::text").getall())
    judged, _ = texts.status_and_phase(
        result=texts.first_result(*printed),
        sentences=printed,
        has_play=bool(re.search(r"\d[-/]\d", scores)) or "live" in tag.lower(),
        start_time=None,
        now=now,
    )
    return DiscoveredMatch(
        source_event_id=key,
        url=url,
        title=parsing.text(" v ".join(names)),
        sport=Sport.CRICKET,
        status=judged,
        teams=tuple(Team(name=name[:120], short_name=name[:24]) for name in names) if len(names) == 2 else (),
        series=parsing.text(" ".join(card.css(".snameTag::text").getall())),
    )


def fixture_plan(base_url: str) -> ListPlan:
    """Requests the schedule page, which has the names, and the pages of fixtures around the present."""
    base, headers = base_url.rstrip("/"), site.headers_of(base_url)
    body = {"tl": [], "type": "all", "wise": "1", "lang": "en", "formatType": ""}
    requests = (
        Request(
            f"{_FIXTURES}{page}",
            f"{site.hosts_of(base_url)[1]}/fixture/getFixture",
            "POST",
            orjson.dumps({**body, "page": page}),
            {**headers, "Content-Type": "application/json"},
        )
        for page in _FIXTURE_PAGES
    )
    url = f"{base}/schedule"
    return ListPlan(url=url, endpoints=(), requests=(Request("page", url), *requests))


def fixtures_on(reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
    """Returns the matches that start on this day (UTC); raises LayoutChanged without a list."""
    page = reading.document("page")
    state = site.page_state(page.text() if page else "")
    names = with_mapping(MatchDetails(), *site.embedded_responses(state, site.MAPPING))
    documents = (reading.document(f"{_FIXTURES}{number}") for number in _FIXTURE_PAGES)
    responses = [parsing.json_body(one) for one in documents if one is not None]
    responses = responses or site.embedded_responses(state, site.FIXTURES)
    if not responses:
        raise LayoutChanged("no fixtures found; tried getFixture and the page's state", url=base_url)

    def match_of(row: Mapping[str, Any]) -> DiscoveredMatch:
        item = parsing.validated(ListedMatch, row, schema=schemas.LIST, url=base_url)
        key = item.mf or ""
        return _of_item(key, item, names, reading, url=_match_url(key, base_url))

    rows = (row for response in responses for row in _fixture_rows(response))
    return parsing.starting_on(day, parsing.unique_matches(rows, match_of))


def _fixture_rows(response: Any) -> Iterator[Mapping[str, Any]]:
    """Yields the matches in a response, which groups them by day or series: objects with a match key."""
    if isinstance(response, dict):
        if parsing.text(response.get("mf"), 20):
            yield response
        else:
            for value in response.values():
                yield from _fixture_rows(value)
    elif isinstance(response, list):
        for value in response:
            yield from _fixture_rows(value)
