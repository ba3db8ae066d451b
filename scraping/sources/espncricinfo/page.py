"""The script in which a page has its data: <script id="__NEXT_DATA__">, below props.appPageProps.data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from scraping.errors import LayoutChanged, PayloadRejected
from scraping.sources import parsing
from scraping.sources.base import Document, Reading
from scraping.sources.espncricinfo import schemas
from scraping.sources.parsing import validated

_SCRIPT = re.compile(r"""<script[^>]*\bid=["']__NEXT_DATA__["'][^>]*>(.*?)</script>""", re.DOTALL)
_EVIDENCE_CHARACTERS = 20_000


def data_of(document: Document | None, url: str) -> Mapping[str, Any]:
    """A page's data. Blocked where it is a challenge, LayoutChanged where it is another kind of page."""
    if document is None:
        raise LayoutChanged("there is no page", url=url)
    html = document.text()
    found = _SCRIPT.search(html)
    if found is None:
        parsing.raise_if_challenge(html, url)
        raise LayoutChanged("the page has no __NEXT_DATA__", url=url, evidence=html[:_EVIDENCE_CHARACTERS])
    try:
        value = orjson.loads(found[1])
    except orjson.JSONDecodeError as error:
        evidence = found[1][:_EVIDENCE_CHARACTERS]
        raise LayoutChanged(f"__NEXT_DATA__ is not JSON: {error}", url=url, evidence=evidence) from error
    for name in ("props", "appPageProps", "data"):
        value = parsing.mapping(value).get(name)
    if not isinstance(value, dict):
        raise LayoutChanged(
            "__NEXT_DATA__ has no props.appPageProps.data", url=url, evidence=found[1][:_EVIDENCE_CHARACTERS]
        )
    return value


def match_of(data: Mapping[str, Any], reading: Reading, *, schema: str = schemas.MATCH) -> schemas.Match:
    """The match that a page is about. PayloadRejected where it is not the one that was asked for."""
    url, wanted = reading.ref.url, reading.ref.source_event_id
    stated = parsing.text(parsing.mapping(data.get("match")).get("objectId"), 40)
    if stated and stated != wanted:
        raise PayloadRejected(f"the page is about another match: {stated} instead of {wanted}", url=url)
    match = validated(schemas.MatchPage, data, schema=schema, url=url).match
    if len(match.teams) != 2:
        raise PayloadRejected(f"the match has {len(match.teams)} teams", url=url)
    return match
