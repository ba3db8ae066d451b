"""The scoreboard adapter on the simulated site: every reading agrees with the ground truth."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from scraping.errors import Blocked, LayoutChanged, PayloadRejected, SchemaBreak
from scraping.readings import FIELDS
from scraping.sources import adapter_for, parsing
from scraping.sources.base import Document, Reading, ReadMode, RefInfo, Request
from scraping.sources.extract import from_html
from stadium.cricket.generator import TOSS_LEAD_SECONDS
from stadium.cricket.script import CricketScript, NoticeKind
from stadium.matches.programme import Programme
from tests.scraping.sources import test_stadium
from tests.scraping.sources.test_stadium import NOON, Visitor, assert_state_is_true

BOARD = adapter_for("board")
in_stadium = functools.partial(test_stadium.in_stadium, programme="board:2")


async def read(visitor: Visitor, row: dict[str, Any], url: str = "") -> Reading:
    page = await visitor.get("page", url or row["url"])
    return visitor.reading(RefInfo(row["key"], row["url"]), ReadMode.VISIT, page)


def moments() -> list[float]:
    """Returns moments: early, break, chase, end, before and after the toss of the next match."""
    programme = Programme("board:2", 7)
    match = programme.match(programme.slots[0], 0)
    assert isinstance(match.script, CricketScript)
    pause, end = match.starts_at + match.script.time_of(NoticeKind.INNINGS_BREAK), match.ends_at
    toss = match.starts_at + match.slot.period - TOSS_LEAD_SECONDS
    return sorted((0.0, 9_000.0, pause + 20, pause + 2_000, end + 20, toss - 20, toss + 20))


def test_every_match_is_read_as_it_is() -> None:
    phases: set[str] = set()

    async def scenario(visitor: Visitor) -> None:
        for moment in moments():
            visitor.move_to(moment)
            for row in await visitor.json("/truth/matches"):
                truth = await visitor.json(f"/truth/matches/board/{row['key']}")
                payload = BOARD.parse(await read(visitor, row))
                assert_state_is_true(payload, truth)
                assert payload.state.result == (truth["result_long"] or "")
                assert (payload.integrity.missing_fields, payload.integrity.fallback_selectors) == ((), ())
                newest = truth["events"][: -len(payload.events) - 1 : -1] if payload.events else truth["events"]
                fields = [(one.id, one.innings, one.over, one.ordinal) for one in payload.events]
                assert fields == [(one["id"], one["innings"], one["over"], one.get("delivery")) for one in newest]
                phases.add(truth["phase"])

    in_stadium(scenario)
    assert phases >= {"scheduled", "toss", "in_play", "innings_break", "finished"}


def test_the_pages_behind_the_link_together_hold_every_event_once() -> None:
    async def scenario(visitor: Visitor) -> None:
        visitor.move_to(9_000)
        (row, *_) = await visitor.json("/truth/matches")
        truth = await visitor.json(f"/truth/matches/board/{row['key']}")
        found: list[str] = []
        request: Request | None = Request("page", row["url"])
        while request is not None:
            reading = await read(visitor, row, request.url)
            found += [event.id for event in BOARD.parse(reading).events]
            request = BOARD.older_events(reading, request)
        assert found == [event["id"] for event in reversed(truth["events"])]
        assert len(found) > 250

    in_stadium(scenario)


def test_the_list_has_every_match() -> None:
    async def scenario(visitor: Visitor) -> None:
        plan, base = BOARD.list_plan(f"{visitor.base}/board"), f"{visitor.base}/board"
        for layout in (1, 2, 0):  # a list of matches is found by its links, in any layout
            async with visitor.http.delete(f"{visitor.base}/control/faults"):
                pass
            await visitor.plant(site="board", target="list", kind="layout", value=layout)
            page = await visitor.get("page", plan.url)
            listed = BOARD.parse_list(visitor.reading(RefInfo("", plan.url), ReadMode.VISIT, page), base)
            shown = await visitor.json("/truth/matches")
            assert [(one.source_event_id, one.url, one.status.value) for one in listed] == [
                (row["key"], row["url"], row["status"]) for row in shown
            ]

    in_stadium(scenario)


@pytest.mark.requirement("FR-019")
class TestRedesign:
    def test_changes_nothing_where_fallbacks_fit(self) -> None:
        async def scenario(visitor: Visitor) -> None:
            visitor.move_to(9_000)
            (row, *_) = await visitor.json("/truth/matches")
            before = BOARD.parse(await read(visitor, row))
            await visitor.plant(site="board", kind="layout", value=2)
            after = BOARD.parse(await read(visitor, row))
            assert (after.state, after.events) == (before.state, before.events)
            assert {"key#2", "balls#2", "balls.id#2"} <= set(after.integrity.fallback_selectors)

        in_stadium(scenario)

    def test_a_missing_field_names_every_selector_tried(self) -> None:
        async def scenario(visitor: Visitor) -> None:
            (row, *_) = await visitor.json("/truth/matches")
            await visitor.plant(site="board", kind="layout", value=0)
            with pytest.raises(LayoutChanged, match=r"key \(tried \.sb-key, \[data-part='key'\]\)") as error:
                BOARD.parse(await read(visitor, row))
            assert "<main" in error.value.evidence
            page = Document("page", f"{visitor.base}/board/", 200, "text/html", b"<h1>Scores</h1>")
            with pytest.raises(LayoutChanged, match=r"list \(tried \.sb-list"):
                BOARD.parse_list(visitor.reading(RefInfo("", ""), ReadMode.VISIT, page), f"{visitor.base}/board")

        in_stadium(scenario)


def test_refuses_a_page_of_another_match() -> None:
    async def scenario(visitor: Visitor) -> None:
        (row, *_) = await visitor.json("/truth/matches")
        await visitor.plant(site="board", target="page", kind="wrong_match", count=1)
        with pytest.raises(PayloadRejected, match="another match"):
            BOARD.parse(await read(visitor, row))
        await visitor.plant(site="board", target="page", kind="challenge", count=1)
        with pytest.raises(Blocked):
            BOARD.parse(await read(visitor, row))
        good = await read(visitor, row)
        html = good.documents["page"].text()
        for spoilt_html in (html.replace("(", "<", 1), html.replace(">Live<", ">Alive<")):
            page = Document("page", row["url"], 200, "text/html", spoilt_html.encode())
            with pytest.raises(SchemaBreak):
                BOARD.parse(visitor.reading(good.ref, ReadMode.VISIT, page))

    in_stadium(scenario)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://board.example/match/ahb-v-cld-odi-138Z", "138Z"),
        ("https://board.example/match/ahb-v-cld-odi-138Z?before=5#x", "138Z"),
        ("https://board.example/match/138Z", None),
        ("https://board.example/", None),
        ("https://[board", None),
    ],
)
def test_the_address_of_a_match(url: str, key: str | None) -> None:
    found = BOARD.match_at(url, "https://board.example")
    assert (found.source_event_id if found else None) == key


def _good() -> dict[str, Any]:
    rows = "".join(
        f'<article class="sb-ball" data-id="17948183992{n}" data-n="{n}"><i class="sb-innings">1</i>'
        f'<i class="sb-over">0.{n}</i><b class="sb-code">4</b><q class="sb-said">x</q></article>'
        for n in (12, 11)
    )
    parts = {"key": "138Z", "name-a": "A", "name-b": "B", "total-a": "8/0 (0.2 ov)", "total-b": "", "state": "Live"}
    html = "".join(f'<p class="sb-{name}">{text}</p>' for name, text in parts.items())
    assert BOARD.layout is not None
    return from_html(html + rows, BOARD.layout)


def open_page(found: Any) -> Reading:
    return Visitor(None, "", [NOON]).reading(  # type: ignore[arg-type]
        RefInfo("138Z", "http://site.test/match/a-138Z"),
        ReadMode.ATTACHED,
        Document(FIELDS, "", 200, "", json.dumps(found).encode()),
    )


@pytest.mark.requirement("FS-2")
class TestBallsThatCannotBeRead:
    @pytest.mark.parametrize(
        ("cell", "value", "path"), [("id", "", "balls[].id"), ("innings", "100", "balls[].innings")]
    )
    def test_cost_themselves_and_are_noted(self, cell: str, value: str, path: str) -> None:
        found = _good()
        found["rows"]["balls"]["cells"][cell]["values"][0] = value
        payload = BOARD.parse(open_page(found))
        assert (payload.state.score.team_a.runs, len(payload.events)) == (8, 1)
        assert [(one.path, one.count) for one in payload.integrity.broken_parts] == [(path, 1)]

    def test_a_list_of_absurd_length_costs_the_events(self) -> None:
        found = _good()
        found["rows"]["balls"]["count"] = 10**9
        payload = BOARD.parse(open_page(found))
        assert (payload.state.score.team_a.runs, payload.events, payload.lacks_events) == (8, (), True)
        assert [one.path for one in payload.integrity.broken_parts] == ["balls"]


def test_cards_that_cannot_be_read_are_counted() -> None:
    card = '<div class="sb-card">{}<em class="sb-state">{}</em></div>'
    links = ('<a class="sb-link" href="//[">A v B</a>', "", '<a class="sb-link" href="/match/a-138Z">A v B</a>')
    cards = [card.format(link, state) for link, state in zip(links, ("Live", "Live", "Paused"), strict=True)]
    html = f'<div class="sb-list">{"".join(cards)}</div>'
    page = Document("page", "http://site.test/", 200, "text/html", html.encode())
    reading = Visitor(None, "", [NOON]).reading(RefInfo("", "http://site.test/"), ReadMode.VISIT, page)  # type: ignore[arg-type]
    with parsing.noting_unrecognized() as noted:
        (match,) = BOARD.parse_list(reading, "http://site.test")
    assert match.source_event_id == "138Z"
    assert [one.path for one in noted] == ["list[]", "list[]", "cards[].state"]
