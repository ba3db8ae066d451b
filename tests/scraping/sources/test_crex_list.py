"""The list of Crex's matches from the response, the page's state, or the cards."""

from __future__ import annotations

import re
from typing import Any

import pytest

from scraping.errors import Blocked, LayoutChanged, SchemaBreak
from scraping.payloads import DiscoveredMatch, Status
from scraping.sources import adapter_for
from scraping.sources.base import Document, RefInfo
from scraping.sources.crex import site
from scraping.sources.parsing import noting_unrecognized
from tests.scraping.sources import builders as build

ADAPTER = adapter_for("crex")
LIST_URL = f"{build.CREX_BASE}/cricket-live-score"
CARDS = """
<div class="live-card"><span class="liveTag"> Live </span><a href="/crex/series/lantern-cup-LC">LC</a>
<a href="/crex/cricket-live-score/orc-vs-pel-4th-match-match-updates-9XA">
<div class="team-score"><span class="team-name">ORC</span><span> 151-10 </span></div>
<div class="team-score"><span class="team-name">PEL</span><span> 88-2 </span></div></a>
<span class="comment">PEL need 64 runs</span></div>
<div class="live-card"><a href="/crex/scoreboard/8QQ/LC/5th-T20/OR/QU/orc-vs-que/live">
<div class="team-score"><span class="team-name">ORC</span></div>
<div class="team-score"><span class="team-name">QUE</span></div></a></div>
"""


def item(**changes: Any) -> dict[str, Any]:
    return {"b": "OR", "c": "PE", "j": "", "k": "", "ti": int(build.START.timestamp() * 1000), "fo": "T20"} | changes


def found(*documents: Document) -> dict[str, DiscoveredMatch]:
    read = build.reading(RefInfo("", LIST_URL), *documents)
    return {match.source_event_id: match for match in ADAPTER.parse_list(read, build.CREX_BASE)}


def counted(*documents: Document) -> tuple[set[str], list[tuple[str, str]]]:
    """Returns the keys of the matches, and what was counted as unknown."""
    with noting_unrecognized() as unknown:
        keys = set(found(*documents))
    return keys, [(one.path, one.value) for one in unknown]


def list_page(blob: dict[str, Any] | None = None, body: str = CARDS) -> Document:
    return build.document("page", build.page_html(blob, body), url=LIST_URL)


def test_the_plan_names_page_and_endpoint() -> None:
    plan = ADAPTER.list_plan(f"{build.CREX_BASE}/")
    assert plan.url == LIST_URL
    assert plan.endpoints[0].pattern.search("https://api.goscorer.com/api/v3/getLiveMatches")
    assert plan.endpoints[0].pattern.search("https://api-v1.com/w/liveMatches2.php")


@pytest.mark.requirement("ZT-12")
class TestMatches:
    def test_of_the_answer_get_the_addresses_of_the_cards(self) -> None:
        names = {key: value for key, value in build.state().items() if "getHomeMapData" in key}
        matches = found(list_page(names), build.document("list", {"9XA": item(), "5ZZ": item()}))
        assert matches["9XA"].url == "http://site.test/crex/cricket-live-score/orc-vs-pel-4th-match-match-updates-9XA"
        assert matches["5ZZ"].url == "http://site.test/crex/cricket-live-score/match-updates-5ZZ"
        assert matches["9XA"].title == "Orchard City v Pelican Town"
        assert matches["9XA"].start_time == build.START

    def test_come_from_the_pages_state_when_the_answer_is_broken(self) -> None:
        state = {"https://live.test/api/v3/getLiveMatches": {"9XA": item(j="12/0(1.2")}}
        matches = found(list_page(state), build.document("list", b'{"9XA": {"b"'))
        assert matches["9XA"].status is Status.LIVE

    def test_come_from_the_cards_when_there_is_nothing_else(self) -> None:
        matches = found(list_page(), build.document("list", {"v2_9XA": {"v2_b": "OR"}}))
        assert {key: match.status for key, match in matches.items()} == {"9XA": Status.LIVE, "8QQ": Status.UPCOMING}
        assert matches["8QQ"].url == "http://site.test/crex/scoreboard/8QQ/LC/5th-T20/OR/QU/orc-vs-que/live"
        assert matches["9XA"].title == "ORC v PEL"

    def test_an_empty_list_is_a_list(self) -> None:
        assert found(list_page(body=""), build.document("list", {})) == {}

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"j": "12/0(1.2"}, Status.LIVE),
            ({"ti": int(build.DURING.timestamp() * 1000) + 60_000}, Status.UPCOMING),
            ({"j": "12/0(1.2", "res": "ORC won by 3 runs"}, Status.COMPLETED),
            ({"j": "12/0(1.2", "finishTime": 1}, Status.COMPLETED),
            ({"result": "Match abandoned"}, Status.ABANDONED),
            ({"j": "12/0(1.2", "ac": "rain"}, Status.LIVE),
        ],
    )
    def test_have_a_status(self, changes: dict[str, Any], expected: Status) -> None:
        assert found(build.document("list", {"9XA": item(**changes)}))["9XA"].status is expected


class TestTeamsAndSeries:
    """Fields by which another source's row of the same match is paired."""

    NAMES = build.state()["https://names.test/mapping/getHomeMapDataliveparsing"]

    def test_are_named_by_the_mapping(self) -> None:
        page = list_page({"https://names.test/mapping/getHomeMapDataliveparsing": self.NAMES})
        match = found(page, build.document("list", {"9XA": item(q="^LC")}))["9XA"]
        assert [(team.name, team.short_name) for team in match.teams] == [
            ("Orchard City", "ORC"),
            ("Pelican Town", "PEL"),
        ]
        assert match.series == "Lantern Cup & Shield"

    def test_are_both_there_or_none(self) -> None:
        names = {"t": self.NAMES["t"][:1]}
        page = list_page({"https://names.test/mapping/getHomeMapDataliveparsing": names})
        match = found(page, build.document("list", {"9XA": item(q="^QQ")}))["9XA"]
        assert (match.teams, match.series, match.title) == ((), "", "Orchard City v PE")

    def test_of_a_card_are_what_it_prints(self) -> None:
        match = found(list_page())["9XA"]
        assert [team.name for team in match.teams] == ["ORC", "PEL"]


class TestSchema:
    @pytest.mark.requirement("FS-2")
    def test_a_list_without_a_readable_row_breaks_with_the_path(self) -> None:
        with pytest.raises(SchemaBreak, match=re.escape("crex.list.v1: matches[].c (")):
            found(build.document("list", {"9XA": item(c=None)}))

    @pytest.mark.requirement("SO-12")
    @pytest.mark.parametrize("field", ["ti", "j", "k", "l", "m", "res", "result", "ac", "q", "finishTime"])
    def test_a_value_that_cannot_be_read_costs_itself(self, field: str) -> None:
        keys, unknown = counted(build.document("list", {"9XA": item(**{field: [1]})}))
        assert (keys, {path.partition(".")[0] for path, _ in unknown}) == ({"9XA"}, {"matches[]"})

    @pytest.mark.requirement("SO-12")
    @pytest.mark.parametrize(
        ("key", "row"), [("9XB", None), ("9XB", 5), ("9XB", {"b": "OR"}), ("TOOLONGKEY9", item()), ("é", item())]
    )
    def test_a_row_that_cannot_be_read_costs_itself_and_is_counted(self, key: str, row: Any) -> None:
        keys, unknown = counted(build.document("list", {"9XA": item(), key: row}))
        assert (keys, [path for path, _ in unknown]) == ({"9XA"}, ["list[]"])

    @pytest.mark.requirement("SO-12")
    def test_a_card_whose_link_is_no_address_is_counted(self) -> None:
        href = "//[/cricket-live-score/a-match-updates-9XB"
        page = list_page(body=f'{CARDS}<div class="live-card"><a href="{href}">x</a></div>')
        assert counted(page) == ({"9XA", "8QQ"}, [("list[]", f"not an address: {href}")])

    @pytest.mark.requirement("EC-1")
    def test_a_broken_answer_gives_way_to_the_page(self) -> None:
        assert found(list_page(), build.document("list", {"9XA": item(c=None)})).keys() == {"9XA", "8QQ"}


class TestAddresses:
    @pytest.mark.parametrize(
        ("path", "key"),
        [
            ("/cricket-live-score/orc-vs-pel-4th-match-match-updates-9XA", "9XA"),
            ("/cricket-live-score/orc-vs-pel-match-updates-9XA/match-scorecard", "9XA"),
            ("/scoreboard/L61/1GH/4th-ODI/Q/S/aus-vs-eng-4th-odi/live", "L61"),
            ("/scoreboard/L61/1GH/4th-ODI/Q/S/aus-vs-eng-4th-odi/scorecard", "L61"),
            ("/cricket-live-score/match-updates-9XA", "9XA"),
            ("/cricket-live-score/match-updates-9XA/match-details", "9XA"),
            ("/series/lantern-cup-LC", ""),
            ("/cricket-live-score", ""),
        ],
    )
    def test_of_matches_are_known_in_both_forms(self, path: str, key: str) -> None:
        match = ADAPTER.match_at(f"https://crex.com{path}", "https://crex.com")
        assert (match.source_event_id if match else "") == key

    @pytest.mark.parametrize(
        ("path", "tab", "expected"),
        [
            ("/cricket-live-score/a-match-updates-9XA", "match-details", "match-updates-9XA/match-details"),
            ("/cricket-live-score/a-match-updates-9XA/match-x", "match-scorecard", "match-updates-9XA/match-scorecard"),
            ("/scoreboard/L61/1GH/4th-ODI/Q/S/a-b/live", "match-scorecard", "/Q/S/a-b/scorecard"),
            ("/scoreboard/L61/1GH/4th-ODI/Q/S/a-b/live", "match-details", "/Q/S/a-b/info"),
        ],
    )
    def test_of_tabs_are_built_from_either(self, path: str, tab: str, expected: str) -> None:
        assert site.tab_of(f"https://crex.com{path}", tab).endswith(expected)

    def test_of_the_real_site_are_spread_over_its_hosts(self) -> None:
        hosts = site.hosts_of("https://crex.com/")
        assert hosts == ("https://api.goscorer.com/api/v3", "https://stats.crickapi.com")
        assert site.hosts_of("http://site.test/crex")[0] == "http://site.test/crex/api/v3"


class TestNoList:
    @pytest.mark.requirement("EC-1")
    def test_is_a_changed_layout_with_evidence(self) -> None:
        with pytest.raises(LayoutChanged, match=r"\.live-card") as caught:
            found(list_page(body="<p>new design</p>"))
        assert "new design" in caught.value.evidence

    def test_behind_a_challenge_is_blocked(self) -> None:
        with pytest.raises(Blocked):
            found(build.document("page", "<html><title>Just a moment...</title></html>"))
