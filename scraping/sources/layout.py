"""The layout of a page without JSON: for each field the selectors to try, best first.

A selector is CSS, with `::attr(name)` at its end for an attribute, or XPath (it begins with `/`, `./`, `../` or `(`).
The same ones run inside an open page and over the text of a page, so only those that mean the same in both are valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from cssselect import HTMLTranslator, SelectorError, parse
from parsel import Selector

_ATTRIBUTE = re.compile(r"::attr\(\s*([\w:.-]+)\s*\)$", re.ASCII)
_XPATH = ("/", "./", "../", "(")
_NOT_IN_BROWSERS = (":contains(", ":scope", "::text")
_PREFIXED = re.compile(r"[\w-]+:[\w-]+\s*\(", re.ASCII)
_MAX_SELECTORS, _MAX_CHARACTERS = 10, 300


@dataclass(frozen=True)
class Field:
    name: str
    selectors: tuple[str, ...]
    is_required: bool = False  # a page without it is not the page that we know


@dataclass(frozen=True)
class Rows:
    """A repeated element of a page; the selectors of its cells apply inside each row."""

    name: str
    selectors: tuple[str, ...]
    cells: tuple[Field, ...]


@dataclass(frozen=True)
class Layout:
    fields: tuple[Field, ...] = ()
    rows: tuple[Rows, ...] = ()
    pulse: str = ""  # the field that changes as long as the page receives updates, also while the score does not
    own: tuple[tuple[str, tuple[str, ...]], ...] = ()  # a source's own selectors by name, in place of those above

    def named(self) -> dict[str, tuple[str, ...]]:
        found = {one.name: one.selectors for one in self.fields}
        for rows in self.rows:
            found[rows.name] = rows.selectors
            found |= {f"{rows.name}.{cell.name}": cell.selectors for cell in rows.cells}
        return found | {name: selectors for name, selectors in self.own if name in found}

    def using(self, selectors: Mapping[str, Sequence[str]]) -> Layout:
        return replace(self, own=tuple((name, tuple(ways)) for name, ways in selectors.items()))


@dataclass(frozen=True)
class Query:
    text: str
    is_xpath: bool
    attribute: str = ""


@lru_cache(maxsize=512)
def query_of(selector: str) -> Query:
    if selector.startswith(_XPATH):
        return Query(selector, is_xpath=True)
    found = _ATTRIBUTE.search(selector)
    return Query(_ATTRIBUTE.sub("", selector), is_xpath=False, attribute=found.group(1) if found else "")


def selector_problem(selectors: object, layouts: Sequence[Layout]) -> str:
    """Returns why an operator's selectors, by field, cannot be used with these layouts; empty if they can."""
    if not isinstance(selectors, Mapping):
        return "selectors are given by field: a list of CSS or XPath for each name"
    known = sorted({name for layout in layouts for name in layout.named()})
    for name, ways in selectors.items():
        if name not in known:
            return f"{name}: there is no such field; there are: {', '.join(known) or 'none at this source'}"
        if not isinstance(ways, Sequence) or isinstance(ways, str) or not 0 < len(ways) <= _MAX_SELECTORS:
            return f"{name}: give a list of 1 to {_MAX_SELECTORS} selectors, best first"
        for selector in ways:
            if not isinstance(selector, str) or not 0 < len(selector.strip()) <= _MAX_CHARACTERS:
                return f"{name}: {selector!r} is not a selector of 1 to {_MAX_CHARACTERS} characters"
            query = query_of(selector)
            if problem := _xpath_problem(query.text) if query.is_xpath else _css_problem(query.text):
                return f"{name}: {selector!r} cannot be used: {problem}"
    return ""


def _xpath_problem(text: str) -> str:
    if _PREFIXED.search(text):
        return "browsers have no functions with a prefix"
    try:
        page = Selector(text="<html></html>")
        page.xpath(text)
    except ValueError as error:
        return f"it is not XPath 1.0 ({str(error).split(' in ')[0]})"
    return "" if isinstance(page.root.xpath(text), list) else "it selects neither elements nor attributes"


def _css_problem(text: str) -> str:
    if unsupported := next((part for part in _NOT_IN_BROWSERS if part in text), ""):
        return f"{unsupported} does not mean the same everywhere; XPath can say it"
    try:
        parsed = parse(text)
        for one in parsed:
            HTMLTranslator().selector_to_xpath(one)
    except SelectorError as error:
        return f"it is not CSS ({error})"
    if len(parsed) > 1:
        return "alternatives are items of the list, not parts with a comma"
    has_pseudo_element = parsed[0].pseudo_element is not None
    return "pseudo-elements are not on the page; ::attr(name) goes at the end" if has_pseudo_element else ""
