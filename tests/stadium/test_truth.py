from __future__ import annotations

from typing import Any

from .conftest import START, Visitor, visiting


def key_of(item: dict[str, Any]) -> str:
    """Returns an incident's key, built as by a reader where there is no id."""
    return str(item.get("id") or f"{item['incidentType']}:{item['time']}:{item.get('text') or item.get('length')}")


class TestTruth:
    @visiting()
    async def test_equals_what_crex_serves_at_any_time(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        for _ in range(25):
            visitor.wall.now += 37
            for match in await visitor.get("/truth/matches"):
                if match["site"] == "crex":
                    await self._compare_crex(visitor, match["key"])

    async def _compare_crex(self, visitor: Visitor, key: str) -> None:
        truth = await visitor.get(f"/truth/matches/crex/{key}")
        live = await visitor.get(f"/crex/api/v3/getSV3?key={key}")
        for letter, name in (("j", "team_a"), ("k", "team_b")):
            side = truth["score"][name]
            assert live[letter] == (f"{side['runs']}/{side['wickets']}({side['overs']}" if side else "")
        assert live.get("comment1") == truth["result"]
        page = await visitor.feed(key)
        assert [str(item["id"]) for item in reversed(page)] == [event["id"] for event in truth["events"][-20:]]
        kinds = {"b": "ball", "w": "wicket", "o": "over"}
        for item, event in zip(reversed(page), truth["events"][-20:], strict=True):
            assert (kinds[item["type"]], item["inning"] + 1, str(item["o"])) == (
                event["kind"],
                event["innings"],
                event["over"],
            )

    @visiting()
    async def test_equals_what_sofascore_serves_at_any_time(self, visitor: Visitor) -> None:
        await visitor.enter("sofascore")
        for _ in range(40):
            visitor.wall.now += 61
            for match in await visitor.get("/truth/matches"):
                if match["site"] == "sofascore":
                    await self._compare_sofascore(visitor, match["key"])

    async def _compare_sofascore(self, visitor: Visitor, key: str) -> None:
        truth = await visitor.get(f"/truth/matches/sofascore/{key}")
        event = (await visitor.get(f"/sofascore/api/v1/event/{key}"))["event"]
        items = (await visitor.get(f"/sofascore/api/v1/event/{key}/incidents"))["incidents"]
        statuses = {"notstarted": "upcoming", "inprogress": "live", "finished": "completed"}
        assert statuses[event["status"]["type"]] == truth["status"]
        for side, name in (("homeScore", "team_a"), ("awayScore", "team_b")):
            assert event[side].get("display") == (truth["score"][name] or {}).get("goals")
        assert [key_of(item) for item in reversed(items)] == [line["id"] for line in truth["events"]]

    @visiting()
    async def test_can_be_queried_for_a_past_time(self, visitor: Visitor) -> None:
        path = "/truth/matches/crex/138Z"
        then = await visitor.get(path)
        visitor.wall.now += 100
        assert await visitor.get(path) != then
        for at in (START, then["at"], then["at"].replace("Z", "+00:00")):
            assert await visitor.get(f"{path}?at={at}") == then
        earlier = await visitor.get(f"{path}?at={START - 10_000}")
        assert (earlier["status"], earlier["events"], earlier["score"]["team_a"]) == ("upcoming", [], None)

    @visiting()
    async def test_refuses_future_and_invalid_times(self, visitor: Visitor) -> None:
        for at in (START + 1, "soon", "2026-01-01T00:00:00"):
            response = await visitor.ask(f"/truth/matches/crex/138Z?at={at}")
            assert response.status == 400
            assert (await response.json())["error"].startswith("at ")
        assert (await visitor.ask("/truth/matches/crex/ZZZZ")).status == 404
        assert (await visitor.ask("/truth/matches/nowhere/138Z")).status == 404


class TestBallByBall:
    @visiting(programme="single")
    async def test_the_records_add_up_to_the_innings(self, visitor: Visitor) -> None:
        visitor.wall.now += 700
        match = await visitor.first("crex")
        truth = await visitor.get(f"/truth/matches/crex/{match['key']}")
        for innings in truth["innings"]:
            balls = [
                event for event in truth["events"] if event["kind"] == "ball" and event["innings"] == innings["number"]
            ]
            wickets = [wicket for ball in balls for wicket in ball["wickets"] if wicket["counts"]]
            assert sum(ball["runs"] for ball in balls) == innings["runs"]
            assert sum(ball["batter_runs"] + sum(ball["extras"].values()) for ball in balls) == innings["runs"]
            assert [wicket["player"] for wicket in wickets] == [fall["player"] for fall in innings["falls"]]
            assert not balls or balls[-1]["score"] == f"{innings['runs']}/{innings['wickets']}"
            assert sum(over["runs"] for over in innings["overs_bowled"]) == innings["runs"]

    @visiting(programme="many:1")
    async def test_is_the_same_at_every_site_despite_distortions(self, visitor: Visitor) -> None:
        for site in ("espncricinfo", "espn", "sofascorecricket"):
            await visitor.post("/control/distortions", {"site": site, "mistakes": 0.5, "names": True, "sides": True})
        visitor.wall.now += 200
        key = (await visitor.first("crex"))["key"]
        first = await visitor.get(f"/truth/matches/crex/{key}")
        assert set(first["sites"]) == {"crex", "espncricinfo", "espn", "sofascorecricket"}
        for site, own in first["sites"].items():
            truth = await visitor.get(f"/truth/matches/{site}/{own}")
            assert (truth["site"], truth["key"]) == (site, own)
            for name in ("teams", "score", "innings", "events", "toss", "sites"):
                assert truth[name] == first[name]
