"""A match of the stadium's Crex site at any moment, without the network."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from scraping.errors import SchemaBreak
from scraping.payloads import Event, Payload
from scraping.sources import adapter_for
from scraping.sources.base import Document, Reading, ReadMode, RefInfo
from stadium.config import StadiumConfig
from stadium.cricket.script import CricketScript
from stadium.cricket.state import CricketState
from stadium.matches.event_log import EventLog
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.sites.crex import page
from stadium.sites.crex.feed import feed_item, feed_page
from stadium.sites.crex.live import live
from stadium.sites.crex.scorecard import scorecard, squads

ADAPTER = adapter_for("crex")
NOON = datetime(2026, 5, 2, 12, 0, tzinfo=UTC).timestamp()


class CrexSite:
    """Moves through a match event by event and returns readings as the reader would."""

    def __init__(self, simulation: Simulation, match: Match) -> None:
        assert isinstance(match.script, CricketScript)
        self.simulation, self.match = simulation, match
        self.state = CricketState(match.script)
        self.book = EventLog(match, feed_item)
        self.static: Document | None = None
        self.visits = 0
        self.has_card = False  # the page requests the scorecard

    @classmethod
    def of_programme(cls, programme: str, number: int = 0) -> CrexSite:
        wall = [NOON]
        simulation = Simulation(
            StadiumConfig(port=0, pace=1.0, programme=programme, at_once=True), wall_clock=lambda: wall[0]
        )
        slot = simulation.programme.slots[number]
        match = simulation.programme.match(slot, 0, "crex")
        wall[0] = simulation.clock.wall_at(match.ends_at) + 60
        return cls(simulation, match)

    @property
    def ref(self) -> RefInfo:
        return RefInfo(self.match.key, f"http://site.test/crex/cricket-live-score/any-match-updates-{self.match.key}")

    @property
    def is_at_end(self) -> bool:
        return self.state.applied == len(self.match.script.events)

    def move(self, count: int = 1) -> None:
        events = self.match.script.events
        for event in events[self.state.applied : self.state.applied + count]:
            self.state.apply(event)  # type: ignore[arg-type]

    @property
    def moment(self) -> datetime:
        """Returns a time shortly after the last event."""
        event = self.match.script.events[max(self.state.applied - 1, 0)]
        return datetime.fromtimestamp(self.simulation.clock.wall_at(self.match.starts_at + event.at) + 0.001, tz=UTC)

    def page(self, name: str = "page", tab: str = "live") -> Document:
        frame = page.PageContext("http://site.test/crex", "")
        self.advance()
        start = self.simulation.start_wall(self.match)
        html = page.match_page(frame, self.match, self.state, start, feed_page(self.book.items, None), tab=tab)
        return Document(name, self.ref.url, 200, "text/html", html.encode())

    def advance(self) -> None:
        self.book.advance(self.simulation.ids(self.match, self.state.applied))

    def answers(self) -> list[Document]:
        self.advance()
        documents = [_answer("live", live(self.match, self.state)), _answer("feed", feed_page(self.book.items, None))]
        return [*documents, _answer("scorecard", scorecard(self.state))] if self.has_card else documents

    def visit(self) -> Payload:
        """Returns the reading of a visit: the page and the responses that its script requests."""
        self.visits += 1
        self.has_card = self.has_card or len(self.state.innings) > 2 or self.match.script.overs == 0  # type: ignore[union-attr]
        self.static = self.page("static_page")
        return self.parse(ReadMode.VISIT, self.page(), *self.answers())

    def poll(self) -> Payload:
        """Returns a direct read, or a visit if it cannot be parsed."""
        if self.static is None:
            return self.visit()
        try:
            return self.parse(ReadMode.DIRECT, self.static, *self.answers())
        except SchemaBreak:
            return self.visit()

    def parse(self, mode: ReadMode, *documents: Document) -> Payload:
        return ADAPTER.parse(Reading(self.ref, mode, self.moment, {one.name: one for one in documents}))

    def parse_page(self) -> Payload:
        """Returns the parsed page without responses."""
        return self.parse(ReadMode.VISIT, self.page())

    def read_feed(self, items: list[dict[str, Any]]) -> tuple[Event, ...]:
        """These items, newest last, as a page of the feed."""
        return self.parse(ReadMode.VISIT, self.page(), self.answers()[0], _answer("feed", items[::-1])).events

    def read_tab(self, name: str, tab: str) -> Reading:
        body: Any = scorecard(self.state) if name == "scorecard" else squads(self.match, self.state)
        documents = (_answer(name, body), self.page(tab=tab))
        return Reading(self.ref, ReadMode.DIRECT, self.moment, {one.name: one for one in documents})

    def whole_feed(self) -> dict[str, Event]:
        """Returns all pages of the feed together."""
        self.advance()
        events: dict[str, Event] = {}
        before: int | None = None
        while items := feed_page(self.book.items, before):
            feed = _answer("feed", items)
            read = self.parse(ReadMode.VISIT, self.page(), self.answers()[0], feed)
            for event in read.events:
                assert event.id not in events
                events[event.id] = event
            before = items[-1]["id"]
        return events


def _answer(name: str, data: Any) -> Document:
    body = json.dumps(data).encode()
    return Document(name, f"http://site.test/crex/{name}", 200, "application/json", body)
