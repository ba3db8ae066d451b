"""The fixtures (getFixture): twenty matches a page, those with a page below zero are past."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import orjson

from scraping.errors import LayoutChanged
from scraping.payloads import DiscoveredMatch
from scraping.sources import parsing
from scraping.sources.base import ListPlan, Reading, Request
from scraping.sources.crex import addresses, blob, schemas
from scraping.sources.crex.listing import names_in, of_item
from scraping.sources.crex.schemas import ListedMatch

_PAGES = (-1, 0, 1)
_NAME = "fixtures"


def plan(base_url: str) -> ListPlan:
    """The page of the schedule brings the names; a day's matches are on the pages around the present."""
    base, headers = base_url.rstrip("/"), addresses.headers_of(base_url)
    body = {"tl": [], "type": "all", "wise": "1", "lang": "en", "formatType": ""}
    asked = (
        Request(
            f"{_NAME}{page}",
            addresses.hosts_of(base_url).fixtures,
            "POST",
            orjson.dumps({**body, "page": page}),
            {**headers, "Content-Type": "application/json"},
        )
        for page in _PAGES
    )
    url = f"{base}/schedule"
    return ListPlan(url=url, endpoints=(), requests=(Request("page", url), *asked))


def matches_of(reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
    """The matches that start on this day (UTC). LayoutChanged where there is no list at all."""
    page = reading.document("page")
    state = (blob.page_state(page.text()) if page else None) or {}
    names = names_in(state)
    answers = [answer for name in _PAGES if (answer := _answer(reading, f"{_NAME}{name}")) is not None]
    if not answers:
        answers = list(blob.answers(state, blob.FIXTURES))
    if not answers:
        raise LayoutChanged("no fixtures found; tried getFixture and the page's state", url=base_url)
    built = f"{base_url.rstrip('/')}/cricket-live-score/match-updates-"
    found: dict[str, DiscoveredMatch] = {}
    for row in (row for answer in answers for row in _rows(answer)):
        item = parsing.validated(ListedMatch, row, schema=schemas.LIST, url=base_url)
        key = item.mf or ""
        match = of_item(key, item, url=built + key, names=names, captured_at=reading.captured_at)
        if match.start_time is not None and match.start_time.date() == day:
            found.setdefault(key, match)
    return list(found.values())


def _answer(reading: Reading, name: str) -> Any:
    document = reading.document(name)
    if document is None or document.status >= 400:
        return None
    data = document.json()
    parsing.raise_if_error_body(data, document.url)
    return data


def _rows(answer: Any) -> Iterator[Mapping[str, Any]]:
    """The matches in an answer, which groups them by day or series: whatever has the key of a match is one."""
    if isinstance(answer, dict):
        if parsing.text(answer.get("mf"), 20):
            yield answer
        else:
            for value in answer.values():
                yield from _rows(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from _rows(value)
