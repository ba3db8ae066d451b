"""The simulated Sofascore without its server: what it would answer at a moment, and what is true then."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from scraping.sources.base import Document, Reading, ReadMode, RefInfo
from stadium.config import StadiumConfig
from stadium.programme import Match
from stadium.sofascore import cricket_cards, cricket_event, extras
from stadium.sofascore import event as football_event
from stadium.sofascore.cricket_balls import IncidentBook
from stadium.sofascore.incidents import incidents
from stadium.truth import truth
from stadium.world import World

NOON = datetime(2026, 5, 2, 12, 0, tzinfo=UTC).timestamp()
PHASES = {
    "toss": "scheduled",
    "in_play": "play",
    "first_half": "play",
    "second_half": "play",
    "abandoned": "finished",
}


class Site:
    """A world whose clock the test moves; a simulated second is a second."""

    def __init__(self, **settings: Any) -> None:
        self._clock = [NOON]
        self.world = World(StadiumConfig(pace=1.0, **settings), wall_clock=lambda: self._clock[0])

    def move_to(self, match: Match, seconds: float) -> None:
        """So long after the match's scheduled start."""
        self._clock[0] += match.starts_at + seconds - self.world.clock.now()

    def truth(self, match: Match) -> dict[str, Any]:
        return truth(self.world, self.world.truth(match), self.world.clock.wall())

    def reading(self, match: Match, *documents: Document) -> Reading:
        at = datetime.fromtimestamp(self._clock[0], tz=UTC)
        return Reading(RefInfo(match.key, ""), ReadMode.DIRECT, at, {one.name: one for one in documents})

    def football(self, match: Match) -> Reading:
        state = self.world.football(match, self.world.index(match))
        event = {"event": football_event.event(self.world, match, state)}
        return self.reading(match, answer("event", event), answer("incidents", incidents(match, state)))

    def football_lineups(self, match: Match) -> Reading:
        state = self.world.football(match, self.world.index(match))
        found = extras.lineups(match, state, self.world.start_wall(match) - self._clock[0])
        event = answer("event", {"event": football_event.event(self.world, match, state)})
        return self.reading(match, event, *([] if found is None else [answer("lineups", found)]))

    def cricket(self, match: Match, *besides: str) -> Reading:
        index = self.world.index(match)
        state, book = self.world.cricket(match, index), IncidentBook(match)
        book.advance(index)
        found = {
            "event": {"event": cricket_event.event(self.world, match, state)},
            "incidents": book.body(),
            "innings": cricket_cards.innings(state),
            "lineups": cricket_cards.lineups(match, state, self.world.start_wall(match) - self._clock[0]),
        }
        return self.reading(match, *(answer(name, found[name]) for name in ("event", *besides) if found[name]))


def answer(name: str, body: Any) -> Document:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Document(name, f"http://site.test/{name}", 200, "application/json", data)
