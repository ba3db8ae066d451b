"""The address of a match, in its present and its older form: the key at the end, or after /scoreboard/, names it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from scraping.payloads import DiscoveredMatch, Sport, Status
from scraping.sources.crex.listing import match_key

EXAMPLE = ".../cricket-live-score/ind-vs-aus-3rd-t20-match-updates-13KM"
_TABS = re.compile(r"(-match-updates-[0-9A-Za-z]{1,8})/.*", re.ASCII)


def match_at(url: str, base_url: str) -> DiscoveredMatch | None:
    parts = urlsplit(url)
    path = parts.path.removeprefix(urlsplit(base_url.rstrip("/")).path)
    key = match_key(path)
    if not key or not path.startswith(("/cricket-live-score/", "/scoreboard/")):
        return None
    page = urlunsplit((parts.scheme, parts.netloc, _TABS.sub(r"\1", parts.path), "", ""))
    return DiscoveredMatch(source_event_id=key, url=page, sport=Sport.CRICKET, status=Status.UPCOMING)
