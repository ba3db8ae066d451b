"""Finding Crex's matches: from the list answer, the page's state, or the cards."""

from __future__ import annotations

from typing import Any

import pytest

from scraping.errors import Blocked, LayoutChanged
from scraping.payloads import DiscoveredMatch, Status
from scraping.sources import adapter_for
from scraping.sources.base import Document, RefInfo
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


class TestNoList:
    @pytest.mark.requirement("EC-1")
    def test_is_a_changed_layout_with_evidence(self) -> None:
        with pytest.raises(LayoutChanged, match=r"\.live-card") as caught:
            found(list_page(body="<p>new design</p>"))
        assert "new design" in caught.value.evidence

    def test_behind_a_challenge_is_blocked(self) -> None:
        with pytest.raises(Blocked):
            found(build.document("page", "<html><title>Just a moment...</title></html>"))
