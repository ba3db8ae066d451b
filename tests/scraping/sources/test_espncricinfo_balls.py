"""The balls on a page of ESPNcricinfo: positions, kinds, and pages with older ones."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from scraping import event_keys
from scraping.payloads import Event
from scraping.sources.base import Request
from tests.scraping.sources import espncricinfo_pages as pages
from tests.scraping.sources.espncricinfo_pages import ADAPTER, parse, read


def events_of(*comments: dict[str, Any], **changes: Any) -> tuple[Event, ...]:
    """Returns the events of a page with these balls."""
    return parse(None, pages.content(*comments, **changes)).events


def balls(events: tuple[Event, ...]) -> list[Event]:
    return [event for event in events if event.kind not in ("dismissal", "over_complete")]


class TestBalls:
    def test_are_placed_by_their_number_in_the_over_and_labelled_as_they_count(self) -> None:
        """After three wides the label stays, ids and places advance. The tenth ball is written 0.1, like the first."""
        wides = [pages.ball(n, 1, legal=1, wides=1, batsmanRuns=0) for n in (1, 2, 3, 4)]
        rest = [pages.ball(n, 0, legal=n - 4) for n in range(5, 10)]
        tenth = pages.ball(10, 2, legal=6)
        assert (tenth["oversUnique"], tenth["oversActual"]) == (10.1, 10.6)
        found = balls(events_of(*(pages.comment(one) for one in reversed([*wides, *rest, tenth]))))
        assert [event.over for event in found] == [
            "10.6", "10.5", "10.4", "10.3", "10.2", "10.1", "10.1", "10.1", "10.1", "10.1",
        ]  # fmt: skip
        assert [event.slot for event in found] == [event_keys.ball(2, 10, index) for index in range(10, 0, -1)]
        assert [event.ordinal for event in found] == [event_keys.position(2, 10, index) for index in range(10, 0, -1)]

    @pytest.mark.parametrize("gives_number", [None, 1], ids=["no ballNumber", "ballNumber read off the float"])
    def test_distinguishes_the_tenth_ball_from_the_first(self, gives_number: int | None) -> None:
        over = [pages.ball(n) | {"ballNumber": None} for n in range(1, 10)] + [pages.ball(10)]
        over[-1]["ballNumber"] = gives_number
        if gives_number:
            over = [one | {"ballNumber": one["ballNumber"] or n} for n, one in enumerate(over, start=1)]
        found = balls(events_of(*(pages.comment(one) for one in reversed(over))))
        assert [event.slot for event in found] == [event_keys.ball(2, 10, index) for index in range(10, 0, -1)]

    @pytest.mark.parametrize(
        ("changes", "kind", "code"),
        [
            ({}, "dot", "0"),
            ({"totalRuns": 4}, "four", "4"),
            ({"totalRuns": 6}, "six", "6"),
            ({"totalRuns": 3}, "runs", "3"),
            ({"totalRuns": 2, "wides": 2}, "wide", "2wd"),
            ({"totalRuns": 5, "noballs": 1}, "no_ball", "5nb"),
            ({"totalRuns": 3, "noballs": 1, "legbyes": 2}, "no_ball", "3nb"),
            ({"totalRuns": 2, "byes": 2}, "bye", "2b"),
            ({"totalRuns": 1, "legbyes": 1}, "leg_bye", "1lb"),
            ({"totalRuns": 5, "penalties": 5}, "other", "5pen"),
            ({"totalRuns": 1, "isWicket": True, "totalInningWickets": 3}, "wicket", "W"),
            ({"totalRuns": 1, "wides": 1, "isWicket": True, "totalInningWickets": 3}, "wicket", "W"),
        ],
    )
    def test_have_a_kind_and_everything_they_added(self, changes: dict[str, Any], kind: str, code: str) -> None:
        event = balls(events_of(pages.comment(pages.ball(2, 0) | changes), pages.comment(pages.ball(1))))[0]
        assert (event.kind, event.detail["ball"], event.runs) == (kind, code, changes.get("totalRuns", 0))
        assert event.detail["score"] == f"82/{changes.get('totalInningWickets', 2)}"
        assert event.description == "Ada Reed to Bo Finch, Driven past cover"
        assert event.happened_at == datetime(2026, 5, 2, 16, 10, 10, tzinfo=UTC)

    def test_a_wicket_is_two_events(self) -> None:
        dismissal, ball, _ = events_of(pages.wicket(2), pages.comment(pages.ball(1)))
        assert (ball.id, dismissal.id) == ("9001002", "9001002:w")
        assert (ball.kind, dismissal.kind, dismissal.slot) == ("wicket", "dismissal", event_keys.wicket(2, 3))
        assert dismissal.detail == {"player": "Cy Moss", "text": "c Vale b Reed", "wicket": 3}
        assert dismissal.ordinal is None

    @pytest.mark.requirement("NFR-009")
    def test_two_wickets_on_a_ball_are_two_though_one_is_named(self) -> None:
        other, named, *_ = events_of(pages.wicket(2, totalInningWickets=4), pages.comment(pages.ball(1)))
        assert (named.slot, named.detail["player"]) == (event_keys.wicket(2, 3), "Cy Moss")
        assert (other.id, other.slot, other.kind) == ("9001002:w2", event_keys.wicket(2, 4), "dismissal")

    @pytest.mark.parametrize(
        "changes",
        [
            {"dismissalText": {"short": "retired hurt", "long": "retired hurt"}},
            {"dismissalText": {"short": "retired not out", "long": ""}},
            {"dismissalText": None, "totalInningWickets": 2},  # nothing fell
        ],
    )
    def test_a_batter_who_retires_hurt_is_no_wicket(self, changes: dict[str, Any]) -> None:
        events = events_of(pages.wicket(2, **changes), pages.comment(pages.ball(1)))
        assert [event.kind for event in events] == ["dot", "runs"]

    def test_an_over_end_is_an_event_where_the_site_has_it(self) -> None:
        end = {"overNumber": 11, "overRuns": 6, "totalRuns": 86, "totalWickets": 2, "isComplete": True}
        event = events_of(pages.comment(pages.ball(6), over=end))[0]
        assert (event.kind, event.slot, event.is_critical) == ("over_complete", event_keys.over_end(2, 10), False)
        assert event.description == "End of over 11: 86/2"

    def test_of_a_scorecard_do_not_count_beyond_a_hole(self) -> None:
        """It has only the first over of each innings, so it is not a list from the start."""
        first = [pages.ball(n, over=0, inningNumber=1, totalInningRuns=n) for n in range(1, 7)]
        lines = [{"overNumber": 1, "balls": first}, {"overNumber": 2, "balls": []}]
        innings = [pages.inning(1, pages.ORCHARD, 40, 1, 5.0, inningOvers=lines)]
        bare = parse(None, pages.content(innings=innings, recentBallCommentary=None), liveInning=1)
        assert [event.slot for event in bare.events] == [event_keys.ball(1, 0, index) for index in range(6, 0, -1)]
        assert {event.ordinal for event in bare.events} == {None}
        assert bare.state.last_event is None
        assert bare.integrity.missing_fields == ("last_event", "events")
        newest = pages.comment(pages.ball(3, over=4, inningNumber=1, totalInningRuns=40, totalInningWickets=1))
        with_words = parse(None, pages.content(newest, innings=innings), liveInning=1)
        assert [event.slot for event in with_words.events] == [event_keys.ball(1, 4, 3)]

    def test_of_the_over_list_join_those_of_the_commentary(self) -> None:
        over = [pages.ball(n, over=0, inningNumber=1, totalInningRuns=n) for n in range(1, 5)]
        innings = [pages.inning(1, pages.ORCHARD, 4, 2, 0.4, inningOvers=[{"overNumber": 1, "balls": over}])]
        comments = [pages.comment(one) for one in reversed(over[2:])]
        events = events_of(*comments, innings=innings)
        assert [event.ordinal for event in events] == [event_keys.position(1, 0, index) for index in (4, 3, 2, 1)]
        assert [event.description for event in events] == ["Ada Reed to Bo Finch, Driven past cover"] * 2 + [
            "Ada Reed to Bo Finch"
        ] * 2

    @pytest.mark.parametrize(
        ("comments", "asked", "expected"),
        [
            ([pages.comment(pages.ball(3, over=5))], "", "innings=2"),
            ([pages.comment(pages.ball(1, over=0))], "", "innings=1"),  # the innings' first ball is there
            ([pages.comment(pages.ball(1, over=0, inningNumber=1))], "", None),
            ([pages.comment(pages.ball(3, over=5))], "?innings=2", "innings=1"),
            ([pages.comment(pages.ball(3, over=5))], "?innings=1", None),
        ],
    )
    def test_older_ones_are_on_the_commentary_page_of_their_innings(
        self, comments: list[dict[str, Any]], asked: str, expected: str | None
    ) -> None:
        reading = read(pages.page(None, pages.content(*comments)))
        request = ADAPTER.older_events(reading, Request("page", pages.URL + asked))
        assert (request and request.url.rpartition("?")[2]) == expected
        if request is not None:
            assert request.url.startswith(pages.URL.replace("live-cricket-score", "ball-by-ball-commentary"))
            assert request.name == "page"


@pytest.mark.requirement("BX-6")
class TestSubstitutes:
    """A batter who is on no list of players, such as a substitute."""

    def name(self, **changes: Any) -> Any:
        events = events_of(pages.wicket(2, outPlayerId=77), pages.comment(pages.ball(1)), **changes)
        (out,) = (event for event in events if event.kind == "dismissal")
        return out.detail["player"], out.detail["text"]

    def test_is_named_by_the_comment(self) -> None:
        assert self.name() == ("Cy Moss", "c Vale b Reed")

    def test_is_named_by_the_fall_of_wickets(self) -> None:
        fall = {"dismissalBatsman": {"id": 77, "objectId": 70_077, "longName": "Di Vale"}, "fowWicketNum": 3}
        innings = [
            pages.inning(1, pages.ORCHARD, 151, 10, 19.2),
            pages.inning(2, pages.PELICAN, 88, 3, 10.3, isCurrent=True, inningFallOfWickets=[fall, {"fowType": "?"}]),
        ]
        assert self.name(innings=innings) == ("Di Vale", "c Vale b Reed")


@pytest.mark.requirement("FS-2")
class TestRowsThatCannotBeRead:
    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({"totalRuns": None}, "totalRuns"),
            ({"overNumber": 0}, "overNumber"),
            ({"isWicket": "no"}, "isWicket"),
            ({"id": None}, "id"),
        ],
    )
    def test_cost_themselves_and_are_noted(self, changes: dict[str, Any], path: str) -> None:
        payload = parse(None, pages.content(pages.comment(pages.ball(3)), pages.comment(pages.ball(2) | changes)))
        assert [event.slot for event in payload.events] == [event_keys.ball(2, 10, 3)]
        noted = payload.integrity.broken_parts
        assert [(one.path, one.count) for one in noted] == [(f"content.recentBallCommentary.ballComments[].{path}", 1)]
        assert not payload.lacks_events

    def test_extras_may_be_absent(self) -> None:
        raw = {
            name: value for name, value in pages.ball(1).items() if name not in ("wides", "noballs", "byes", "legbyes")
        }
        assert [event.kind for event in events_of(pages.comment(raw))] == ["runs"]

    @pytest.mark.parametrize("recent", [[], [None], [{"id": 5}]])
    def test_a_list_without_a_readable_ball_is_no_list_of_events(self, recent: list[Any]) -> None:
        assert parse(None, pages.content(recentBallCommentary={"ballComments": recent})).lacks_events

    def test_the_number_of_a_fall_of_wicket_may_be_text(self) -> None:
        fall = {"dismissalBatsman": {"id": 77, "longName": "Di Vale", "objectId": 7}, "fowWicketNum": "3"}
        chase = pages.inning(2, pages.PELICAN, 88, 3, 10.3, inningFallOfWickets=[fall])
        innings = [pages.inning(1, pages.ORCHARD, 151, 10, 19.2), chase]
        dismissal = events_of(pages.wicket(2, outPlayerId=77, dismissalText=None), innings=innings)[0]
        assert (dismissal.slot, dismissal.detail["player"]) == (event_keys.wicket(2, 3), "Di Vale")


def wickets_of(events: tuple[Event, ...]) -> list[tuple[str, Any, Any, str]]:
    return [
        (event.id, event.detail["wicket"], event.detail["player"], event.slot)
        for event in reversed(events)
        if event.kind == "dismissal"
    ]


@pytest.mark.requirement("NFR-009")
class TestTimedOut:
    """A batter who is timed out after a ball may have a row of its own, at the place of that ball."""

    OUT: dict[str, Any] = {"short": "timed out", "long": "timed out", "commentary": "Bo Finch timed out"}

    def row(self, **changes: Any) -> dict[str, Any]:
        raw = pages.ball(2, 0, id=9_999_999, isWicket=True, outPlayerId=2, totalInningWickets=4)
        return pages.comment(raw, dismissalText=self.OUT) | changes

    @pytest.mark.parametrize("before", [(), (pages.comment(pages.ball(1)),)], ids=["alone", "after a ball"])
    @pytest.mark.parametrize("wickets", [3, 4], ids=["counts one", "counts both"])
    def test_is_a_second_wicket_of_the_ball_and_no_delivery(self, before: Any, wickets: int) -> None:
        after = pages.comment(pages.ball(3, totalInningWickets=4))
        events = events_of(after, self.row(), pages.wicket(2, totalInningWickets=wickets), *before)
        assert wickets_of(events) == [
            ("9001002:w", 3, "Cy Moss", event_keys.wicket(2, 3)),
            ("9001002:w2", 4, "Bo Finch", event_keys.wicket(2, 4)),
        ]
        assert [event.slot for event in balls(events)] == [
            event_keys.ball(2, 10, index) for index in ((3, 2, 1) if before else (3, 2))
        ]

    def test_counts_once_beside_the_next_wicket(self) -> None:
        following = pages.wicket(3, outPlayerId=1, totalInningWickets=5, id=9_001_003)
        events = events_of(following, self.row(), pages.wicket(2), pages.comment(pages.ball(1)))
        assert [number for _, number, _, _ in wickets_of(events)] == [3, 4, 5]

    def test_after_a_ball_without_a_wicket(self) -> None:
        row = self.row(totalInningWickets=3)
        events = events_of(pages.comment(pages.ball(3, totalInningWickets=3)), row, pages.comment(pages.ball(2)))
        assert wickets_of(events) == [("9001002:w", 3, "Bo Finch", event_keys.wicket(2, 3))]
        assert [event.kind for event in balls(events)] == ["runs", "runs"]

    def test_a_batter_who_retires_hurt_in_a_row_of_his_own_is_no_wicket(self) -> None:
        hurt = {"short": "retired hurt", "long": "retired hurt", "commentary": "Bo Finch retired hurt"}
        row = self.row(dismissalText=hurt, totalInningWickets=2)
        events = events_of(row, pages.comment(pages.ball(2)), pages.comment(pages.ball(1)))
        assert [event.kind for event in events] == ["runs", "runs"]
