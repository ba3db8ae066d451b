"""Which happening of the match an incident tells: the name that it has at every source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scraping import event_keys
from scraping.sources import parsing

Incident = Mapping[str, Any]
_COLOURS = {"yellow": "yellow", "red": "red", "yellowRed": "red"}
_PERIODS = ("HT", "FT", "ET", "PEN")


class Places:
    """Goals and kicks are numbered a side. Each says its number itself, by the score or the sequence that it gives;
    where one does not, those on the list are counted.
    """

    def __init__(self, newest_first: list[Incident]) -> None:
        self._counted: dict[int, int] = {}
        counts: dict[tuple[str, bool], int] = {}
        for incident in reversed(newest_first):
            kind, is_home = incident.get("incidentType"), incident.get("isHome")
            if kind in ("goal", "penaltyShootout") and isinstance(is_home, bool):
                counts[kind, is_home] = counts.get((kind, is_home), 0) + 1
                self._counted[id(incident)] = counts[kind, is_home]

    def slot(self, incident: Incident) -> str:
        """Empty where the happening has no name: a video review, added time."""
        kind, variant = incident.get("incidentType"), parsing.text(incident.get("incidentClass"), 40)
        if kind == "period":
            text = parsing.text(incident.get("text"), 40)
            return event_keys.period(text) if text in _PERIODS else ""
        is_home = incident.get("isHome")
        if not isinstance(is_home, bool):
            return ""
        side = "team_a" if is_home else "team_b"
        if kind == "goal":
            return event_keys.goal(
                side, parsing.integer(incident.get("homeScore" if is_home else "awayScore")) or self._nth(incident)
            )
        if kind == "penaltyShootout":
            sequence = parsing.integer(incident.get("sequence"))
            return event_keys.shootout_kick(side, (sequence + 1) // 2 if sequence else self._nth(incident))
        if kind == "card" and variant in _COLOURS:
            name = _name(incident, "player") or parsing.text(incident.get("playerName"), 120)
            return event_keys.card(side, _COLOURS[variant], name) if name else ""
        if kind == "substitution":
            name = _name(incident, "playerOut")
            return event_keys.substitution(side, name) if name else ""
        return ""

    def _nth(self, incident: Incident) -> int:
        return self._counted.get(id(incident), 1)


def _name(incident: Incident, role: str) -> str:
    return parsing.text(parsing.mapping(incident.get(role)).get("name"), 120)
