"""The ball feed: stable events, and the request for what came before."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from scraping.sources import adapter_for
from scraping.sources.base import Document, Request
from scraping.sources.crex.feed import ball_kind, event_of, events_of, items_in
from tests.scraping.sources import builders as build

ADAPTER = adapter_for("crex")
ASKED = Request(
    "feed",
    "http://site.test/commentary/v2/getBallFeeds",
    "POST",
    json.dumps({"matchKey": "9XA", "lastDocId": None, "filters": [1], "lang": "hi"}).encode(),
)


class TestEvents:
    def test_a_ball_keeps_the_sources_id_and_running_number(self) -> None:
        event = event_of(build.ball(181, "4", fv=8))
        assert (event.id, event.kind, event.ordinal) == ("1777739430000", "four", 181)
        assert (event.innings, event.over, event.runs) == (2, "10.3", 4)
        assert event.description == "Ada Reed to Bo Finch Driven past cover"
        assert event.happened_at == datetime.fromtimestamp(1_777_739_430, tz=UTC)

    def test_a_no_ball_repeats_the_over_and_is_still_its_own_event(self) -> None:
        events = events_of(build.feed())
        assert [event.kind for event in events] == ["four", "over_complete", "no_ball", "dismissal", "wicket"]
        assert [event.over for event in events].count("9.6") == 3
        assert len({event.id for event in events}) == 5

    def test_a_dismissal_names_player_and_manner(self) -> None:
        event = event_of(build.feed()[3])
        assert event.detail == {"player": "Cy Moss", "text": "c Reed b Vale", "wicket": 2}
        assert event.description == "Cy Moss c Reed b Vale 31(22)"
        assert event.is_critical

    def test_summaries_reviews_and_the_unknown_are_not_critical(self) -> None:
        kinds = {"o": "over_complete", "ac": "review", "poll": "other"}
        for letter, kind in kinds.items():
            event = event_of({"id": 5, "type": letter})
            assert (event.kind, event.is_critical) == (kind, False)

    def test_an_id_that_comes_twice_counts_once(self) -> None:
        assert len(events_of([build.ball(1), build.ball(1), build.ball(2)])) == 2

    @pytest.mark.parametrize(
        ("code", "expected"),
        [
            ("0", ("dot", 0)), ("1", ("runs", 1)), ("3", ("runs", 3)), ("4", ("four", 4)), ("6", ("six", 6)),
            ("W", ("wicket", 0)), ("^2", ("wicket", 0)), ("1W", ("wicket", 1)), ("wd", ("wide", 1)),
            ("5wd", ("wide", 5)), ("1nb", ("no_ball", 1)), ("nb1", ("no_ball", 1)), ("2b", ("bye", 2)),
            ("b2", ("bye", 2)), ("4lb", ("leg_bye", 4)), ("lb4", ("leg_bye", 4)), ("1wd+W", ("wicket", 1)),
            ("B", ("other", None)), ("", ("other", None)), ("Innings Break", ("other", None)),
        ],
    )  # fmt: skip
    def test_a_ball_code_tells_kind_and_runs(self, code: str, expected: tuple[str, int | None]) -> None:
        assert ball_kind(code) == expected


class TestTheAnswer:
    @pytest.mark.parametrize(
        ("data", "count"),
        [
            ([], 0),
            ([build.ball(1)], 1),
            ({"feeds": [build.ball(1)]}, 1),
            ([{"v2_id": 1}], None),
            ("no", None),
            ({}, None),
        ],
    )
    def test_is_a_list_with_ids_or_it_is_nothing(self, data: object, count: int | None) -> None:
        items = items_in(data, "9XA")
        assert (None if items is None else len(items)) == count

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

    def test_are_asked_for_from_the_oldest_id_on_in_the_words_used_before(self) -> None:
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

    def test_can_be_asked_for_when_the_first_request_had_no_body(self) -> None:
        assert (self.older(build.ball(7), asked=Request("feed", ASKED.url, "POST")) or {})["matchKey"] == "9XA"

    def test_start_from_the_pages_copy_when_the_feed_was_not_asked(self) -> None:
        page: Document = build.page()
        assert ADAPTER.older_events(build.reading(build.CREX, page), ASKED) is not None


class TestEndpoints:
    @pytest.mark.requirement("FS-7")
    @pytest.mark.parametrize(
        ("url", "name"),
        [
            ("https://api.goscorer.com/api/v3/getSV3?key=9XA", "live"),
            ("https://api-v1.com/v10/sV3.php?key=9XA", "live"),
            ("http://127.0.0.1:8790/crex/api/v3/getSV3?lang=en&key=9XA&t=1", "live"),
            ("https://api.goscorer.com/api/v3/getSV3?key=9XAB", None),
            ("https://api.goscorer.com/api/v3/getSC4?key=9XA", None),
            ("https://content.crickapi.com/commentary/v2/getBallFeeds", "feed"),
            ("https://oc.crickapi.com/mapping/getHomeMapData", "mapping"),
            ("https://ads.test/getBallFeedsAndMore/x", None),
        ],
    )
    def test_are_a_strict_whitelist(self, url: str, name: str | None) -> None:
        found = [endpoint.name for endpoint in ADAPTER.endpoints(build.CREX) if endpoint.pattern.search(url)]
        assert found == ([name] if name else [])
