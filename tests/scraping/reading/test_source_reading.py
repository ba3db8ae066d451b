"""The read mode and selectors of a source in config/sources.yaml; unsupported ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from scraping.configuration import source_file
from scraping.configuration.source_file import SourceFileError
from scraping.sources import ADAPTERS, reading_problem
from tests.factories import NOW

BOARD = "domain_id: board, name: B, sport: cricket, base_url: 'https://board.example'"
CREX = "domain_id: crex, name: C, sport: cricket, base_url: 'https://crex.example'"


def written(tmp_path: Path, entry: str) -> Path:
    path = tmp_path / "sources.yaml"
    path.write_text(f"sources: [{{{entry}}}]")
    return path


@pytest.mark.requirement("FR-019")
class TestSelectors:
    def test_are_read_from_the_file(self, tmp_path: Path) -> None:
        entry = BOARD + ", read_way: attached, selectors: {total_a: ['.score', '//b'], cards.link: ['./a/@href']}"
        (read,) = source_file.read(written(tmp_path, entry))
        assert read.selectors == {"total_a": [".score", "//b"], "cards.link": ["./a/@href"]}

    @pytest.mark.parametrize(
        ("entry", "named"),
        [
            (BOARD + ", selectors: {total_a: ['.score[']}", r"board: selectors: total_a: '\.score\[' cannot be used"),
            (BOARD + ", selectors: {goals: ['.score']}", "board: selectors: goals: there is no such field"),
            (CREX + ", selectors: {score: ['.score']}", "none at this source"),
            (CREX + ", read_way: attached", "its pages cannot stay open"),
            (BOARD + ", read_way: in_page", "board has no endpoints that could be requested"),
        ],
    )
    def test_invalid_ones_are_refused_by_name(self, tmp_path: Path, entry: str, named: str) -> None:
        with pytest.raises(SourceFileError, match=named):
            source_file.read(written(tmp_path, entry))


@pytest.mark.parametrize("key", sorted(ADAPTERS))
def test_an_adapters_own_selectors_are_valid(key: str) -> None:
    adapter = ADAPTERS[key]
    for layout in filter(None, (adapter.layout, adapter.list_layout)):
        assert not reading_problem(adapter, "auto", layout.named())


@pytest.mark.django_db
def test_the_board_is_not_switched_on_by_a_stadium_that_does_not_show_it() -> None:
    (entry,) = [one for one in source_file.read(Path("config/sources.yaml")) if one.domain_id == "board"]
    (source,) = source_file.sync([entry], stadium_url="http://127.0.0.1:9000", is_reset=False, now=NOW)
    assert (source.is_enabled, source.base_url) == (False, "http://127.0.0.1:9000/board")
    assert source.read_way == "attached"
