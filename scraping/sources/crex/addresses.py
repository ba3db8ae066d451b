"""Addresses: of a match in its present and its older form, of its tabs, and of the hosts that answer for the site."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from scraping.payloads import DiscoveredMatch, Sport, Status

EXAMPLE = ".../cricket-live-score/ind-vs-aus-3rd-t20-match-updates-13KM"
_KEY = re.compile(r"[-/]match-updates-([0-9A-Za-z]{1,8})(?=[/?#]|$)|/scoreboard/([0-9A-Za-z]{1,8})/")
_TABS = re.compile(r"([-/]match-updates-[0-9A-Za-z]{1,8})/.*", re.ASCII)
_OLD_TABS = {"match-details": "info", "match-scorecard": "scorecard"}
_REAL_HOSTS = frozenset({"crex.com", "www.crex.com", "crex.live", "www.crex.live"})


@dataclass(frozen=True)
class Hosts:
    """Who answers what. The site itself spreads its answers over several hosts; others keep them all at one."""

    live: str
    stats: str

    @property
    def fixtures(self) -> str:
        return f"{self.stats}/fixture/getFixture"


def hosts_of(base_url: str) -> Hosts:
    base = base_url.rstrip("/")
    if (urlsplit(base).hostname or "") in _REAL_HOSTS:
        return Hosts("https://api.goscorer.com/api/v3", "https://stats.crickapi.com")
    return Hosts(f"{base}/api/v3", base)


def headers_of(base_url: str) -> dict[str, str]:
    """Its hosts want to see that the site's own pages are asking."""
    parts = urlsplit(base_url)
    origin = f"{parts.scheme}://{parts.netloc}"
    return {"Origin": origin, "Referer": f"{origin}/"}


def match_key(url: str) -> str:
    """The match key in a page's address, old or new form; empty if there is none."""
    found = _KEY.search(url)
    return (found.group(1) or found.group(2)) if found else ""


def match_at(url: str, base_url: str) -> DiscoveredMatch | None:
    parts = urlsplit(url)
    path = parts.path.removeprefix(urlsplit(base_url.rstrip("/")).path)
    key = match_key(path)
    if not key or not path.startswith(("/cricket-live-score/", "/scoreboard/")):
        return None
    page = urlunsplit((parts.scheme, parts.netloc, _TABS.sub(r"\1", parts.path), "", ""))
    return DiscoveredMatch(source_event_id=key, url=page, sport=Sport.CRICKET, status=Status.UPCOMING)


def tab_of(url: str, tab: str) -> str:
    """Another tab of a match's page: "match-details", "match-scorecard"."""
    parts = urlsplit(url)
    path = _TABS.sub(r"\1", parts.path).rstrip("/")
    is_old = "/scoreboard/" in path
    tabbed = f"{path.rpartition('/')[0]}/{_OLD_TABS[tab]}" if is_old else f"{path}/{tab}"
    return urlunsplit((parts.scheme, parts.netloc, tabbed, "", ""))
