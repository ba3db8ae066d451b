"""The simulated Sofascore site without a server: its responses and the ground truth at a moment."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from scraping.sources.base import Document, Reading, ReadMode, RefInfo
from stadium.config import StadiumConfig
from stadium.ground_truth import match_truth
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.sites.sofascore import cricket_event, cricket_innings, football_event, football_lineups
from stadium.sites.sofascore.cricket_incidents import incident
from stadium.sites.sofascore.cricket_incidents import incidents as cricket_incidents
from stadium.sites.sofascore.football_incidents import incidents

NOON = datetime(2026, 5, 2, 12, 0, tzinfo=UTC).timestamp()
PHASES = {
    "toss": "scheduled",
    "in_play": "play",
    "first_half": "play",
    "second_half": "play",
    "abandoned": "finished",
}


class Site:
    """A simulation at real-time pace with a test clock."""

    def __init__(self, **settings: Any) -> None:
        self._clock = [NOON]
        self.simulation = Simulation(StadiumConfig(pace=1.0, **settings), wall_clock=lambda: self._clock[0])

    def move_to(self, match: Match, seconds: float) -> None:
        """Moves the clock to this time after the match's scheduled start."""
        self._clock[0] += match.starts_at + seconds - self.simulation.clock.now()

    def truth(self, match: Match) -> dict[str, Any]:
        return match_truth(self.simulation, self.simulation.undistorted(match), self.simulation.clock.wall())

    def reading(self, match: Match, *documents: Document) -> Reading:
        at = datetime.fromtimestamp(self._clock[0], tz=UTC)
        return Reading(RefInfo(match.key, ""), ReadMode.DIRECT, at, {one.name: one for one in documents})

    def football(self, match: Match) -> Reading:
        state = self.simulation.football(match)
        event = {"event": football_event.event(self.simulation, match, state)}
        return self.reading(match, answer("event", event), answer("incidents", incidents(match, state)))

    def football_lineups(self, match: Match) -> Reading:
        state = self.simulation.football(match)
        found = football_lineups.lineups(match, state, self.simulation.start_wall(match) - self._clock[0])
        event = answer("event", {"event": football_event.event(self.simulation, match, state)})
        return self.reading(match, event, *([] if found is None else [answer("lineups", found)]))

    def cricket(self, match: Match, *others: str) -> Reading:
        log = self.simulation.log(match, incident)
        state = log.state
        found = {
            "event": {"event": cricket_event.event(self.simulation, match, state)},
            "incidents": cricket_incidents(log.items),
            "innings": cricket_innings.innings(state),
            "lineups": cricket_innings.lineups(match, state, self.simulation.start_wall(match) - self._clock[0]),
        }
        return self.reading(match, *(answer(name, found[name]) for name in ("event", *others) if found[name]))


def answer(name: str, body: Any) -> Document:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Document(name, f"http://site.test/{name}", 200, "application/json", data)
