"""The Crex site: match addresses, API hosts, and the API responses that a page carries in its `app-root-state`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import orjson

from scraping.payloads import DiscoveredMatch, Sport, Status

EXAMPLE = ".../cricket-live-score/ind-vs-aus-3rd-t20-match-updates-13KM"
_MATCH_KEY = re.compile(r"[-/]match-updates-([0-9A-Za-z]{1,8})(?=[/?#]|$)|/scoreboard/([0-9A-Za-z]{1,8})/")
_TABS = re.compile(r"([-/]match-updates-[0-9A-Za-z]{1,8})/.*", re.ASCII)
_OLD_TABS = {"match-details": "info", "match-scorecard": "scorecard"}
_REAL_HOSTS = frozenset({"crex.com", "www.crex.com", "crex.live", "www.crex.live"})


@dataclass(frozen=True)
class Hosts:
    """The API hosts. The real site has several; a simulated one has a single host."""

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
    """Returns the headers of the site's own pages, which its hosts require."""
    parts = urlsplit(base_url)
    origin = f"{parts.scheme}://{parts.netloc}"
    return {"Origin": origin, "Referer": f"{origin}/"}


def match_key(url: str) -> str:
    """Returns the match key in a page's address, old or new form; empty if there is none."""
    found = _MATCH_KEY.search(url)
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
    """Returns the address of another tab of a match's page: "match-details", "match-scorecard"."""
    parts = urlsplit(url)
    path = _TABS.sub(r"\1", parts.path).rstrip("/")
    is_old = "/scoreboard/" in path
    tabbed = f"{path.rpartition('/')[0]}/{_OLD_TABS[tab]}" if is_old else f"{path}/{tab}"
    return urlunsplit((parts.scheme, parts.netloc, tabbed, "", ""))


_SCRIPT = re.compile(r"""<script\b[^>]*\bid=["']app-root-state["'][^>]*>(.*?)</script>""", re.DOTALL | re.IGNORECASE)
# The ampersand comes last: "&a;q;" is the text "&q;", not a quotation mark.
_ESCAPES = (("&q;", '"'), ("&s;", "'"), ("&l;", "<"), ("&g;", ">"), ("&a;", "&"))

LIVE = ("getSV3", "sV3.php")
FEED = ("getBallFeeds",)
MAPPING = ("getHomeMapData",)
MATCH_META = ("getMatchMetaData",)
POST_MATCH = ("getPostMatchData",)
SCORECARD = ("getSC4", "sC4.php")
SQUADS = ("getIV4", "iV4.php")
FIXTURES = ("getFixture",)
MATCH_LIST = ("getLiveMatches", "liveMatches2")


def page_state(html: str) -> Mapping[str, Any] | None:
    """Returns the page's `app-root-state`: API responses by URL; None where it is missing or no JSON."""
    found = _SCRIPT.search(html)
    if found is None:
        return None
    try:
        state = orjson.loads(unescaped(found.group(1)))
    except orjson.JSONDecodeError:
        return None
    return state if isinstance(state, dict) else None


def unescaped(escaped: str) -> str:
    for escape, character in _ESCAPES:
        escaped = escaped.replace(escape, character)
    return escaped


def embedded_responses(state: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[Any]:
    """Yields every response whose URL's last path segment begins with one of `names`, whatever the host."""
    for url, embedded_response in state.items():
        segment = url.partition("?")[0].rstrip("/").rpartition("/")[2]
        if segment.startswith(names):
            yield embedded_response


def embedded_response(state: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next(embedded_responses(state, names), None)
