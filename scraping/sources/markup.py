"""Finds elements and scripts of a page in time that grows with its length, whatever the page is.

Guards against pages that would stop a worker for minutes: thousands of elements that are never closed, of which each
contains all that follow, and tags or scripts without an end, at each of which a pattern would search the rest again.
"""

import re
from functools import lru_cache
from itertools import islice
from typing import Any

from lxml import etree
from parsel import Selector

MAX_TEXT = 4000  # characters of an element that are read


def tree_of(html: str) -> Selector:
    """Returns the elements of a page; it ends where elements are nested deeper than 255 levels."""
    body = html.strip().replace("\x00", "").encode("utf-8", "replace")
    root = etree.fromstring(body, etree.HTMLParser(recover=True, encoding="utf-8")) if body else None
    return Selector(root=etree.Element("html") if root is None else root, type="html")


def text_of(node: Any) -> str:
    """Returns the beginning of an element's text."""
    found, length = [], 0
    for part in islice(node.itertext(), MAX_TEXT):
        found.append(part)
        length += len(part)
        if length > MAX_TEXT:
            break
    return "".join(found)


@lru_cache(maxsize=8)
def _tags(name: str, identity: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    marked = rf"""[^<>]{{0,300}}?\bid=["']?{identity}(?=["'\s>])""" if identity else ""
    opening = rf"<{name}\b{marked}[^<>]{{0,300}}>"
    return re.compile(opening, re.IGNORECASE), re.compile(f"</{name}>", re.IGNORECASE)


def content_of(html: str, name: str, identity: str = "") -> str | None:
    """Returns the content of the first such element, up to its closing tag, unparsed; None without one."""
    opening, closing = _tags(name, identity)
    begin = opening.search(html)
    end = closing.search(html, begin.end()) if begin else None
    return html[begin.end() : end.start()] if begin and end else None
