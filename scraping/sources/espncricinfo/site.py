"""ESPNcricinfo's pages: addresses of matches, and the data in <script id="__NEXT_DATA__">.

An address is /series/{slug}-{series id}/{slug}-{match id}/{tab}. The data is below props.appPageProps.data; on
live pages and lists it is one level of `data` deeper.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from scraping.errors import LayoutChanged, PayloadRejected
from scraping.sources import parsing
from scraping.sources.base import Document, Reading, Request
from scraping.sources.espncricinfo import schemas

EXAMPLE = ".../series/india-women-in-australia-2025-26-1478874/australia-women-vs-india-women-3rd-t20i-1478914"
LIVE, SCORECARD, COMMENTARY = "live-cricket-score", "full-scorecard", "ball-by-ball-commentary"
MATCH_PATH = re.compile(r"(?P<match>/series/[^/]+-[0-9]+/[^/]+-(?P<id>[0-9]{1,12}))(?:/[^/]*)?/?", re.ASCII)
_PARTS = ("match", "content")  # the data of every page has one of them
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,150}", re.ASCII)


def page_request(url: str, name: str = "page") -> Request:
    return Request(name, url, headers={"accept": "text/html,application/xhtml+xml"})


def tab_url(url: str, name: str) -> str:
    """Returns the address of another tab of the match, or the same address where it is no match's."""
    parts = urlsplit(url)
    found = MATCH_PATH.search(parts.path)
    if found is None:
        return url
    path = f"{parts.path[: found.start()]}{found['match']}/{name}"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def match_url(base_url: str, match: schemas.Brief) -> str:
    series, slug = (part if part and _SLUG.fullmatch(part) else "match" for part in (match.series.slug, match.slug))
    return f"{base_url.rstrip('/')}/series/{series}-{match.series.object_id}/{slug}-{match.object_id}/{LIVE}"


def data_of(document: Document | None, url: str) -> Mapping[str, Any]:
    """Returns a page's data; raises Challenged for a challenge and LayoutChanged for another kind of page."""
    if document is None:
        raise LayoutChanged("there is no page", url=url)
    html = document.text()
    value = parsing.next_data(html)
    if value is None:
        parsing.raise_if_challenge(html, url)
    data = parsing.unwrapped(value, *_PARTS)
    if not data:
        evidence = html[: parsing.EVIDENCE_CHARACTERS]
        message, path = "the page has no __NEXT_DATA__ with a match or a content", "#__NEXT_DATA__"
        raise LayoutChanged(message, url=url, evidence=evidence, selector=path)
    return data


def match_of(data: Mapping[str, Any], reading: Reading, *, schema: str) -> schemas.Match:
    """Returns the match of a page; raises PayloadRejected where it is not the requested one."""
    url = reading.ref.url
    stated = parsing.text(parsing.mapping(data.get("match")).get("objectId"), 40)
    parsing.refuse_another("the page is", stated or None, reading.ref.source_event_id, url)
    needed = schemas.MATCH_NEEDS
    match = parsing.validated(schemas.Match, data.get("match"), schema=schema, url=url, path="match", needed=needed)
    if len(match.teams) != 2:
        raise PayloadRejected(f"the match has {len(match.teams)} teams", url=url)
    return match
