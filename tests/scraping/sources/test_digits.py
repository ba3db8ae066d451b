"""Only the digits 0 to 9 are numbers: `\\d` and `isdigit` also accept digits of other scripts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scraping import sources
from scraping.errors import ScrapingError
from scraping.event_keys import ball_after
from scraping.payloads import Innings
from scraping.sources import adapter_for, parsing
from tests.scraping.sources import builders as build
from tests.scraping.sources import espncricinfo_pages as pages

FOLDER = Path(sources.__file__).parent
FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")  # noqa: RUF001


def patterns_without_ascii(tree: ast.AST) -> Iterator[int]:
    """Yields the lines of calls of `re` in statements with `\\d` that have no ASCII flag."""
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr | ast.Return | ast.If | ast.For):
            texts = [one.value for one in ast.walk(statement) if isinstance(one, ast.Constant)]
            if not any(isinstance(one, str) and "\\d" in one for one in texts):
                continue
            for call in ast.walk(statement):
                name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
                if name.startswith("re.") and name != "re.escape" and "ASCII" not in ast.unparse(call):
                    yield statement.lineno


def full_width(value: Any) -> Any:
    """Returns a document with every digit of its texts, but not of its names, replaced."""
    if isinstance(value, dict):
        return {name: full_width(one) for name, one in value.items()}
    if isinstance(value, list):
        return [full_width(one) for one in value]
    return value.translate(FULL_WIDTH) if isinstance(value, str) else value


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_patterns_and_checks_accept_ascii_digits_only(path: Path) -> None:
    text = path.read_text()
    assert list(patterns_without_ascii(ast.parse(text))) == []
    if path.name != "parsing.py":
        assert not any(name in text for name in (".isdigit(", ".isdecimal(", ".isnumeric("))


@pytest.mark.parametrize("text", ["１", "²", "٣", "", "1.0", "-1"])  # noqa: RUF001
def test_other_digits_are_no_number(text: str) -> None:
    assert not parsing.is_number(text)
    assert ball_after("b:1:2:3", 1, f"{text}.4") == "" or text in ("-1", "1.0")


def test_overs_of_other_digits_are_refused() -> None:
    with pytest.raises(ValueError, match="overs"):
        Innings(number=1, team="team_a", runs=1, wickets=0, overs="１.２")  # noqa: RUF001


@pytest.mark.requirement("ZT-5")
class TestDocuments:
    """Whole documents in full-width digits are read or refused with one of our errors."""

    def test_of_crex(self) -> None:
        for live, feed in ((full_width(build.live()), build.feed()), (build.live(), full_width(build.feed()))):
            documents = build.document("live", live), build.document("feed", feed), build.page(name="static_page")
            self.read("crex", build.reading(build.CREX, *documents))

    def test_of_a_rendered_page_of_crex(self) -> None:
        html = build.page_html(None, build.HEADER.format(said="Live").translate(FULL_WIDTH))
        self.read("crex", build.reading(build.CREX, build.document("page", html)))

    def test_of_espncricinfo(self) -> None:
        document = build.document("page", pages.html({"match": pages.match(), "content": full_width(pages.content())}))
        self.read("espncricinfo", build.reading(pages.REF, document))

    def test_of_a_scoreboard(self) -> None:
        row = '<li class="sb-ball" data-id="9" data-n="９"><b class="sb-over">１.２</b><i class="sb-code">４</i></li>'  # noqa: RUF001
        self.read("board", build.reading(build.CREX, build.document("page", f"<div>{row}</div>")))

    def read(self, key: str, reading: Any) -> None:
        try:
            payload = adapter_for(key).parse(reading)
        except ScrapingError:
            return
        assert all(one.overs.isascii() for one in payload.state.innings)
