"""The events of a cricket match as one site renders them. Events never change, so each is rendered once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from stadium.cricket.script import CricketEvent, CricketScript
from stadium.cricket.state import CricketState
from stadium.matches.programme import Match

T = TypeVar("T")
# Gets the state after the event and the event's id; returns None for events that the site does not show.
Render = Callable[[Match, CricketEvent, CricketState, int], T | None]


class EventLog(Generic[T]):
    """`items` are oldest first, `state` is that after the last event."""

    def __init__(self, match: Match, render: Render[T]) -> None:
        assert isinstance(match.script, CricketScript)
        self._match, self._script, self._render = match, match.script, render
        self.state = CricketState(match.script)
        self.items: list[T] = []

    def advance(self, ids: list[int]) -> None:
        """Adds the events that have happened since; `ids` has one id for each event that has happened."""
        for place in range(self.state.applied, len(ids)):
            event = self._script.events[place]
            self.state.apply(event)
            item = self._render(self._match, event, self.state, ids[place])
            if item is not None:
                self.items.append(item)
