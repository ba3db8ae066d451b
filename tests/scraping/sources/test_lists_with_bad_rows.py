"""A row of a list that cannot be read costs that row only, at every source, and is noted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from scraping.payloads import DiscoveredMatch
from scraping.sources import ADAPTERS, adapter_for, parsing
from scraping.sources.base import Document, RefInfo
from tests.scraping.sources import builders as build
from tests.scraping.sources import espn_builders as espn
from tests.scraping.sources import espncricinfo_pages as pages

BASE = "http://site.test"
BAD: tuple[Any, ...] = (None, 7, "row", [], {}, {"id": [], "teams": 3, "competitions": [{}]})
CARD = '<div class="sb-card"><a class="sb-link" href="{}">A v B</a><em class="sb-state">Live</em></div>'


def espn_event(number: str, **changes: Any) -> dict[str, Any]:
    return {"id": number, "competitions": [espn.competition(**changes)]}


def crex_row(**changes: Any) -> dict[str, Any]:
    return {"b": "OR", "c": "PE", "j": "12/0(1.2", "k": "", "fo": "T20"} | changes


def as_documents(name: str, body: Any) -> tuple[Document, ...]:
    return (build.document(name, body),)


@dataclass(frozen=True)
class Listing:
    """The list of a source: two good rows, and how its documents are made of rows."""

    good: tuple[Any, Any]
    documents: Callable[[list[Any]], tuple[Document, ...]]

    def read(self, key: str, rows: list[Any]) -> tuple[list[DiscoveredMatch], list[str]]:
        reading = build.reading(RefInfo("", f"{BASE}/{key}"), *self.documents(rows))
        with parsing.noting_unrecognized() as noted:
            found = adapter_for(key).parse_list(reading, f"{BASE}/{key}")
        return found, [one.path for one in noted]


LISTINGS = {
    "crex": Listing(
        (crex_row(), crex_row(c="QU")),
        lambda rows: as_documents("list", {f"9X{place}": row for place, row in enumerate(rows)}),
    ),
    "sofascore": Listing(
        (build.event(), build.event(id=7002)), lambda rows: as_documents("live_list", {"events": rows})
    ),
    "espn": Listing(
        (espn_event("1500001"), espn_event("1500002")),
        lambda rows: as_documents("list", {"scores": [{"leagues": [{"id": "8100", "name": "Cup"}], "events": rows}]}),
    ),
    "espnsoccer": Listing(
        (espn.soccer_event(), espn.soccer_event(id="740002")), lambda rows: as_documents("list", espn.board(*rows))
    ),
    "espncricinfo": Listing(
        (pages.match(), pages.match(objectId=800201)),
        lambda rows: (build.document("page", pages.html({"data": {"content": {"matches": rows}}})),),
    ),
}
LISTINGS["sofascorecricket"] = Listing(
    tuple(build.event(id=number, tournament={"category": {"sport": {"slug": "cricket"}}}) for number in (1, 2)),  # type: ignore[arg-type]
    LISTINGS["sofascore"].documents,
)


@pytest.mark.requirement("ZT-5")
class TestBadRows:
    def test_every_source_with_json_lists_is_here(self) -> None:
        assert LISTINGS.keys() == ADAPTERS.keys() - {"board"}

    @pytest.mark.parametrize("bad", BAD, ids=repr)
    @pytest.mark.parametrize("key", LISTINGS)
    def test_costs_itself_and_is_noted(self, key: str, bad: Any) -> None:
        listing = LISTINGS[key]
        first, second = copy.deepcopy(listing.good)
        found, noted = listing.read(key, [first, bad, second])
        assert len(found) == 2
        if key != "crex" or isinstance(bad, dict):  # in the object of Crex, other values are no rows
            assert noted == [parsing.LIST_ROW]

    @pytest.mark.parametrize("key", LISTINGS)
    def test_nothing_is_noted_where_all_rows_are_good(self, key: str) -> None:
        found, noted = LISTINGS[key].read(key, list(LISTINGS[key].good))
        assert (len(found), noted) == (2, [])

    def test_an_error_of_our_own_costs_the_row_too(self) -> None:
        good = LISTINGS["espnsoccer"].read("espnsoccer", list(LISTINGS["espnsoccer"].good))[0][0]

        def match_of(row: int) -> DiscoveredMatch:
            return {1: good}[row]

        with parsing.noting_unrecognized() as noted:
            assert parsing.unique_matches([2, 1], match_of) == [good]
        assert [(one.path, one.value) for one in noted] == [(parsing.LIST_ROW, "KeyError(2)")]
        with pytest.raises(KeyError):
            parsing.unique_matches([2], match_of)

    def test_a_group_of_series_without_matches_costs_the_group(self) -> None:
        good = {"leagues": [{"id": "8100"}], "events": [espn_event("1500001")]}
        document = build.document("list", {"scores": [{"events": None}, good, 5]})
        found = adapter_for("espn").parse_list(build.reading(RefInfo("", BASE), document), BASE)
        assert [one.source_event_id for one in found] == ["1500001"]

    @pytest.mark.parametrize("link", ["//[", "http://[::1", "/about", ""])
    def test_a_link_that_is_no_address_costs_its_card(self, link: str) -> None:
        html = f'<div class="sb-list">{CARD.format(link)}{CARD.format("/board/match/a-v-b-138Z")}</div>'
        page = build.document("page", html, url=f"{BASE}/board")
        with parsing.noting_unrecognized() as noted:
            found = adapter_for("board").parse_list(build.reading(RefInfo("", f"{BASE}/board"), page), f"{BASE}/board")
        assert [one.source_event_id for one in found] == ["138Z"]
        assert [one.path for one in noted] == [parsing.LIST_ROW]


class TestNeutralVenue:
    """`homeAway` may be "neutral"."""

    @pytest.mark.parametrize(
        ("stated", "first"),
        [
            (("neutral", "neutral"), "ORC"),
            (("home", "neutral"), "ORC"),
            (("neutral", "away"), "ORC"),
            (("away", "neutral"), "PEL"),
            (("neutral", "home"), "PEL"),
            (("away", "home"), "PEL"),
        ],
    )
    def test_the_sides_are_in_the_order_of_the_list(self, stated: tuple[str, str], first: str) -> None:
        row = espn_event("1500001")
        for side, name in zip(row["competitions"][0]["competitors"], stated, strict=True):
            side["homeAway"] = name
        found, noted = LISTINGS["espn"].read("espn", [row])
        assert (found[0].teams[0].short_name, noted) == (first, [])

    def test_two_home_sides_are_no_match(self) -> None:
        row = espn_event("1500001")
        row["competitions"][0]["competitors"][1]["homeAway"] = "home"
        found, noted = LISTINGS["espn"].read("espn", [row, espn_event("1500002")])
        assert ([one.source_event_id for one in found], noted) == (["1500002"], [parsing.LIST_ROW])
