"""The list of live matches (list response, its copy in the page, or the page's match cards) and the fixtures.

The fixtures (getFixture) are twenty matches a page; pages below zero are past.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any

import orjson
from parsel import Selector

from scraping.errors import LayoutChanged, SchemaBreak
from scraping.payloads import DiscoveredMatch, Sport, Status, Team
from scraping.sources import markup, parsing
from scraping.sources.base import ListPlan, Reading, Request
from scraping.sources.crex import schemas, site, texts
from scraping.sources.crex.details import MatchDetails, with_mapping
from scraping.sources.crex.schemas import FIXTURE_KEYS, ListedFixture, ListedMatch
from scraping.sources.crex.site import match_key
from scraping.sources.crex.texts import parse_total
from scraping.sources.parsing import LIST_ROW

CARDS = (".live-card", ".match-card-container", ".match-card", "[class*='match-card']")
_KEY_SHAPE = re.compile(r"[0-9A-Za-z]{1,8}", re.ASCII)
_SCORE = re.compile(r"\d[-/]\d", re.ASCII)
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
    names = with_mapping(MatchDetails(), *site.embedded_responses(state, site.MAPPING))
    listed, broken = None, None

    def match_of(row: tuple[str, Any]) -> DiscoveredMatch:
        key, item = row[0], parsing.validated(ListedMatch, row[1], schema=schemas.LIST, path="matches[]")
        url = cards[key][0] if key in cards else _match_url(key, base_url)
        return _of_item(key, item, names, reading, url=url)

    def matches_in(data: Any) -> list[DiscoveredMatch] | None:
        rows = _rows_in(data)
        return None if rows is None else parsing.unique_matches(rows.items(), match_of)

    try:
        listed = site.first_parsed(document, page, site.MATCH_LIST, matches_in)
    except SchemaBreak as failure:
        broken = failure
    if listed is not None:
        return listed
    if cards:
        return parsing.unique_matches(cards.items(), lambda row: _of_card(row[0], *row[1], reading.captured_at))
    if document is not None:
        parsing.raise_if_challenge(document.text(), document.url)
    raise broken or LayoutChanged(
        f"no list of matches found; tried the list response, the page's state and {', '.join(CARDS)}",
        url=url,
        evidence=html[: parsing.EVIDENCE_CHARACTERS],
        selector=", ".join(CARDS),
    )


def _match_url(key: str, base_url: str) -> str:
    return f"{base_url.rstrip('/')}/cricket-live-score/match-updates-{key}"


def _rows_in(data: Any) -> dict[str, Any] | None:
    """Returns the rows by match key, or None where this is no list of matches; notes what is no row in a list."""
    parsing.raise_if_error_body(data, "")
    if not isinstance(data, dict):
        return None
    rows = {key: row for key, row in data.items() if _KEY_SHAPE.fullmatch(key) and isinstance(row, dict)}
    is_list = not data or any("b" in row or "c" in row for row in rows.values())
    if not is_list:
        return None
    for key in data:
        if key not in rows:
            parsing.note_unrecognized(LIST_ROW, f"{schemas.LIST}: {key} (not a match)")
    return rows


def _cards(html: str, page_url: str) -> dict[str, tuple[str, Selector]]:
    """Returns address and card by match key; notes a link to a match that is no address."""
    cards: dict[str, tuple[str, Selector]] = {}
    root = markup.tree_of(html)
    for selector in (*CARDS, "body"):
        for card in root.css(selector):
            for href in card.css("a::attr(href)").getall():
                if not (key := match_key(href)):
                    continue
                if address := parsing.joined(page_url, href):
                    cards.setdefault(key, (address, card))
                else:
                    parsing.note_unrecognized(LIST_ROW, f"not an address: {href}")
        if cards:
            break
    return cards


def _of_item(key: str, item: ListedMatch, names: MatchDetails, reading: Reading, *, url: str) -> DiscoveredMatch:
    start_time = item.start_time
    totals = [parse_total(score.strip()) for score in (item.j, item.k, item.l, item.m) if score]
    judged, _ = texts.status_and_phase(
        result=texts.first_result(item.res, item.result),
        sentences=tuple(map(parsing.plain, (item.res, item.ac))),
        has_play=any(total is not None and total.has_play for total in totals),
        start_time=start_time,
        now=reading.captured_at,
    )
    known = [names.teams.get(side) or named for side, named in zip((item.b, item.c), item.named_teams, strict=True)]
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
        has_play=bool(_SCORE.search(scores)) or "live" in tag.lower(),
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
        filled = {name: value for name, value in row.items() if value not in (None, "")}
        item = parsing.validated(ListedFixture, filled, schema=schemas.LIST, url=base_url)
        key = item.match_key
        if item.start_time is None:  # it belongs to no day
            raise SchemaBreak(f"{schemas.LIST}: the start of {key} (ti, t, date and time: missing or no time)")
        return _of_item(key, item, names, reading, url=_match_url(key, base_url))

    rows = [row for response in responses for row in _fixture_rows(response)]
    shown = len(_cards(page.text(), page.url)) if page and not rows else 0
    if not rows and (shown or any(map(_has_objects, responses))):
        message = f"the fixtures have no row with a match key (mf, matchFkey); the page shows {shown} matches"
        raise LayoutChanged(message, url=base_url, evidence=str(responses)[: parsing.EVIDENCE_CHARACTERS])
    return parsing.starting_on(day, parsing.unique_matches(rows, match_of))


def _has_objects(response: Any) -> bool:
    """Returns whether there is an object in a list, however deep: a row of a shape that is not known."""
    if isinstance(response, dict):
        return any(map(_has_objects, response.values()))
    return isinstance(response, list) and any(isinstance(one, dict) or _has_objects(one) for one in response)


def _fixture_rows(response: Any) -> Iterator[Mapping[str, Any]]:
    """Yields objects with a match key, at any depth, and flat objects beside one, which are matches without a key."""
    if isinstance(response, dict):
        if any(parsing.text(response.get(name), 20) for name in FIXTURE_KEYS):
            yield response
        else:
            for value in response.values():
                yield from _fixture_rows(value)
    elif isinstance(response, list):
        found = [list(_fixture_rows(value)) for value in response]
        for value, rows in zip(response, found, strict=True):
            is_flat = isinstance(value, dict) and not any(isinstance(one, dict | list) for one in value.values())
            yield from rows or ([value] if is_flat and any(found) else [])
