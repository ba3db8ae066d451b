"""The address of a match, as the site's own links have it: the number after # is what names the match."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from scraping.payloads import DiscoveredMatch, Sport, Status

EXAMPLE = ".../football/match/flamengo-santos/GOsuO#id:15052834, with the part after #"
_PATH = re.compile(r"(?:/[a-z]{2}(?:-[a-z]{2})?)?/football/match/([\w%-]{1,200})/([A-Za-z0-9]{1,40})/?", re.ASCII)
_FRAGMENT = re.compile(r"id:([1-9]\d{0,14})(?:,.*)?", re.ASCII)


def match_at(url: str, base_url: str) -> DiscoveredMatch | None:
    """A code such as GOsuO is shared by all meetings of two teams, so without the number there is no match."""
    base = base_url.rstrip("/")
    parts = urlsplit(url)
    path = _PATH.fullmatch(parts.path.removeprefix(urlsplit(base).path))
    number = _FRAGMENT.fullmatch(parts.fragment)
    if path is None or number is None:
        return None
    return DiscoveredMatch(
        source_event_id=number[1],
        url=f"{base}/en/football/match/{path[1]}/{path[2]}#id:{number[1]}",
        sport=Sport.FOOTBALL,
        status=Status.UPCOMING,  # until it is read
    )
