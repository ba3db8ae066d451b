"""ESPN cricket: parsing of the list of plays, with its special cases."""

from __future__ import annotations

from typing import Any

import pytest

from scraping import event_keys
from scraping.errors import PayloadRejected
from scraping.payloads import Event
from scraping.sources.base import Reading, ReadMode
from tests.scraping.sources import builders as build
from tests.scraping.sources import espn_builders as espn
from tests.scraping.sources.test_espn import ESPN, PLAYS_URL, parsed


def balls(*plays: dict[str, Any], number: int = 1, pages: int = 1, count: int | None = None) -> tuple[Event, ...]:
    """Oldest first."""
    return parsed(espn.summary(), espn.page(list(plays), number, pages, count)).events[::-1]


class TestPlays:
    @pytest.mark.requirement("SO-12")
    @pytest.mark.parametrize(
        ("changes", "kind", "code"),
        [
            pytest.param({"scoreValue": 0, "playType": {"description": "no run"}}, "dot", "0", id="dot"),
            pytest.param({}, "runs", "1", id="a single"),
            pytest.param({"scoreValue": 4, "playType": {"description": "four"}}, "four", "4", id="four"),
            pytest.param({"scoreValue": 6, "playType": {"description": "six"}}, "six", "6", id="six"),
            pytest.param({"playType": {"description": "wide"}}, "wide", "1wd", id="wide"),
            pytest.param({"shortText": "Vale to Moss, 5 wides", "scoreValue": 5}, "wide", "5wd", id="wides in words"),
            pytest.param({"playType": {"description": "no ball"}}, "no_ball", "1nb", id="no-ball"),
            pytest.param(
                {"playType": {"description": "four"}, "scoreValue": 5, "in_over": {"noBall": 1}},
                "no_ball",
                "5nb",
                id="a four off a no-ball is a four by its type",
            ),
            pytest.param(
                {"playType": {"description": "four"}, "scoreValue": 5, "shortText": "Vale to Moss, (no ball) FOUR"},
                "no_ball",
                "5nb",
                id="a no-ball in words",
            ),
            pytest.param({"playType": {"description": "bye"}, "scoreValue": 4}, "bye", "4b", id="byes"),
            pytest.param({"playType": {"description": "leg bye"}}, "leg_bye", "1lb", id="leg bye"),
            pytest.param({"dismissal": espn.out(), "scoreValue": 0}, "wicket", "W", id="out"),
        ],
    )
    def test_one_event_a_delivery(self, changes: dict[str, Any], kind: str, code: str) -> None:
        event = balls(espn.play(3, **changes))[0]
        assert (event.kind, event.detail["ball"], event.runs) == (kind, code, changes.get("scoreValue", 1))
        assert (event.innings, event.over, event.slot) == (2, "10.3", event_keys.ball(2, 10, 3))
        assert (event.ordinal, event.detail["score"]) == (event_keys.position(2, 10, 3), "88/2")
        assert event.happened_at is None, "the date is that of the session"

    def test_wides_repeat_the_label_and_have_places_of_their_own(self) -> None:
        wide = {"playType": {"description": "wide"}}
        listed = [
            espn.play(1, in_over={"overs": 10.1, "actual": 10.1, "ball": 1}, **wide),
            espn.play(2, in_over={"overs": 10.1, "actual": 10.1, "ball": 1}, **wide),
            espn.play(3, in_over={"overs": 10.1, "actual": 10.1, "ball": 1}),
            *(espn.play(i, in_over={"overs": 10 + (i - 2) / 10, "actual": 10 + (i - 2) / 10}) for i in range(4, 9)),
            espn.play(9, in_over={"unique": 10.09, "overs": 10.6, "actual": 10.6}),
            espn.play(10, in_over={"unique": 10.1, "overs": 10.6, "actual": 10.6}),
        ]
        events = balls(*listed)
        assert [event.over for event in events][:3] == ["10.1", "10.1", "10.1"]
        assert [event.slot for event in events] == [event_keys.ball(2, 10, index) for index in range(1, 11)]

    @pytest.mark.parametrize(
        ("in_over", "sequence", "slot"),
        [
            pytest.param({}, None, event_keys.ball(2, 10, 4), id="by unique"),
            pytest.param({"unique": None}, 201_004, event_keys.ball(2, 10, 4), id="by sequence"),
            pytest.param({"unique": None}, None, "", id="cut off, and nothing says where the over began"),
            pytest.param({"unique": 9.04}, None, "", id="of another over"),
        ],
    )
    def test_the_place_within_the_over(self, in_over: dict[str, Any], sequence: int | None, slot: str) -> None:
        event = balls(espn.play(4, in_over=in_over, sequence=sequence), number=3, pages=3, count=75)[0]
        assert event.slot == slot
        assert (event.ordinal is None) == (slot == "")

    def test_places_that_repeat_are_counted_instead(self) -> None:
        same = {"unique": 11.01}
        events = balls(
            espn.play(6, in_over={"unique": 10.06}),
            espn.play(1, 11, in_over=same, id="a"),
            espn.play(2, 11, in_over=same, id="b"),
        )
        assert [event.slot for event in events] == [
            event_keys.ball(2, 10, 6),
            event_keys.ball(2, 11, 1),
            event_keys.ball(2, 11, 2),
        ]

    def test_figures_that_all_balls_of_an_over_share_are_the_overs(self) -> None:
        events = balls(*(espn.play(index, in_over={"wide": 1}) for index in range(1, 7)))
        assert {event.kind for event in events} == {"runs"}

    @pytest.mark.parametrize(
        ("dismissal", "kinds"),
        [
            (espn.out("bowled"), ["wicket", "dismissal"]),
            (espn.out("run out"), ["wicket", "dismissal"]),
            (espn.out("retired out"), ["wicket", "dismissal"]),
            (espn.out("retired hurt"), ["runs"]),
            (espn.out("retired not out"), ["runs"]),
            (espn.out("", retired="retired hurt"), ["runs"]),
            (None, ["runs"]),
        ],
    )
    def test_a_wicket_that_counts_has_an_event_of_its_own(self, dismissal: Any, kinds: list[str]) -> None:
        events = balls(espn.play(2, dismissal=dismissal))
        assert [event.kind for event in events] == kinds
        if "dismissal" in kinds:
            fallen = events[1]
            assert (fallen.id, fallen.slot, fallen.ordinal) == ("210020:w", event_keys.wicket(2, 2), None)
            assert (fallen.detail["player"], fallen.detail["wicket"]) == ("Cy Moss", 2)

    @pytest.mark.parametrize(
        ("text", "manner"),
        [
            ("Cy Moss c Vale b Reed", "c Vale b Reed"),
            ("C Moss c Vale b Reed", "c Vale b Reed"),
            ("c Vale b Reed", "c Vale b Reed"),
            ("Cy Mossman b Reed", "Cy Mossman b Reed"),
            ("CY MOSS c Vale b Reed", "c Vale b Reed"),
            ("Cyril Moss c Vale b Reed", "c Vale b Reed"),
            ("Cy Moss: c Vale b Reed", "c Vale b Reed"),
            ("Cy Moss", "caught"),
            ("", "caught"),
        ],
    )
    def test_the_text_of_a_dismissal_has_the_name_once(self, text: str, manner: str) -> None:
        athlete = {"displayName": "Cy Moss", "name": "C Moss", "fullName": "Cyril Moss"}
        out = espn.out() | {"text": text, "batsman": {"athlete": athlete}}
        fallen = balls(espn.play(2, dismissal=out))[1]
        assert (fallen.detail["text"], fallen.description) == (manner, f"Cy Moss {manner}")

    def test_commentary_between_the_balls_is_no_delivery(self) -> None:
        payload = parsed(espn.summary(), espn.page([{"id": "x", "text": "Rain about"}, espn.play(1, 0, 1)]))
        assert [event.kind for event in payload.events] == ["runs"]
        assert payload.events_are_complete

    def test_plays_of_other_teams_are_refused(self) -> None:
        with pytest.raises(PayloadRejected, match="the plays are about another match: team 77 bats"):
            balls(espn.play(team=espn.team("77", "Somebody", "SOM")))

    def test_without_plays_the_score_is_kept_and_the_list_is_missing(self) -> None:
        payload = parsed(espn.summary())
        assert payload.state.score.team_b.runs == 88
        assert payload.integrity.missing_fields == ("last_event", "events")


@pytest.mark.requirement("FS-2")
class TestPartsThatCannotBeRead:
    """The score and the other plays are served, with the paths of what is missing, and the list is not complete."""

    @pytest.mark.parametrize(
        ("body", "path"),
        [
            ({}, "commentary"),
            ([], "commentary"),
            (None, "commentary"),
            ("half of it", "commentary"),
            ({"commentary": None}, "commentary"),
            ({"commentary": []}, "commentary"),
            ({"commentary": {"count": 0, "pageIndex": 1, "pageCount": 0}}, "commentary"),
            ({"commentary": {"items": {}}}, "commentary"),
        ],
    )
    def test_of_the_whole_list(self, body: Any, path: str) -> None:
        answer = build.document("plays", body, url=PLAYS_URL)
        reading = build.reading(espn.CRICKET, build.document("summary", espn.summary()), answer, mode=ReadMode.DIRECT)
        payload = ESPN.parse(reading)
        assert (payload.state.score.team_b.runs, payload.events, payload.lacks_events) == (88, (), True)
        assert [one.path for one in payload.integrity.broken_parts] == [path]
        assert not payload.events_are_complete
        assert ESPN.follow_up(reading, espn.BASE) == ()
        assert ESPN.older_events(reading, ESPN.requests(espn.CRICKET, espn.BASE)[1]) is None

    def test_a_list_that_the_source_does_not_have_costs_no_score(self) -> None:
        payload = parsed(espn.summary(), {"code": 404, "message": "not found"})
        assert (payload.state.score.team_b.runs, payload.lacks_events) == (88, True)

    @pytest.mark.parametrize(
        ("bad", "path"),
        [
            (None, "items[]"),
            ({"id": "5", "over": {}}, "items[].period"),
            (espn.play(1, scoreValue=None), "items[].scoreValue"),
            (espn.play(1, in_over={"number": 0}), "items[].over.number"),
            (espn.play(1, period=0), "items[].period"),
        ],
    )
    def test_of_a_play(self, bad: Any, path: str) -> None:
        body = espn.page([espn.play(1, 0, 1), bad], 1, 3, 52)
        payload = parsed(espn.summary(), body)
        assert [event.slot for event in payload.events] == [event_keys.ball(1, 0, 1)]
        assert path.replace("items", "commentary.items") in {one.path for one in payload.integrity.broken_parts}
        assert (payload.lacks_events, payload.events_are_complete) == (False, False)
        whole = parsed(espn.summary(), espn.page([espn.play(1, 0, 1), bad]))
        assert not whole.events_are_complete  # otherwise the play would be retracted
        assert parsed(espn.summary(), espn.page([espn.play(1, 0, 1)])).events_are_complete
        reading = build.reading(espn.CRICKET, build.document("plays", body, url=PLAYS_URL), mode=ReadMode.DIRECT)
        assert [one.name for one in ESPN.follow_up(reading, espn.BASE)] == ["plays"]

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"batsman": []}, ""),
            ({"batsman": {"athlete": {"displayName": 5}}}, "batsman.athlete.displayName"),
            ({"bbbTimestamp": 1.5}, "bbbTimestamp"),
            ({"innings": None}, ""),
            ({"innings": {"runs": "88*", "wickets": 2}}, "innings.runs"),
            ({"playType": None}, ""),
            ({"dismissal": {"dismissal": None}}, ""),
            ({"id": 2100}, ""),
            ({"team": {"id": 12}}, ""),
        ],
    )
    def test_of_a_field_of_a_play(self, changes: dict[str, Any], field: str) -> None:
        payload = parsed(espn.summary(), espn.page([espn.play(1, 0, 1) | changes]))
        assert [(event.slot, event.runs) for event in payload.events] == [(event_keys.ball(1, 0, 1), 1)]
        expected = [f"commentary.items[].{field}"] if field else []
        assert [one.path for one in payload.integrity.broken_parts] == expected

    def test_places_that_repeat_are_not_counted_without_a_play(self) -> None:
        same = [espn.play(place, 0, 1, in_over={"unique": 0.01}) for place in (1, 2, 3)]
        assert [event.slot for event in balls(*same)] == [event_keys.ball(1, 0, index) for index in (1, 2, 3)]
        assert [event.slot for event in balls(same[0], same[1] | {"scoreValue": None}, same[2])] == ["", ""]

    def test_a_wicket_without_the_score_after_it_has_no_number(self) -> None:
        found = balls(espn.play(1, dismissal=espn.out(), innings=None))
        assert [(event.kind, event.slot) for event in found] == [
            ("wicket", event_keys.ball(2, 10, 1)), ("dismissal", ""),
        ]  # fmt: skip

    def test_a_page_without_numbers_has_that_of_its_address(self) -> None:
        last = build.document("plays", {"commentary": {"items": [espn.play(3)]}}, url=f"{PLAYS_URL}&page=4")
        reading = build.reading(espn.CRICKET, build.document("summary", espn.summary()), last, mode=ReadMode.DIRECT)
        payload = ESPN.parse(reading)
        assert (len(payload.events), payload.events_are_complete) == (1, False)
        older = ESPN.older_events(reading, ESPN.requests(espn.CRICKET, espn.BASE)[1])
        assert older is not None
        assert older.url == f"{PLAYS_URL}&page=3"


class TestPaging:
    """A list of more than 75 balls on pages of 25: the requested pages, and the completeness of the list."""

    def first(self, count: int, url: str = PLAYS_URL) -> Reading:
        items = [espn.play(1 + place % 6, place // 6, 1) for place in range(25)]
        body = espn.page(items, 1, -(-count // 25), count)
        return build.reading(espn.CRICKET, build.document("plays", body, url=url), mode=ReadMode.DIRECT)

    @pytest.mark.parametrize(
        ("count", "asked"),
        [
            pytest.param(20, [], id="one page: it is there already"),
            pytest.param(98, [("plays", 4)], id="the last page is nearly full"),
            pytest.param(78, [("plays", 4), ("plays:3", 3)], id="three balls on the last page: the one before too"),
        ],
    )
    def test_the_newest_pages_are_requested_when_their_number_is_known(
        self, count: int, asked: list[tuple[str, int]]
    ) -> None:
        follow = ESPN.follow_up(self.first(count), espn.BASE)
        assert [(one.name, one.url) for one in follow] == [(name, f"{PLAYS_URL}&page={page}") for name, page in asked]

    def test_on_the_way_back_some_pages_come_at_once(self) -> None:
        follow = ESPN.follow_up(self.first(500, f"{PLAYS_URL}&page=9"), espn.BASE)
        assert [one.name for one in follow] == ["plays:6", "plays:7", "plays:8"]
        assert ESPN.follow_up(self.first(500, f"{PLAYS_URL}&page=1"), espn.BASE) == ()

    def test_older_events_go_on_before_the_oldest_page_of_a_reading(self) -> None:
        request = ESPN.requests(espn.CRICKET, espn.BASE)[1]
        pages = [build.document("plays", espn.page([], 9, 9, 210)), build.document("plays:8", espn.page([], 8, 9, 210))]
        older = ESPN.older_events(build.reading(espn.CRICKET, *pages), request)
        assert older is not None
        assert older.url == f"{PLAYS_URL}&page=7"
        again = ESPN.older_events(build.reading(espn.CRICKET, build.document("plays", espn.page([], 4, 9, 210))), older)
        assert again is not None
        assert again.url == f"{PLAYS_URL}&page=3"
        assert ESPN.older_events(build.reading(espn.CRICKET, build.document("plays", espn.page([]))), older) is None

    def test_a_list_of_the_present_innings_goes_on_with_the_one_before(self) -> None:
        request = ESPN.requests(espn.CRICKET, espn.BASE)[1]
        read = build.reading(espn.CRICKET, build.document("plays", espn.page([espn.play(1, 0, 2)])))
        older = ESPN.older_events(read, request)
        assert older is not None
        assert older.url == f"{PLAYS_URL}&period=1"
        follow = ESPN.follow_up(self.first(98, older.url), espn.BASE)
        assert [one.url for one in follow] == [f"{PLAYS_URL}&period=1&page=4"]
        fourth = build.reading(espn.CRICKET, build.document("plays", espn.page([espn.play(1, 9, 1)], 4, 4, 98)))
        third = ESPN.older_events(fourth, older)
        assert third is not None
        assert third.url == f"{PLAYS_URL}&period=1&page=3"
        assert ESPN.older_events(self.first(20), older) is None
        assert not parsed(espn.summary(), espn.page([espn.play(1, 0, 2)])).events_are_complete
        one_innings = build.document("plays", espn.page([espn.play(1, 0, 1)]), url=older.url)
        both = build.reading(espn.CRICKET, build.document("summary", espn.summary()), one_innings)
        assert not ESPN.parse(both).events_are_complete

    def test_only_all_pages_together_are_the_whole_list(self) -> None:
        first, second = [espn.play(1, 1, 1)], [espn.play(1, 1, 2)]
        both = espn.page(second, 2, 2, 2), espn.page(first, 1, 2, 2)
        assert parsed(espn.summary(), *both).events_are_complete
        assert not parsed(espn.summary(), both[0]).events_are_complete
