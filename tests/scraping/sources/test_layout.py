"""Selectors: validation, order, and the values that they find."""

from __future__ import annotations

import re
from typing import Any

import pytest

from scraping.errors import LayoutChanged
from scraping.sources.extract import Extracted, from_html
from scraping.sources.layout import Field, Layout, Rows, selector_problem

LAYOUT = Layout(
    fields=(
        Field("score", (".score", "#score", "//b[@title='score']"), is_required=True),
        Field("start", ("time::attr(datetime)", "//time/text()")),
    ),
    rows=(Rows("balls", (".ball", "li"), (Field("id", ("./@data-id", ".id")), Field("text", ("b > i", "i")))),),
)


def found(html: str, layout: Layout = LAYOUT) -> Extracted:
    return Extracted(from_html(html, layout), layout)


@pytest.mark.requirement("FR-019")
class TestOrder:
    @pytest.mark.parametrize(
        ("html", "text", "fallbacks"),
        [
            ("<p class=score>1</p><p id=score>2</p>", "1", ()),
            ("<p id=score>2</p><b title=score>3</b>", "2", ("score#2",)),
            ("<b title=score> 3\n <!-- no --> 4 </b>", "3 4", ("score#3",)),
            ("<p class=score></p><b title=score>3</b>", "3", ("score#3",)),
            ("<p class=score></p>", "", ()),
        ],
    )
    def test_the_first_selector_with_a_value_counts(self, html: str, text: str, fallbacks: tuple[str, ...]) -> None:
        extracted = found(html)
        assert (extracted.text("score"), extracted.fallbacks()) == (text, fallbacks)
        extracted.demand(url="http://site.test/")

    def test_where_none_finds_its_place_all_are_named(self) -> None:
        with pytest.raises(LayoutChanged, match=r"score \(tried \.score, #score, //b\[@title='score'\]\)"):
            found("<p>1</p>").demand(url="http://site.test/")

    def test_an_attribute_is_read_where_it_is(self) -> None:
        assert found("<time>a</time><time datetime=x>b</time>").text("start") == "x"
        assert found("<time>a</time>").text("start") == "a"


class TestRows:
    def test_cells_are_selected_inside_their_row(self) -> None:
        html = "<div><b><i>out</i></b><p class=ball data-id=1><b><i>one</i></b></p><p class=ball><i>two</i></p></div>"
        assert found(html).rows("balls") == [{"id": "1", "text": "one"}, {"id": "", "text": ""}]

    def test_the_first_selector_with_rows_counts(self) -> None:
        extracted = found("<ul><li><u class=id>7</u><i>x</i></li></ul>")
        assert extracted.rows("balls") == [{"id": "7", "text": "x"}]
        assert extracted.fallbacks() == ("balls#2", "balls.id#2", "balls.text#2")

    def test_no_rows(self) -> None:
        assert found("<p></p>").rows("balls") == []


class TestCheck:
    @pytest.mark.parametrize(
        "selectors",
        [
            {},
            {"score": [".a > b:first-child", "[data-x='1']", "a::attr(href)", "//a[@b]/@c", "(//a)[1]"]},
            {"balls": ["li"], "balls.id": ["./@id", "../@id"]},
            {"score": [":is(.a, .b) em:not(.c)"]},
        ],
    )
    def test_accepts_valid_selectors(self, selectors: Any) -> None:
        assert not selector_problem(selectors, [LAYOUT])

    @pytest.mark.parametrize(
        ("selectors", "named"),
        [
            ({"goals": ["a"]}, "goals: there is no such field; there are: balls, balls.id, balls.text, score, start"),
            ({"score": []}, "score: give a list"),
            ({"score": "a"}, "score: give a list"),
            ({"score": ["a"] * 11}, "score: give a list"),
            ({"score": [7]}, "score: 7 is not a selector"),
            ({"score": [" "]}, "is not a selector"),
            ({"score": ["a" * 301]}, "is not a selector"),
            ({"score": ["a["]}, r"score: 'a\[' cannot be used: it is not CSS"),
            ({"score": ["//a["]}, "it is not XPath 1.0"),
            ({"score": ["//a[re:test(., 'x')]"]}, "functions with a prefix"),
            ({"score": ["(1 + 2)"]}, "neither elements nor attributes"),
            ({"score": ["a, b"]}, "items of the list"),
            ({"score": ["a::text"]}, "::text"),
            ({"score": ["a:contains('x')"]}, ":contains"),
            ({"score": [":scope > a"]}, ":scope"),
            ({"score": ["a::before"]}, "pseudo-elements"),
            ([], "by field"),
        ],
    )
    def test_refuses_the_rest_by_name(self, selectors: Any, named: str) -> None:
        assert re.search(named, selector_problem(selectors, [LAYOUT]))


def test_an_operators_selectors_take_the_place_of_the_adapters() -> None:
    own = LAYOUT.using({"score": ["u"], "balls.text": ["s"], "unknown": ["x"]})
    assert own.named() == LAYOUT.named() | {"score": ("u",), "balls.text": ("s",)}
    assert LAYOUT.using({}) == LAYOUT
