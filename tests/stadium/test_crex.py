from __future__ import annotations

import json
import re
from typing import Any

import pytest

from stadium.cricket.script import Ball, Dismissal, Wicket
from stadium.matches.programme import Match, Programme
from stadium.matches.teams import cricket_team, slug
from stadium.sites.crex.ball_codes import code, last_ball_code, recent_code
from stadium.sites.crex.listing import match_name, match_path, match_slug
from stadium.sites.crex.live import series_key
from stadium.sites.crex.page import decode_state, encode_state

from .conftest import Visit, Visitor, visiting


def old_match_path(match: Match) -> str:
    """The former address of a match, which still works."""
    first, second = match.teams
    number = slug(f"{match_name(match)} {match.format}")
    places = (match.key, series_key(match), number, first.key, second.key, match_slug(match), "live")
    return f"/{match.site}/scoreboard/{'/'.join(places)}"


def state_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script id="app-root-state" type="application/json">(.*?)</script>', html, re.DOTALL)
    assert found
    return decode_state(found[1])


def part(state: dict[str, Any], ending: str) -> Any:
    return next(value for key, value in state.items() if key.endswith(ending))


def texts(html: str, pattern: str) -> list[str]:
    return [found.strip() for found in re.findall(pattern, html, re.DOTALL)]


class TestBlob:
    def test_decoding_reverses_encoding(self) -> None:
        state = {"https://a/b?c=1&d=2": {"text": '<b>"It\'s" &q; & &a;q;</b> São'}}
        assert decode_state(encode_state(state)) == state

    def test_has_no_plain_markup(self) -> None:
        assert not re.search(r"[<>\"']", encode_state({"a": "<script>'\"</script>"}))


class TestMatchPage:
    @visiting()
    async def test_carries_blob_and_dom_with_the_side_now_batting_first(self, visitor: Visitor) -> None:
        matches = await visitor.get("/truth/matches")
        chase = next(match for match in matches if match["key"] == "G3WY")
        path = chase["url"][chase["url"].index("/crex") :]
        html = await visitor.enter("crex", path)
        truth = await visitor.get(f"/truth/matches/crex/{chase['key']}")
        state = state_of(html)
        live, (meta,) = part(state, "/api/v3/getSV3"), part(state, "/live/getMatchMetaData")
        assert meta["team1"] == truth["teams"]["team_a"]["name"]
        assert meta["t"] == truth["start_time"]
        assert state[f"match-{chase['key']}"]["team2"]["name"] == truth["teams"]["team_b"]["name"]
        batting = truth["score"]["team_b"]
        assert live["score1"] == f"{batting['runs']}-{batting['wickets']}"
        assert (live["over1"], live["inning"]) == (batting["overs"], 2)
        assert live["team1_f_n"] == truth["teams"]["team_b"]["name"]
        assert live["target"] == truth["score"]["team_a"]["runs"] + 1
        assert part(state, "getBallFeeds") == await visitor.feed(chase["key"])
        names = {row["f_key"]: row["n"] for row in part(state, "getHomeMapDataliveparsing")["t"]}
        assert [names[key] for key in live["a"].split(".")] == [team["name"] for team in truth["teams"].values()]
        first = texts(html, r'class="runs f-runs">(.*?)</div>')[0]
        second = texts(html, r'class="runs second-innings">(.*?)</div>')[0]
        assert texts(first, r"<span>(.*?)</span>") == [live["score1"], f"({live['over1']})"]
        assert texts(second, r"<span>(.*?)</span>") == [f"({live['over2']})", live["score2"]]
        assert "cm-b-roundcard" in html

    @visiting()
    async def test_refuses_keys_without_a_slug_and_unknown_keys(self, visitor: Visitor) -> None:
        assert (await visitor.ask("/crex/cricket-live-score/138Z")).status == 403
        assert (await visitor.ask("/crex/cricket-live-score/any-match-updates-ZZZZ")).status == 404
        assert (await visitor.ask("/crex/cricket-live-score/any-slug-at-all-138Z")).status == 200

    @visiting()
    async def test_has_an_old_address_and_tabs(self, visitor: Visitor) -> None:
        match = visitor.simulation.find("crex", "138Z")
        assert match is not None
        old = old_match_path(match)
        for path in (old, old.replace("/live", "/scorecard"), f"{match_path(match)}/match-scorecard"):
            html = await visitor.enter("crex", path)
            assert "match-138Z" in state_of(html)
        assert part(state_of(html), "getSC4")[0]["c"] == match.teams[0].key
        details = state_of(await visitor.enter("crex", f"{match_path(match)}/match-details"))
        assert part(details, "getIV4")["t"] == "-".join(team.key for team in match.teams)
        assert (await visitor.ask(f"{match_path(match)}/match-nothing")).status == 404

    @visiting()
    async def test_all_referenced_assets_exist(self, visitor: Visitor) -> None:
        html = await visitor.enter("crex")
        for path in set(re.findall(r'(?:src|href)="(/crex/assets/[^"]+)"', html)):
            assert (await visitor.ask(path)).status == 200, path
        assert (await visitor.ask("/crex/assets/../routes.py")).status == 404
        assert "Disallow: /crex/private" in await (await visitor.ask("/crex/robots.txt")).text()


class TestLists:
    @visiting()
    async def test_cards_and_json_list_the_same_matches(self, visitor: Visitor) -> None:
        html = await visitor.enter("crex", "/crex/cricket-live-score")
        listed = await visitor.get("/crex/api/v3/getLiveMatches")
        assert part(state_of(html), "getLiveMatches") == listed
        links = re.findall(r'href="(/crex/cricket-live-score/[^"]+-match-updates-(\w+))"', html)
        assert [key for _, key in links] == list(listed)
        assert html.count('<div class="live-card"') == len(listed)
        for path, _ in links:
            assert (await visitor.ask(path)).status == 200

    @visiting()
    async def test_items_show_upcoming_live_and_finished_matches(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        upcoming = await visitor.first("crex", "upcoming")
        item = (await visitor.get("/crex/api/v3/getLiveMatches"))[upcoming["key"]]
        assert (item["j"], item["k"], item["result"]) == ("", "", "")
        assert item["ti"] > visitor.wall.now * 1000
        assert item["q"].startswith("^")
        assert "finishTime" not in item
        visitor.wall.now += 95
        finished = await visitor.first("crex", "completed")
        item = (await visitor.get("/crex/api/v3/getLiveMatches"))[finished["key"]]
        assert " won by " in item["result"]
        assert item["finishTime"] <= visitor.wall.now * 1000

    @visiting()
    async def test_names_are_given_for_keys(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        live = await visitor.get("/crex/api/v3/getSV3?key=138Z")
        team, player = live["a"].split(".")[0], live["b"]
        body = {"p": [player], "t": [team, "NONE"], "s": [], "v": [], "u": [], "lc": "en"}
        names = await visitor.post("/crex/mapping/getHomeMapData", body)
        assert [row["f_key"] for row in names["t"]] == [team]
        assert [row["f_key"] for row in names["p"]] == [player]
        assert names["s"] == []


class TestLiveState:
    @visiting()
    async def test_has_the_code_of_the_site(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        live = await visitor.get("/crex/api/v3/getSV3?key=G3WY")
        assert re.fullmatch(r"\d+/\d+\(\d+\.\d", live["j"])
        assert re.fullmatch(r"\d+/\d+\(\d+\.\d", live["k"])
        assert (live["h"], live["fo"]) == ("1", "T20")
        assert len(live["p"].split(".")) == 2
        assert sum(live[name].endswith("*") for name in ("q", "s")) == 1
        assert [row["o"] for row in live["rb"]] == sorted(row["o"] for row in live["rb"])
        assert re.fullmatch(r"\d+:[\w.]+", live["m"])

    @visiting()
    async def test_upcoming_has_no_scores(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        live = await visitor.get("/crex/api/v3/getSV3?key=Q5X6")
        assert (live["j"], live["k"], live["B"]) == ("", "", "")

    @visiting()
    async def test_break_has_a_text_and_the_end_a_comment(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        visitor.wall.now += 30
        live = await visitor.get("/crex/api/v3/getSV3?key=V4KX")
        assert (live["B"], live["k"]) == ("Innings Break", "0/0(0.0")
        visitor.wall.now += 65
        live = await visitor.get("/crex/api/v3/getSV3?key=B597")
        assert " won by " in live["comment1"]

    def test_rain_has_a_text(self, visit: Visit) -> None:
        programme = Programme("single", 7)
        slot = programme.slots[0]
        match = next(m for turn in range(1, 60) if len(rain_of(m := programme.match(slot, turn))) > 0)

        async def scenario(visitor: Visitor) -> None:
            visitor.simulation.clock.skip(rain_of(match)[0] + 1)
            await visitor.enter("crex")
            live = await visitor.get(f"/crex/api/v3/getSV3?key={match.key}")
            assert live["B"] == "Match delayed by rain"
            assert (await visitor.get("/crex/api/v3/getLiveMatches"))[match.key]["ac"] == "rain"
            assert (await visitor.get(f"/truth/matches/crex/{match.key}"))["phase"] == "rain"

        visit(scenario, programme="single")

    @visiting()
    async def test_unknown_key_is_not_found(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        for key in ("", "ZZZZ", "g3wy", "15010285"):
            assert (await visitor.ask(f"/crex/api/v3/getSV3?key={key}")).status == 404


def rain_of(match: Any) -> list[float]:
    return [match.starts_at + event.at for event in match.script.events if getattr(event, "kind", None) == "rain"]


class TestOtherEndpoints:
    @visiting()
    async def test_the_scorecard_counts_balls_and_adds_up(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        live = await visitor.get("/crex/api/v3/getSV3?key=G3WY")
        card = await visitor.get("/crex/api/v3/getSC4?key=G3WY")
        assert [innings["c"] for innings in card] == live["a"].split(".")
        for innings, printed in zip(card, (live["j"], live["k"]), strict=True):
            score, balls = innings["d"].split("(")
            assert f"{score}({int(balls) // 6}.{int(balls) % 6}" == printed
            batters = sum(int(line.split(".")[1]) for line in innings["b"])
            assert batters + sum(map(int, innings["e"].split("."))) == int(score.split("/")[0])
            assert sum(int(line.split(".")[2]) for line in innings["a"]) == int(balls)

    @visiting()
    async def test_squads_turn_into_elevens_at_the_toss(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        before = await visitor.get("/crex/api/v3/getIV4?key=Q5X6")
        assert (before["tp"], before["tb"].count("-")) == ("", 20)
        after = await visitor.get("/crex/api/v3/getIV4?key=G3WY")
        assert (after["tb"], after["tp"].count("-"), after["x"].count("/")) == ("", 20, 3)

    @visiting()
    async def test_fixtures_come_in_pages_with_the_past_below_zero(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        visitor.wall.now += 95
        asked = {"tl": [], "type": "all", "wise": "1", "lang": "en", "formatType": ""}
        coming = await visitor.post("/crex/fixture/getFixture", asked | {"page": 0})
        past = await visitor.post("/crex/fixture/getFixture", asked | {"page": -1})
        starts = [item["ti"] for item in coming]
        assert starts == sorted(starts)
        assert 0 < len(coming) <= 20
        assert past
        assert all(item["result"] for item in past)
        assert not {item["mf"] for item in coming} & {item["mf"] for item in past}
        response = await visitor.client.post("/crex/fixture/getFixture", json={"page": "0"})
        assert (response.status, await response.text()) == (400, "Request Payload Error!")
        schedule = state_of(await visitor.enter("crex", "/crex/schedule"))
        assert part(schedule, "getFixture") == coming
        named = {row["f_key"] for row in part(schedule, "getHomeMapDatafixture")["t"]}
        assert named >= {item["b"] for item in coming}

    @visiting()
    async def test_every_fixture_has_a_page(self, visitor: Visitor) -> None:
        """A listed match with a 404 would count as removed."""
        await visitor.enter("crex")
        asked = {"tl": [], "type": "all", "wise": "1", "lang": "en", "formatType": "", "page": 0}
        keys = [item["mf"] for item in await visitor.post("/crex/fixture/getFixture", asked)]
        assert "Q5X6" in keys
        for key in keys:
            assert await visitor.get(f"/crex/api/v3/getIV4?key={key}")

    @visiting()
    async def test_page_has_the_toss(self, visitor: Visitor) -> None:
        match = visitor.simulation.find("crex", "G3WY")
        assert match is not None
        truth = await visitor.get("/truth/matches/crex/G3WY")
        [after] = part(state_of(await visitor.enter("crex", match_path(match))), "getPostMatchDataV2")
        assert after["toss_team"] == truth["teams"][truth["toss_winner"]]["name"]
        assert after["chose_to"] == (1 if truth["toss_decision"] == "bat" else 2)


def ball(runs: int = 0, *extras: tuple[str, int], wickets: tuple[Wicket, ...] = ()) -> Ball:
    one, two = cricket_team(1).players[:2]
    return Ball(0.0, 0, 3, 2, 20, one, two, two, runs, extras, wickets)


BOWLED = Wicket(Dismissal.BOWLED, cricket_team(1).players[0])
RETIRED = Wicket(Dismissal.RETIRED_HURT, cricket_team(1).players[0])
OBSTRUCTED = Wicket(Dismissal.OBSTRUCTING, cricket_team(1).players[0])


class TestCodes:
    @pytest.mark.parametrize(
        ("delivery", "feed", "recent", "last"),
        [
            (ball(0), "0", "0", "0"),
            (ball(4), "4", "4", "4"),
            (ball(0, ("wd", 1)), "wd", "wd", "wd"),
            (ball(0, ("wd", 5)), "5wd", "wd5", "5wd"),
            (ball(0, ("nb", 1)), "nb", "nb", "nb"),
            (ball(1, ("nb", 1)), "1nb", "nb1", "1nb"),
            (ball(5, ("nb", 1)), "nb+5", "nb+5", "nb+5"),
            (ball(0, ("nb", 1), ("b", 2)), "nb+2b", "nb+2b", "nb+2b"),
            (ball(0, ("lb", 3)), "3lb", "lb3", "3lb"),
            (ball(1, ("pen", 5)), "1+5pen", "1+5pen", "1+5pen"),
            (ball(0, wickets=(BOWLED,)), "W", "w", "^1"),
            (ball(1, wickets=(OBSTRUCTED,)), "1W", "w", "W"),
            (ball(0, ("wd", 1), wickets=(BOWLED,)), "wd+W", "w", "^1"),
            (ball(2, wickets=(RETIRED,)), "2", "2", "2"),
        ],
    )
    def test_codes_of_every_kind_of_delivery(self, delivery: Ball, feed: str, recent: str, last: str) -> None:
        assert (code(delivery), recent_code(delivery), last_ball_code(delivery)) == (feed, recent, last)


class TestFeed:
    @visiting()
    async def test_pages_have_no_gaps(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        items = await visitor.whole_feed("G3WY")
        ids = [item["id"] for item in items]
        assert ids == sorted(set(ids))
        assert len(await visitor.feed("G3WY")) == 20
        balls = [item for item in items if item["type"] == "b"]
        assert [ball["delivery"] for ball in balls] == list(range(1, len(balls) + 1))
        assert {item["fv"] for item in items} == {2, 4, 8, 32, 64}
        wickets = [ball for ball in balls if ball["b"] == "W"]
        assert len(wickets) == sum(item["type"] == "w" for item in items)
        assert {item["inning"] for item in items} == {0, 1}

    @visiting()
    async def test_balls_add_up_to_the_score(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        items = await visitor.whole_feed("L79F")
        live = await visitor.get("/crex/api/v3/getSV3?key=L79F")
        balls = [item for item in items if item["type"] == "b"]
        assert live["j"].split("(")[0] == balls[-1]["s"]
        overs = [item for item in items if item["type"] == "o"]
        done = [ball for ball in balls if ball["id"] < overs[-1]["id"]]
        assert sum(over["runs"] for over in overs) == int(overs[-1]["s"].split("/")[0])
        assert ".".join(over["rb"] for over in overs) == ".".join(ball["b"] for ball in done)

    @visiting()
    async def test_ids_are_the_wall_times_and_survive_a_change_of_pace(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        before = await visitor.whole_feed("138Z")
        await visitor.post("/control/pace", {"pace": 50})
        visitor.wall.now += 20
        after = await visitor.whole_feed("138Z")
        assert after[: len(before)] == before
        assert len(after) > len(before)
        assert all(item["id"] <= visitor.wall.now * 1000 for item in after)

    @visiting()
    async def test_refuses_a_wrong_payload(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        for body in ("{", "[]", '{"lastDocId": ""}', '{"matchKey": "138Z", "lastDocId": "x"}'):
            response = await visitor.client.post("/crex/commentary/v2/getBallFeeds", data=body)
            assert (response.status, await response.text()) == (400, "Request Payload Error!")

    @visiting()
    async def test_wicket_items_have_player_and_dismissal(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        item = next(item for item in await visitor.whole_feed("G3WY") if item["type"] == "w")
        assert item["dismissal"] in range(1, 8)
        assert item["wn"] == 1
        assert item["wicketDesc"]
        assert item["player_fullname"]
        json.dumps(item)
