"""The event that the server rendered into the page: the way to a match when its endpoint does not answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from scraping.sources import parsing

_SCRIPT = re.compile(r"""<script\b[^>]*\bid=["']__NEXT_DATA__["'][^>]*>(.*?)</script>""", re.DOTALL | re.IGNORECASE)


def event_in_page(html: str) -> Mapping[str, Any] | None:
    """The event, or None where the page has none that can be read."""
    found = _SCRIPT.search(html)
    if found is None:
        return None
    try:
        data = orjson.loads(found.group(1))
    except orjson.JSONDecodeError:
        return None
    props = parsing.mapping(parsing.mapping(parsing.mapping(data).get("props")).get("pageProps"))
    for holder in (props, parsing.mapping(props.get("initialProps"))):
        if event := parsing.mapping(holder.get("event")):
            return event
    return None
