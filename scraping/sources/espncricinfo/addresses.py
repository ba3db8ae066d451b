"""The address of a match: /series/{slug}-{series id}/{slug}-{match id}/{tab}. The id ends the slug."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from scraping.payloads import DiscoveredMatch, Sport, Status

EXAMPLE = ".../series/india-women-in-australia-2025-26-1478874/australia-women-vs-india-women-3rd-t20i-1478914"
LIVE, SCORECARD, COMMENTARY = "live-cricket-score", "full-scorecard", "ball-by-ball-commentary"
_MATCH = re.compile(r"(?P<match>/series/[^/]+-[0-9]+/[^/]+-(?P<id>[0-9]{1,12}))(?:/[^/]*)?/?", re.ASCII)
_WORD = re.compile(r"[a-z0-9][a-z0-9-]{0,150}", re.ASCII)


def match_at(url: str, base_url: str) -> DiscoveredMatch | None:
    """Any tab of a match is its address; what is kept is the live one."""
    path = urlsplit(url).path.removeprefix(urlsplit(base_url.rstrip("/")).path)
    found = _MATCH.fullmatch(path)
    if found is None:
        return None
    return DiscoveredMatch(source_event_id=found["id"], url=tab(url, LIVE), sport=Sport.CRICKET, status=Status.UPCOMING)


def tab(url: str, name: str) -> str:
    """Another tab of the match whose address this is; the address itself where it is not one of a match."""
    parts = urlsplit(url)
    found = _MATCH.search(parts.path)
    if found is None:
        return url
    path = f"{parts.path[: found.start()]}{found['match']}/{name}"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def built(base_url: str, *, series_slug: str, series_id: int, slug: str, match_id: int) -> str:
    """The address of a match of a list, which has slugs and ids apart."""
    series, match = (word if _WORD.fullmatch(word) else "match" for word in (series_slug, slug))
    return f"{base_url.rstrip('/')}/series/{series}-{series_id}/{match}-{match_id}/{LIVE}"
