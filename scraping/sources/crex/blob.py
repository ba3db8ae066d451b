"""The page's `app-root-state`: the API answers that the server rendered the page from, keyed by their URLs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

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
    """The decoded blob, or None where the page has none that can be read."""
    found = _SCRIPT.search(html)
    if found is None:
        return None
    try:
        state = orjson.loads(decode(found.group(1)))
    except orjson.JSONDecodeError:
        return None
    return state if isinstance(state, dict) else None


def decode(escaped: str) -> str:
    for escape, character in _ESCAPES:
        escaped = escaped.replace(escape, character)
    return escaped


def answers(state: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[Any]:
    """Every answer whose URL's last path segment begins with one of `names`, whatever the host."""
    for url, answer in state.items():
        segment = url.partition("?")[0].rstrip("/").rpartition("/")[2]
        if segment.startswith(names):
            yield answer


def answer(state: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next(answers(state, names), None)
