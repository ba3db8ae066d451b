"""The Crex site: match addresses, API hosts, and the API responses that a page carries in its `app-root-state`."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import orjson

from scraping.errors import SchemaBreak
from scraping.readings import Document
from scraping.sources import broken_parts, markup

Parsed = TypeVar("Parsed")

_MATCH_KEY = re.compile(r"[-/]match-updates-([0-9A-Za-z]{1,8})(?=[/?#]|$)|/scoreboard/([0-9A-Za-z]{1,8})/")
_TABS = re.compile(r"([-/]match-updates-[0-9A-Za-z]{1,8})/.*", re.ASCII)
DETAILS_TAB = "match-details"
_OLD_TABS = {DETAILS_TAB: "info", "match-scorecard": "scorecard"}
_REAL_HOSTS = frozenset({"crex.com", "www.crex.com", "crex.live", "www.crex.live"})


def hosts_of(base_url: str) -> tuple[str, str]:
    """Returns the addresses of the live API and of the statistics. A simulated site has a single host."""
    base = base_url.rstrip("/")
    if (urlsplit(base).hostname or "") in _REAL_HOSTS:
        return "https://api.goscorer.com/api/v3", "https://stats.crickapi.com"
    return f"{base}/api/v3", base


def headers_of(base_url: str) -> dict[str, str]:
    """Returns the headers of the site's own pages, which its hosts require."""
    parts = urlsplit(base_url)
    origin = f"{parts.scheme}://{parts.netloc}"
    return {"Origin": origin, "Referer": f"{origin}/"}


def match_key(url: str) -> str:
    found = _MATCH_KEY.search(url)
    return (found.group(1) or found.group(2)) if found else ""


def match_page(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, _TABS.sub(r"\1", parts.path), "", ""))


def tab_of(url: str, tab: str) -> str:
    """Returns the address of another tab of a match's page: "match-details", "match-scorecard"."""
    page = match_page(url).rstrip("/")
    is_old = "/scoreboard/" in page
    return f"{page.rpartition('/')[0]}/{_OLD_TABS[tab]}" if is_old else f"{page}/{tab}"


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
    escaped = markup.content_of(html, "script", "app-root-state")
    if escaped is None:
        return None
    for escape, character in _ESCAPES:
        escaped = escaped.replace(escape, character)
    try:
        state = orjson.loads(escaped)
    except orjson.JSONDecodeError:
        return None
    return state if isinstance(state, dict) else None


def embedded_responses(state: Mapping[str, Any] | None, names: tuple[str, ...]) -> list[Any]:
    """Returns every response whose URL's last path segment begins with one of `names`, on any host."""
    segments = {url: url.partition("?")[0].rstrip("/").rpartition("/")[2] for url in state or {}}
    return [response for url, response in (state or {}).items() if segments[url].startswith(names)]


def embedded_response(state: Mapping[str, Any] | None, names: tuple[str, ...]) -> Any:
    return next(iter(embedded_responses(state, names)), None)


def first_parsed(
    document: Document | None, page: Document | None, names: tuple[str, ...], parse: Callable[[Any], Parsed | None]
) -> Parsed | None:
    """Parses the response, else its copy in the page; None without both; if both are broken, raises for the first."""
    broken: SchemaBreak | None = None
    for is_copy in (False, True):
        try:
            data = embedded_response(page_state(page.text() if page else ""), names) if is_copy else json_of(document)
            if (found := parse(data)) is not None:
                return found
        except SchemaBreak as failure:
            broken = broken or failure
    if broken is not None:
        raise broken
    return None


def json_of(document: Document | None) -> Any:
    """Returns the JSON of a response; None where it is no JSON, which is noted."""
    try:
        return document.json() if document else None
    except SchemaBreak as broken:
        broken_parts.note(document.name if document else "", str(broken))
        return None
