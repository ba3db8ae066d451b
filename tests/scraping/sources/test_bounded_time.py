"""Pages and texts that a pattern or a selector would search again at each of their parts are read in bounded time.

Without a bound each of these takes minutes, in which the worker's other threads do not run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from scraping.errors import ScrapingError
from scraping.readings import RefInfo
from scraping.sources import adapter_for, cricket, markup, parsing
from scraping.sources.crex import site, texts
from tests.scraping.sources import builders as build
from tests.scraping.sources import espn_builders as espn

CPU_SECONDS = 10.0  # the slowest takes less than one
MANY = 200_000
CREX = adapter_for("crex")
CARD = '<div class="live-card"><a href="/cricket-live-score/x-match-updates-9XA"><b class="team-name">A</b>'
HEADER = '<div class="team-inning"><div class="team-content"><p class="team-name">A</p><span>1-1 (1.1)</span>'
ROW = '<article class="sb-ball" data-id="7" data-n="7"><b>text</b>'

pytestmark = [pytest.mark.requirement("ZT-5"), pytest.mark.timeout(120)]


def page(body: str) -> Any:
    return build.document("page", f"<html><body>{body}</body></html>", url=build.CREX.url)


CASES: dict[str, Callable[[], Any]] = {
    "tags that never end": lambda: parsing.plain("<" * MANY),
    "titles that never end": lambda: parsing.is_challenge("<title" * MANY),
    "scripts that never end": lambda: site.page_state("<script id=app-root-state>" * MANY),
    "script tags that never end": lambda: parsing.next_data("<script id=" * MANY),
    "shown JSON that never ends": lambda: adapter_for("espn").parse(build.reading(espn.CRICKET, page("<pre>" * MANY))),
    "cards in cards": lambda: CREX.parse_list(build.reading(build.CREX, page(CARD * 4000)), build.CREX_BASE),
    "headers in headers": lambda: CREX.parse(build.reading(build.CREX, page(HEADER * 4000))),
    "rows in rows": lambda: adapter_for("board").parse(
        build.reading(RefInfo("7", "http://site.test/board/7"), page(ROW * 4000))
    ),
    "spaces in a score": lambda: texts.parse_total("1" + " " * MANY + "x"),
    "spaces between two scores": lambda: CREX.parse(
        build.reading(build.CREX, build.document("live", build.live(j="1/1" + " " * MANY + "x")), build.page())
    ),
    "commas before a toss": lambda: cricket.toss_in(", " * MANY),
}


@pytest.mark.parametrize("case", CASES)
def test_bounded_time(case: str) -> None:
    began = time.process_time()
    with suppress(ScrapingError):
        CASES[case]()
    assert time.process_time() - began < CPU_SECONDS


def test_a_page_ends_where_its_elements_are_nested_too_deeply() -> None:
    tree = markup.tree_of("<p>before</p>" + "<div>" * 1000 + "<i>deep</i>")
    assert tree.css("p::text").get() == "before"
    assert tree.css("i").get() is None


def test_the_text_of_an_element_is_cut() -> None:
    node = markup.tree_of("<p>" + "<b>word</b>" * 10_000 + "</p>").css("p")[0].root
    assert len(markup.text_of(node)) <= markup.MAX_TEXT + len("word")


@pytest.mark.parametrize("html", ["", "  ", "\x00", "no markup", "<!-- -->"])
def test_a_page_without_elements_has_an_empty_tree(html: str) -> None:
    assert markup.tree_of(html).css("p.any").get() is None


def test_the_content_of_a_script_begins_after_its_own_tag() -> None:
    html = "<script id='other'>1</script><SCRIPT type=text/plain id=data defer>2</SCRIPT><script id=data>3</script>"
    assert markup.content_of(html, "script", "data") == "2"
    assert markup.content_of(html, "script", "dat") is None
