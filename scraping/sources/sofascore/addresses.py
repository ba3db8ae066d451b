"""The address of a match, as the site's own links have it: the number after # is what names the match."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from scraping.payloads import DiscoveredMatch, Sport, Status
from scraping.sources import parsing

EXAMPLE = ".../football/match/flamengo-santos/GOsuO#id:15052834, with the part after #"
CRICKET_EXAMPLE = ".../cricket/match/india-west-indies/kfAbspfAb#id:15884177, with the part after #"
_PATH = re.compile(
    r"(?:/[a-z]{2}(?:-[a-z]{2})?)?/(football|cricket)/match/([\w%-]{1,200})/([A-Za-z0-9]{1,40})/?", re.ASCII
)
_FRAGMENT = re.compile(r"id:([1-9]\d{0,14})(?:,.*)?", re.ASCII)


def match_at(url: str, base_url: str, sport: Sport) -> DiscoveredMatch | None:
    """A code such as GOsuO is shared by all meetings of two teams, so without the number there is no match."""
    base = base_url.rstrip("/")
    parts = urlsplit(url)
    path = _PATH.fullmatch(parts.path.removeprefix(urlsplit(base).path))
    number = _FRAGMENT.fullmatch(parts.fragment)
    if path is None or number is None or path[1] != sport.value:
        return None
    return DiscoveredMatch(
        source_event_id=number[1],
        url=f"{base}/en/{sport.value}/match/{path[2]}/{path[3]}#id:{number[1]}",
        sport=sport,
        status=Status.UPCOMING,  # until it is read
    )


def url_of(event: Mapping[str, Any], base_url: str, sport: Sport) -> str:
    slug, custom = parsing.text(event.get("slug"), 200), parsing.text(event.get("customId"), 40)
    return f"{base_url.rstrip('/')}/en/{sport.value}/match/{slug}/{custom}#id:{parsing.text(event.get('id'), 40)}"
