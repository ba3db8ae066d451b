from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from scraping.readings import Document, Reading, ReadMode, RefInfo
from scraping.sources.sofascore.cricket_adapter import SofascoreCricketAdapter
from stadium.access import fnv1a

from .conftest import Visit, Visitor, visiting

API = "/sofascore/api/v1"


class TestEvent:
    @visiting()
    async def test_has_the_shape_of_the_site(self, visitor: Visitor) -> None:
        await visitor.enter("sofascore")
        match = await visitor.first("sofascore")
        event = (await visitor.get(f"{API}/event/{match['key']}"))["event"]
        assert event["id"] == int(match["key"])
        assert event["status"] == {"code": 6, "description": "1st half", "type": "inprogress"}
        assert event["tournament"]["uniqueTournament"]["id"] == 325
        assert event["homeScore"].keys() == {"current", "display", "period1", "normaltime"}
        assert event["time"]["initial"] == 0
        assert f"/{event['slug']}/{event['customId']}#id:{event['id']}" in match["url"]

    @visiting()
    async def test_passes_through_all_statuses(self, visitor: Visitor) -> None:
        await visitor.enter("sofascore")
        match = await visitor.first("sofascore")
        seen: list[tuple[int, str]] = []
        for _ in range(80):
            event = (await visitor.get(f"{API}/event/{match['key']}"))["event"]
            status = (event["status"]["code"], event["status"]["type"])
            if status not in seen:
                seen.append(status)
            visitor.wall.now += 10
        assert seen == [(6, "inprogress"), (31, "inprogress"), (7, "inprogress"), (100, "finished")]
        assert event["winnerCode"] in (1, 2, 3)
        halves = [event["homeScore"]["period1"], event["homeScore"]["period2"]]
        assert event["homeScore"]["current"] == sum(halves)

    @visiting()
    async def test_before_kick_off_the_score_is_empty(self, visitor: Visitor) -> None:
        await visitor.enter("sofascore")
        events = (await visitor.get(f"{API}/unique-tournament/325/season/87678/events/round/2"))["events"]
        assert all(event["homeScore"] == {} and event["status"]["type"] == "notstarted" for event in events)
        incidents = await visitor.get(f"{API}/event/{events[0]['id']}/incidents")
        assert incidents["incidents"] == []

    @visiting()
    async def test_headers_allow_caching_and_revalidation(self, visitor: Visitor) -> None:
        await visitor.enter("sofascore")
        match = await visitor.first("sofascore")
        response = await visitor.ask(f"{API}/event/{match['key']}")
        assert response.headers["Cache-Control"] == "max-age=10, s-maxage=172800"
        assert "Date" in response.headers
        again = await visitor.client.get(
            f"{API}/event/{match['key']}", headers={"If-None-Match": response.headers["ETag"]}
        )
        assert again.status == 304

    @visiting()
    async def test_unknown_events_are_not_found(self, visitor: Visitor) -> None:
        await visitor.enter("sofascore")
        for key in ("1", "abc", "99999999999"):
            response = await visitor.ask(f"{API}/event/{key}")
            assert response.status == 404
            assert await response.json() == {"error": {"code": 404, "message": "Not Found"}}
        assert (await visitor.ask("/sofascore/en/football/match/any/zzz")).status == 404


class TestIncidents:
    @visiting()
    async def test_are_complete_newest_first_and_of_known_shapes(self, visitor: Visitor) -> None:
        await visitor.enter("sofascore")
        match = await visitor.first("sofascore")
        visitor.wall.now += 700
        items = (await visitor.get(f"{API}/event/{match['key']}/incidents"))["incidents"]
        assert items[0]["text"] == "FT"
        by_type: dict[str, dict[str, Any]] = {item["incidentType"]: item for item in items}
        assert {"period", "injuryTime", "card"} <= by_type.keys()
        assert "id" not in by_type["period"]
        assert "id" not in by_type["injuryTime"]
        ids = [item["id"] for item in items if "id" in item]
        assert len(set(ids)) == len(ids)
        event = (await visitor.get(f"{API}/event/{match['key']}"))["event"]
        goals = [item["isHome"] for item in items if item["incidentType"] == "goal"]
        assert (goals.count(True), goals.count(False)) == (
            event["homeScore"]["display"],
            event["awayScore"]["display"],
        )


class TestLists:
    @visiting()
    async def test_live_and_scheduled_agree_with_the_truth(self, visitor: Visitor) -> None:
        html = await visitor.enter("sofascore")
        truth = [match for match in await visitor.get("/truth/matches") if match["site"] == "sofascore"]
        live = (await visitor.get(f"{API}/sport/football/events/live"))["events"]
        assert [str(event["id"]) for event in live] == [m["key"] for m in truth if m["status"] == "live"]
        today = datetime.fromtimestamp(visitor.wall.now, UTC).date()
        scheduled = (await visitor.get(f"{API}/unique-tournament/325/scheduled-events/{today}"))["events"]
        assert {str(event["id"]) for event in scheduled} <= {match["key"] for match in truth}
        assert all(match["url"].partition("/sofascore")[2] in html for match in truth)

    @visiting()
    async def test_tournaments_of_a_day_are_paged(self, visitor: Visitor) -> None:
        await visitor.enter("sofascore")
        today = datetime.fromtimestamp(visitor.wall.now, UTC).date()
        found = await visitor.get(f"{API}/sport/football/scheduled-tournaments/{today}/page/1")
        assert [row["tournament"]["uniqueTournament"]["id"] for row in found["scheduled"]] == [325]
        assert found["hasNextPage"] is False
        for wrong in (f"scheduled-tournaments/{today}/page/2", "scheduled-tournaments/x/page/1"):
            assert (await visitor.ask(f"{API}/sport/football/{wrong}")).status == 404
        assert (await visitor.ask(f"{API}/sport/football/scheduled-events/{today}")).status == 404

    @visiting()
    async def test_a_round_has_one_match_of_each_slot(self, visitor: Visitor) -> None:
        await visitor.enter("sofascore")
        path = f"{API}/unique-tournament/325/season/87678/events/round"
        events = (await visitor.get(f"{path}/38"))["events"]
        assert [event["roundInfo"]["round"] for event in events] == [38, 38]
        for wrong in (f"{path}/39", f"{path}/x", path.replace("325", "1") + "/1"):
            assert (await visitor.ask(wrong)).status == 404

    @visiting()
    async def test_lineups_and_ratings_are_there(self, visitor: Visitor) -> None:
        await visitor.enter("sofascore")
        match = await visitor.first("sofascore")
        lineups = await visitor.get(f"{API}/event/{match['key']}/lineups")
        starters = [row for row in lineups["home"]["players"] if not row["substitute"]]
        assert len(starters) == 11
        assert all(row["statistics"] == {} for row in starters)
        visitor.wall.now += 700
        ended = await visitor.get(f"{API}/event/{match['key']}/lineups")
        rated = [row for row in ended["home"]["players"] if "rating" in row["statistics"]]
        assert len(rated) >= 11
        assert all(1 <= row["statistics"]["minutesPlayed"] <= 90 for row in rated)


class TestCricket:
    """The cricket section has its own base path and the same access control."""

    SITE = "/sofascorecricket"
    API = f"{SITE}/api/v1"

    async def enter(self, visitor: Visitor, path: str = "/cricket") -> str:
        html = str(await (await visitor.ask(f"{self.SITE}{path}")).text())
        found = re.search(r'<meta name="sf-n" content="([^"]+)">', html)
        assert found
        cookies = {"sfcclr": f"{found[1]}.{fnv1a(found[1])}"}
        visitor.client.session.cookie_jar.update_cookies(cookies, visitor.client.make_url(f"{self.SITE}/"))
        return html

    @visiting(programme="only:sofascorecricket:2")
    async def test_is_refused_without_a_page_visit(self, visitor: Visitor) -> None:
        match = await visitor.first("sofascorecricket")
        refused = await visitor.ask(f"{self.API}/event/{match['key']}")
        assert (refused.status, (await refused.json())["error"]["reason"]) == (403, "challenge")
        await self.enter(visitor, match["url"].partition(self.SITE)[2].partition("#")[0])
        assert (await visitor.ask(f"{self.API}/event/{match['key']}")).status == 200

    @visiting(programme="only:sofascorecricket:2")
    async def test_lists_the_live_matches(self, visitor: Visitor) -> None:
        html = await self.enter(visitor)
        truth = await visitor.get("/truth/matches")
        live = (await visitor.get(f"{self.API}/sport/cricket/events/live"))["events"]
        assert [str(event["id"]) for event in live] == [row["key"] for row in truth if row["status"] == "live"]
        assert all(row["url"].partition(self.SITE)[2] in html for row in truth)
        today = datetime.fromtimestamp(visitor.wall.now, UTC).date()
        days = await visitor.get(f"{self.API}/sport/cricket/scheduled-tournaments/{today}/page/1")
        number = days["scheduled"][0]["tournament"]["uniqueTournament"]["id"]
        listed = await visitor.get(f"{self.API}/unique-tournament/{number}/scheduled-events/{today}")
        assert {str(event["id"]) for event in listed["events"]} <= {row["key"] for row in truth}

    @pytest.mark.requirement("ZT-12")
    def test_a_day_is_found_through_its_tournaments(self, visit: Visit) -> None:
        """As the adapter does: the day's tournaments, then the list of each."""
        adapter = SofascoreCricketAdapter()

        async def scenario(visitor: Visitor) -> None:
            await self.enter(visitor)
            today = datetime.fromtimestamp(visitor.wall.now, UTC).date()
            readings: list[Reading] = []
            requests = adapter.fixture_plan(self.SITE, today).requests
            while requests:
                at = datetime.fromtimestamp(visitor.wall.now, UTC)
                answers = {one.name: await (await visitor.ask(one.url)).read() for one in requests}
                found = {name: Document(name, "", 200, "application/json", body) for name, body in answers.items()}
                readings.append(Reading(RefInfo("", ""), ReadMode.DIRECT, at, found))
                requests = adapter.more_fixtures(readings, self.SITE, today)
            listed = [match for one in readings for match in adapter.parse_fixtures(one, self.SITE, today)]
            truth = {row["key"]: row for row in await visitor.get("/truth/matches")}
            assert listed
            for match in listed:
                assert match.status == truth[match.source_event_id]["status"]
                assert match.url in truth[match.source_event_id]["url"]
            starts = {match.start_time.date() for match in listed if match.start_time}
            assert starts == {today}

        visit(scenario, programme="only:sofascorecricket:4")

    @visiting(programme="only:sofascorecricket:2")
    async def test_has_the_shape_of_the_site(self, visitor: Visitor) -> None:
        await self.enter(visitor)
        match = await visitor.first("sofascorecricket")
        one = f"{self.API}/event/{match['key']}"
        visitor.wall.now += 60
        event = (await visitor.get(one))["event"]
        assert event["status"] == {"code": 21, "description": "1st Inning", "type": "inprogress"}
        assert event["tournament"]["category"]["sport"]["slug"] == "cricket"
        batting = next(side for side in ("home", "away") if "innings" in event[f"{side}Score"])
        inning = event[f"{batting}Score"]["innings"]["inning1"]
        incidents = (await visitor.get(f"{one}/incidents"))["incidents"]
        newest = incidents[0]
        assert newest["score"] == f"{inning['score']}/{inning['wickets']}"
        assert newest["battingTeamId"] == event[f"{batting}Team"]["id"]
        assert [ball["number"] for ball in incidents] == list(range(len(incidents), 0, -1))
        assert incidents[-1]["over"] == 1  # overs count from 1
        rows = (await visitor.get(f"{one}/innings"))["innings"]
        assert (rows[0]["number"], rows[0]["score"]) == (1, inning["score"])
        assert (await visitor.get(f"{one}/lineups"))["confirmed"] is True
        assert (await visitor.ask(f"{self.API}/event/1/incidents")).status == 404
