"""Rounds and match addresses of each source, valid and invalid."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from scraping.errors import Blocked, Gone, LayoutChanged, PayloadRejected
from scraping.readings import Document, Reading, ReadMode, RefInfo
from scraping.sources import adapter_for
from tests.scraping.rounds import ASKED, IDS, round_of, row
from tests.scraping.sources.test_stadium import Visitor, in_stadium

SOFASCORE, CREX = adapter_for("sofascore"), adapter_for("crex")
SOFA_BASE, CREX_BASE = "https://www.sofascore.com", "https://crex.com"
PAGE = "/cricket-live-score/ind-vs-aus-match-updates-13KM"
OLD_PAGE = "/scoreboard/L61/1GH/4th-ODI/Q/S/aus-vs-eng/live"


def reading(body: object) -> Reading:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    document = Document("round", f"{SOFA_BASE}/round", 200, "application/json", data)
    return Reading(RefInfo("", document.url), ReadMode.DIRECT, datetime.now(UTC), {"round": document})


@pytest.mark.requirement("ZT-12")
class TestRound:
    def test_is_requested_at_the_sites_address(self) -> None:
        plan = SOFASCORE.round_plan(f"{SOFA_BASE}/", ASKED)
        assert plan.url == f"{SOFA_BASE}/"
        (request,) = plan.requests
        assert request.url == f"{SOFA_BASE}/api/v1/unique-tournament/325/season/87678/events/round/12"

    def test_of_the_simulated_site_equals_its_programme(self) -> None:
        async def scenario(visitor: Visitor) -> None:
            base = f"{visitor.base}/sofascore"
            await visitor.open("sofascore", f"{base}/")
            asked = {**ASKED, "round": 1}
            (request,) = SOFASCORE.round_plan(base, asked).requests
            document = await visitor.get("round", request.url)
            found = SOFASCORE.parse_round(visitor.reading(RefInfo("", base), ReadMode.DIRECT, document), base, asked)
            shown = {one["key"]: one for one in await visitor.json("/truth/matches") if one["site"] == "sofascore"}
            assert {match.source_event_id: match.url for match in found} == {
                key: one["url"] for key, one in shown.items()
            }
            assert {match.status.value for match in found} == {one["status"] for one in shown.values()}
            for match in found:
                assert SOFASCORE.match_at(match.url, base).source_event_id == match.source_event_id
            missing = await visitor.get("round", request.url.replace("/round/1", "/round/39"))
            assert missing.status == 404

        in_stadium(scenario)

    def test_lists_each_match_once(self) -> None:
        found = SOFASCORE.parse_round(reading(round_of(row(IDS[0]), row(IDS[1]), row(IDS[0]))), SOFA_BASE, ASKED)
        assert [match.source_event_id for match in found] == [IDS[0], IDS[1]]
        assert found[0].title == f"Home {IDS[0]} v Away"
        assert found[0].url == f"{SOFA_BASE}/en/football/match/home-{IDS[0]}-away/GOsuO#id:{IDS[0]}"

    def test_a_match_without_a_stated_round_is_accepted(self) -> None:
        bare = {name: value for name, value in row(IDS[0]).items() if name not in ("season", "roundInfo")}
        assert len(SOFASCORE.parse_round(reading(round_of(bare)), SOFA_BASE, ASKED)) == 1

    @pytest.mark.parametrize(
        ("body", "error"),
        [
            ({"error": {"code": 403, "reason": "challenge"}}, Blocked),
            ({"error": {"code": 404, "message": "Not Found"}}, Gone),
            (round_of(row(IDS[0], tournament={"uniqueTournament": {"id": 17}})), PayloadRejected),
        ],
        ids=["challenge", "gone", "another tournament"],
    )
    def test_answers_that_are_none(self, body: object, error: type[Exception]) -> None:
        with pytest.raises(error):
            SOFASCORE.parse_round(reading(body), SOFA_BASE, ASKED)

    def test_is_unknown_at_a_source_without_rounds(self) -> None:
        assert CREX.round_fields == ()
        with pytest.raises(LayoutChanged, match="no rounds"):
            CREX.round_plan(CREX_BASE, ASKED)


class TestAddresses:
    @pytest.mark.parametrize(
        ("path", "key"),
        [
            ("/en/football/match/flamengo-santos/GOsuO#id:15052834", "15052834"),
            ("/football/match/flamengo-santos/GOsuO#id:15052834", "15052834"),
            ("/pt-br/football/match/flamengo-santos/GOsuO/#id:15052834,tab:statistics", "15052834"),
            ("/en/football/match/flamengo-santos/GOsuO?x=1#id:15052834", "15052834"),
            ("/en/football/match/flamengo-santos/GOsuO", None),
            ("/en/football/match/flamengo-santos/GOsuO#id:", None),
            ("/en/football/match/flamengo-santos/GOsuO#id:0", None),
            ("/en/football/match/../../etc/GOsuO#id:1", None),
            ("/en/tennis/match/a-b/GOsuO#id:1", None),
            ("/api/v1/event/15052834", None),
            ("/", None),
        ],
    )
    def test_of_sofascore(self, path: str, key: str | None) -> None:
        match = SOFASCORE.match_at(f"{SOFA_BASE}{path}", SOFA_BASE)
        assert (match.source_event_id if match else None) == key
        if match:
            assert match.url == f"{SOFA_BASE}/en/football/match/flamengo-santos/GOsuO#id:15052834"

    @pytest.mark.parametrize(
        ("path", "key", "page"),
        [
            (PAGE, "13KM", PAGE),
            (f"{PAGE}/match-scorecard?a=1#b", "13KM", PAGE),
            (OLD_PAGE, "L61", OLD_PAGE),
            ("/series/x-match-updates-13KM", None, ""),
            ("/cricket-live-score", None, ""),
            ("/cricket-live-score/13KM", None, ""),
        ],
    )
    def test_of_crex(self, path: str, key: str | None, page: str) -> None:
        match = CREX.match_at(f"{CREX_BASE}{path}", CREX_BASE)
        assert (match.source_event_id if match else None) == key
        assert match is None or match.url == f"{CREX_BASE}{page}"

    def test_of_a_site_in_a_folder(self) -> None:
        base = "http://127.0.0.1:8801/sofascore"
        match = SOFASCORE.match_at(f"{base}/en/football/match/a-b/XY#id:7", base)
        assert match is not None
        assert match.url == f"{base}/en/football/match/a-b/XY#id:7"
