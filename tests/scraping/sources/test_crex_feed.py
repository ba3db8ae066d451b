"""The ball feed: stable events, and requests for older ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from scraping.payloads import Event, Payload
from scraping.sources import adapter_for
from scraping.sources.base import Document, Request
from scraping.sources.crex import texts
from scraping.sources.crex.ball_feed import events_of, items_in
from tests.scraping.sources import builders as build

ADAPTER = adapter_for("crex")
ASKED = Request(
    "feed",
    "http://site.test/commentary/v2/getBallFeeds",
    "POST",
    json.dumps({"matchKey": "9XA", "lastDocId": None, "filters": [1], "lang": "hi"}).encode(),
)


def events(*items: dict[str, Any]) -> list[Event]:
    return list(events_of(items_in(list(items), "9XA") or []))


def event(item: dict[str, Any]) -> Event:
    return events(item)[0]


class TestEvents:
    def test_a_ball_keeps_the_sources_id_and_running_number(self) -> None:
        found = event(build.ball(181, "4", fv=8))
        assert (found.id, found.kind, found.ordinal) == ("1777739430000", "four", 181)
        assert (found.innings, found.over, found.runs) == (2, "10.3", 4)
        assert found.description == "Ada Reed to Bo Finch Driven past cover"
        assert found.happened_at == datetime.fromtimestamp(1_777_739_430, tz=UTC)
        assert found.detail == {"score": "88/2", "ball": "4", "batter_key": "P1", "bowler_key": "B1"}

    def test_a_no_ball_repeats_the_over_and_is_still_its_own_event(self) -> None:
        found = events(*build.feed())
        assert [one.kind for one in found] == ["four", "over_complete", "no_ball", "dismissal", "wicket"]
        assert [one.over for one in found].count("9.6") == 3
        assert len({one.id for one in found}) == 5

    def test_a_dismissal_names_player_and_manner_and_the_fall(self) -> None:
        found = event(build.feed()[3])
        assert found.detail == {"player": "Cy Moss", "text": "c Reed b Vale", "wicket": 2}
        assert found.description == "Cy Moss c Reed b Vale 31(22)"
        assert (found.is_critical, found.slot, found.ordinal) == (True, "w:2:2", None)

    def test_the_end_of_an_over_has_the_slot_of_that_over(self) -> None:
        found = event(build.feed()[1])
        assert (found.slot, found.over, found.is_critical) == ("o:2:9", "10", False)

    @pytest.mark.parametrize("manner", ["retired hurt", "Retd hurt", "retired not out", "retd. ill", "retired - hurt"])
    def test_a_batter_who_retires_hurt_is_not_out(self, manner: str) -> None:
        found = event(build.feed()[3] | {"wicketDesc": manner, "dismissal": 9, "wn": None})
        assert (found.kind, found.is_critical, found.slot) == ("retired", False, "")

    def test_a_batter_who_retires_out_is_out(self) -> None:
        found = event(build.feed()[3] | {"wicketDesc": "retired out", "dismissal": None})
        assert (found.kind, found.slot) == ("dismissal", "w:2:2")

    @pytest.mark.parametrize("inning", [0, 1, 2, 3, 5])
    def test_innings_go_on_counting_through_super_overs(self, inning: int) -> None:
        found = event(build.ball(1, inning=inning, o="0.1"))
        assert (found.innings, found.slot) == (inning + 1, f"b:{inning + 1}:0:1")

    def test_reviews_and_the_unknown_are_not_critical(self) -> None:
        for letter, kind in {"ac": "review", "poll": "other"}.items():
            found = event({"id": 5, "type": letter})
            assert (found.kind, found.is_critical) == (kind, False)

    def test_an_id_that_comes_twice_counts_once(self) -> None:
        assert len(events(build.ball(1), build.ball(1), build.ball(2))) == 2

    @pytest.mark.parametrize(
        ("code", "expected"),
        [
            ("0", ("dot", 0)), ("1", ("runs", 1)), ("3", ("runs", 3)), ("4", ("four", 4)), ("6", ("six", 6)),
            ("W", ("wicket", 0)), ("^2", ("wicket", 0)), ("1W", ("wicket", 1)), ("W1", ("wicket", 1)),
            ("wd", ("wide", 1)), ("1wd", ("wide", 1)), ("5wd", ("wide", 5)), ("wd5", ("wide", 5)),
            ("nb", ("no_ball", 1)), ("1nb", ("no_ball", 2)), ("nb1", ("no_ball", 2)), ("4nb", ("no_ball", 5)),
            ("5nb", ("no_ball", 5)), ("6nb", ("no_ball", 7)), ("7nb", ("no_ball", 7)), ("nb+5", ("no_ball", 6)),
            ("nb+2b", ("no_ball", 3)), ("nb+4lb", ("no_ball", 5)),
            ("2b", ("bye", 2)), ("b2", ("bye", 2)), ("4lb", ("leg_bye", 4)), ("lb4", ("leg_bye", 4)),
            ("lb", ("leg_bye", 1)), ("1wd+W", ("wicket", 1)), ("wd+W", ("wicket", 1)), ("1nb+W", ("wicket", 2)),
            ("2lb+W", ("wicket", 2)), ("5pen", ("other", 5)), ("1+5pen", ("other", 6)), ("0+1b", ("bye", 1)),
            ("B", ("other", None)), ("", ("other", None)), ("Innings Break", ("other", None)), ("zz", ("other", None)),
        ],
    )  # fmt: skip
    def test_a_ball_code_gives_kind_and_runs(self, code: str, expected: tuple[str, int | None]) -> None:
        assert texts.read_code(code)[:2] == expected

    def test_a_ball_is_critical_whatever_its_code(self) -> None:
        assert event(build.ball(1, "5pen")).is_critical


def over(number: int, codes: str, **changes: Any) -> dict[str, Any]:
    """The summary of an over, counted from 1."""
    return {
        "id": 1_777_734_000_000 + 10**6 * number, "mfkey": "9XA", "type": "o", "inning": 1, "o": number, "rb": codes,
        "s": "1/0", **changes,
    }  # fmt: skip


def balls(first: int, done: int, *codes: str, inning: int = 1) -> list[dict[str, Any]]:
    """An over's deliveries with their labels, oldest first."""
    found, legal = [], 0
    for place, code in enumerate(codes):
        label = f"{done}.{legal + 1}"
        found.append(build.ball(first + place, code, o=label, on=done, inning=inning))
        legal += "wd" not in code and "nb" not in code
    return found


class TestPlaces:
    """The place of a delivery in its over, extras counted."""

    WHOLE = ("1", "4", "1", "1", "W", "1nb", "4")

    def slots(self, *items: dict[str, Any]) -> dict[int, str]:
        return {one.ordinal: one.slot for one in events(*reversed(items)) if one.ordinal}

    def test_counts_what_does_not_count_for_the_over(self) -> None:
        found = self.slots(*balls(161, 9, "1"), *balls(162, 10, "wd", "1", "1nb", "4", "W"))
        assert [found[number] for number in range(162, 167)] == [f"b:2:10:{place}" for place in range(1, 6)]

    def test_is_unknown_where_the_list_begins_within_the_over(self) -> None:
        found = self.slots(*balls(162, 10, *self.WHOLE)[3:], *balls(169, 11, "1", "2"))
        assert [found[number] for number in (165, 168, 169, 170)] == ["", "", "b:2:11:1", "b:2:11:2"]

    def test_follows_from_the_over_summary(self) -> None:
        part = balls(162, 10, *self.WHOLE)[3:]
        assert self.slots(*part, over(11, ".".join(self.WHOLE)))[165] == "b:2:10:4"

    def test_survives_missing_items(self) -> None:
        """The items of a recorded page, which lack the last ball of the over."""
        no_ball = balls(162, 10, *self.WHOLE)[5]
        later = balls(169, 11, "4", "0", "1", "1", "4")[3:]
        found = self.slots(no_ball, over(11, ".".join(self.WHOLE)), *later, over(12, "4.0.1.1.4"))
        assert found == {167: "b:2:10:6", 172: "b:2:11:4", 173: "b:2:11:5"}

    def test_is_not_guessed_where_several_places_fit(self) -> None:
        middle = balls(162, 10, "1", "wd", "wd", "1", "1", "1")[1:2]
        assert self.slots(*middle, over(11, "1.wd.wd.1.1.1")) == {163: ""}

    def test_of_the_first_ball_of_a_match_is_the_first(self) -> None:
        assert self.slots(*balls(1, 0, "wd", "1", inning=0)) == {1: "b:1:0:1", 2: "b:1:0:2"}

    @pytest.mark.parametrize(("summary", "slot"), [("1.4.1", "b:2:10:2"), ("0.1.4.1", "")])
    def test_without_running_numbers_takes_a_whole_over(self, summary: str, slot: str) -> None:
        own = [item | {"delivery": None} for item in balls(162, 10, "1", "4", "1")]
        found = events(*reversed([*own, over(11, summary)]))
        assert next(one.slot for one in found if one.detail.get("ball") == "4") == slot

    def test_without_running_numbers_counts_an_over_that_begins_on_the_list(self) -> None:
        items = [item | {"delivery": None} for item in (*balls(161, 9, "6"), *balls(162, 10, "wd", "4"))]
        found = {one.detail["ball"]: one.slot for one in events(*reversed(items))}
        assert found == {"6": "", "wd": "b:2:10:1", "4": "b:2:10:2"}


class TestUnknownValues:
    @pytest.mark.requirement("FS-2", "FS-8")
    @pytest.mark.parametrize(
        ("item", "word"),
        [
            (build.ball(1, "3xx"), ("items[].b", "3xx")),
            (build.feed()[3] | {"dismissal": 12}, ("items[].dismissal", "12")),
            ({"id": 5, "type": "quiz"}, ("items[].type", "quiz")),
        ],
    )
    def test_are_counted_and_drop_nothing(self, item: dict[str, Any], word: tuple[str, str]) -> None:
        feed = build.document("feed", [item, build.ball(181, "4")])
        read = build.reading(build.CREX, build.page(name="static_page"), build.document("live", build.live()), feed)
        payload = ADAPTER.parse(read)
        assert [(one.path, one.value) for one in payload.unknown] == [word]
        assert len(payload.events) == 2


class TestResponse:
    @pytest.mark.parametrize(
        ("data", "count"),
        [
            ([], 0),
            ([build.ball(1)], 1),
            ({"feeds": [build.ball(1)]}, 1),
            ("no", None),
            ({}, None),
        ],
    )
    def test_must_be_a_list_with_ids(self, data: object, count: int | None) -> None:
        items = items_in(data, "9XA")
        assert (None if items is None else len(items)) == count

    @pytest.mark.requirement("SO-12")
    @pytest.mark.parametrize(
        ("spoilt", "path"),
        [
            (None, "items[]"),
            ({"v2_id": 1}, "items[].other.id"),
            ({"id": "", "type": "ac"}, "items[].id"),
            (build.ball(1) | {"o": [10.3]}, "items[].ball.o"),
            ({key: value for key, value in build.ball(1).items() if key != "b"}, "items[].ball.b"),
            ({key: value for key, value in build.ball(1).items() if key != "inning"}, "items[].ball.inning"),
            (build.feed()[3] | {"inning": None}, "items[].wicket.inning"),
            (build.feed()[1] | {"inning": "1st"}, "items[].over.inning"),
            (build.ball(1) | {"delivery": 10**9}, "items[]"),
        ],
    )
    def test_a_row_that_cannot_be_read_costs_itself(self, spoilt: Any, path: str) -> None:
        payload = self.payload([*build.feed(), spoilt])
        assert payload.events == self.payload(build.feed()).events
        assert not payload.events_are_complete
        assert build.broken(payload) == {path: 1}

    @pytest.mark.requirement("SO-12")
    def test_a_ball_without_its_score_is_a_ball(self) -> None:
        whole = build.ball(1)
        assert event({name: value for name, value in whole.items() if name != "s"}).kind == event(whole).kind

    @pytest.mark.requirement("SO-12")
    def test_places_are_not_counted_in_an_over_that_lacks_a_row(self) -> None:
        items = [item | {"delivery": None} for item in (*balls(161, 9, "6"), *balls(162, 10, "wd", "4"))]
        items.insert(2, build.ball(500) | {"o": None})
        assert {one.slot for one in self.payload(items[::-1]).events} == {""}

    @pytest.mark.requirement("SO-12")
    @pytest.mark.parametrize("feed", [{}, {"feeds": None}, [None], [{"v2_id": 1}], "Request Payload Error!"])
    def test_one_that_cannot_be_read_costs_the_events_and_not_the_score(self, feed: Any) -> None:
        payload = self.payload(feed)
        assert (payload.state.score.team_b.runs, payload.events) == (88, ())
        assert payload.lacks_events
        assert build.broken(payload)

    @pytest.mark.requirement("EC-1")
    def test_of_another_shape_gives_way_to_the_pages_copy(self) -> None:
        feed = build.document("feed", [{"v2_id": 1}])
        documents = (build.page(), build.document("live", build.live()), feed)
        payload = ADAPTER.parse(build.reading(build.CREX, *documents))
        assert len(payload.events) == 5
        assert build.broken(payload) == {"items": 1}

    def payload(self, feed: Any) -> Payload:
        documents = (build.page(name="static_page"), build.document("live", build.live()), build.document("feed", feed))
        return ADAPTER.parse(build.reading(build.CREX, *documents))

    def test_that_failed_costs_the_events_and_not_the_score(self) -> None:
        feed = build.document("feed", "Request Payload Error!", status=400)
        read = build.reading(build.CREX, build.page(name="static_page"), build.document("live", build.live()), feed)
        payload = ADAPTER.parse(read)
        assert payload.state.score.team_b.runs == 88
        assert payload.events == ()
        assert "events" in payload.integrity.missing_fields


class TestOlderEvents:
    def older(self, *items: dict[str, object], asked: Request = ASKED) -> dict[str, object] | None:
        request = ADAPTER.older_events(build.reading(build.CREX, build.document("feed", list(items))), asked)
        if request is None:
            return None
        assert (request.name, request.url, request.method) == (asked.name, asked.url, asked.method)
        return dict(json.loads(request.body or b""))

    def test_are_requested_from_the_oldest_id_with_the_previous_body(self) -> None:
        assert self.older(build.ball(9), build.ball(7), build.ball(8)) == {
            "matchKey": "9XA",
            "lastDocId": build.ball(7)["id"],
            "filters": [1],
            "lang": "hi",
        }

    def test_end_with_the_first_ball_of_the_match(self) -> None:
        assert self.older(build.ball(2), build.ball(1)) is None

    def test_end_with_an_empty_page(self) -> None:
        assert self.older() is None

    def test_end_where_the_source_repeats_itself(self) -> None:
        again = Request("feed", ASKED.url, "POST", json.dumps({"lastDocId": build.ball(7)["id"]}).encode())
        assert self.older(build.ball(7), asked=again) is None

    def test_can_be_requested_if_the_first_request_had_no_body(self) -> None:
        assert (self.older(build.ball(7), asked=Request("feed", ASKED.url, "POST")) or {})["matchKey"] == "9XA"

    def test_start_from_the_pages_copy_if_the_feed_was_not_requested(self) -> None:
        page: Document = build.page()
        request = ADAPTER.older_events(build.reading(build.CREX, page), ASKED)
        assert request is not None
        assert json.loads(request.body or b"")["lastDocId"] == build.ball(178)["id"]  # the oldest one on the page


class TestEndpoints:
    @pytest.mark.requirement("FS-7")
    @pytest.mark.parametrize(
        ("url", "name"),
        [
            ("https://api.goscorer.com/api/v3/getSV3?key=9XA", "live"),
            ("https://api-v1.com/v10/sV3.php?key=9XA", "live"),
            ("http://127.0.0.1:8790/crex/api/v3/getSV3?lang=en&key=9XA&t=1", "live"),
            ("https://api.goscorer.com/api/v3/getSV3?key=9XAB", None),
            ("https://api.goscorer.com/api/v3/getSC4?key=9XA", "scorecard"),
            ("https://api-v1.com/v10/sC4.php?key=9XA", "scorecard"),
            ("https://api.goscorer.com/api/v3/getSC4?key=9XB", None),
            ("https://api.goscorer.com/api/v3/getIV4?key=9XA", None),
            ("https://content.crickapi.com/commentary/v2/getBallFeeds", "feed"),
            ("https://oc.crickapi.com/mapping/getHomeMapData", "mapping"),
            ("https://ads.test/getBallFeedsAndMore/x", None),
        ],
    )
    def test_are_a_strict_whitelist(self, url: str, name: str | None) -> None:
        found = [endpoint.name for endpoint in ADAPTER.endpoints(build.CREX) if endpoint.pattern.search(url)]
        assert found == ([name] if name else [])

    @pytest.mark.parametrize("kind", ["application/json", "text/html", "text/plain"])
    def test_take_json_under_the_names_that_old_paths_give_it(self, kind: str) -> None:
        live = next(endpoint for endpoint in ADAPTER.endpoints(build.CREX) if endpoint.name == "live")
        assert live.accepts(kind)
