"""The body of an answer, with what stands in for one told apart: a challenge, an error, a page that shows the JSON."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import orjson

from scraping.errors import Gone, SchemaBreak
from scraping.readings import PAGE
from scraping.sources import parsing
from scraping.sources.base import Document, Reading

_SHOWN = re.compile(r"<pre\b[^>]*>(.*?)</pre>", re.DOTALL | re.IGNORECASE)


def body_of(reading: Reading, name: str) -> tuple[Any, str]:
    """The JSON of an answer, else of the page that shows it, and the address it came from."""
    document = reading.document(name)
    if document is not None and document.status < 400:
        return checked(document), document.url
    page = reading.document(PAGE)
    shown = shown_in(page) if page is not None else None
    if page is None or shown is None:
        raise SchemaBreak(f"the {name} endpoint gave no answer", url=reading.ref.url)
    return shown, page.url


def checked(document: Document) -> Any:
    try:
        data = document.json()
    except SchemaBreak:
        parsing.raise_if_challenge(document.text(), document.url)
        raise
    _raise_if_refused(data, document.url)
    return data


def shown_in(page: Document) -> Any:
    """The JSON that a browser shows when it is sent to an address of the API; None where it shows something else."""
    text = page.text()
    parsing.raise_if_challenge(text, page.url)
    found = _SHOWN.search(text)
    try:
        data = orjson.loads(unescape(found[1]) if found else text)
    except orjson.JSONDecodeError:
        return None
    _raise_if_refused(data, page.url)
    return data


def _raise_if_refused(data: Any, url: str) -> None:
    """{"code": 404, "message": "..."} is how this API says that there is no such match."""
    parsing.raise_if_error_body(data, url)
    answer = parsing.mapping(data)
    if answer.keys() <= {"code", "message", "detail"} and parsing.integer(answer.get("code")) in (400, 404):
        raise Gone(f"the source knows no such match: {parsing.text(answer.get('message'), 100)}", url=url)
