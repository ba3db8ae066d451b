"""The list of boards, and the address of one."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit, urlunsplit

from scraping.errors import LayoutChanged
from scraping.payloads import DiscoveredMatch, Sport, Status
from scraping.sources import parsing
from scraping.sources.board.compose import STATES
from scraping.sources.extract import Extracted

_ADDRESS = re.compile(r"/match/[^/?#]*-([0-9A-Za-z]{1,8})/?$", re.ASCII)


def matches_of(found: Extracted, page_url: str, base_url: str) -> list[DiscoveredMatch]:
    """LayoutChanged where something is listed that is not matches; an empty list is a list."""
    matches = [match for row in found.rows("cards") if (match := _of_card(row, page_url, base_url))]
    if matches or not found.text("list"):
        return matches
    tried = ", ".join(found.layout.rows[0].selectors)
    raise LayoutChanged(f"not on the page: cards (tried {tried})", url=page_url)


def _of_card(row: dict[str, str], page_url: str, base_url: str) -> DiscoveredMatch | None:
    match = match_at(urljoin(page_url, row.get("link", "")), base_url)
    if match is None:
        return None
    status = STATES.get(row.get("state", "").lower(), Status.UPCOMING)
    return match.model_copy(update={"title": parsing.text(row.get("title")), "status": status})


def match_at(url: str, base_url: str) -> DiscoveredMatch | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    key = _ADDRESS.search(parts.path.removeprefix(urlsplit(base_url.rstrip("/")).path))
    if key is None:
        return None
    page = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    return DiscoveredMatch(source_event_id=key.group(1), url=page, sport=Sport.CRICKET, status=Status.UPCOMING)
