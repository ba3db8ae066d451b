"""Line-ups and figures for tests: an adapter and a reader that return what the test gives."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from scraping.models import MatchRef
from scraping.payloads import Figures, Lineup, LineupPlayer, Lineups, Payload, PlayerFigure, Side
from scraping.reading.reader import Target
from scraping.readings import Document, Reading, ReadMode, RefInfo, Request
from scraping.sources.sofascore.adapter import SofascoreAdapter
from scraping.worker.engine import Engine
from tests.factories import NOW
from tests.scraping.builders import POLICIES, Outcome, ScriptedReader

Parsed = Lineups | Figures | Exception


def player(number: int, *, side: str = "a", **fields: Any) -> LineupPlayer:
    values = {"player_id": f"{side}{number}", "name": f"Player {side}{number}", "position": "M", "shirt": str(number)}
    return LineupPlayer(**values | {"is_starter": number <= 11} | fields)


def side_of(side: Side = "team_a", *, starters: int = 11, bench: int = 2, **fields: Any) -> Lineup:
    mark = side[-1]
    players = [player(number, side=mark) for number in range(1, starters + 1)]
    players += [player(number, side=mark, is_starter=False) for number in range(12, 12 + bench)]
    return Lineup(**{"side": side, "formation": "4-3-3", "is_confirmed": True, "players": tuple(players), **fields})


def lineups_of(ref: MatchRef, *sides: Lineup, at: datetime = NOW, **fields: Any) -> Lineups:
    return Lineups(
        source=ref.source.key,
        payload_schema="sofascore.lineups.v1",
        captured_at=at,
        source_event_id=ref.source_event_id,
        lineups=sides or (side_of("team_a"), side_of("team_b")),
        **fields,
    )


def no_lineups(ref: MatchRef, *, at: datetime = NOW) -> Lineups:
    """Returns line-ups of a source that has none yet."""
    return lineups_of(ref, side_of(), at=at).model_copy(update={"lineups": ()})


def rating(player_id: str = "a1", **fields: Any) -> PlayerFigure:
    values = {"side": "team_a", "role": "rating", "player_id": player_id, "name": f"Player {player_id}"}
    return PlayerFigure(**values | {"values": {"rating": 7.1}} | fields)


def figures_of(ref: MatchRef, *figures: PlayerFigure, at: datetime = NOW) -> Figures:
    return Figures(
        source=ref.source.key,
        payload_schema="sofascore.lineups.v1",
        captured_at=at,
        source_event_id=ref.source_event_id,
        figures=figures,
    )


class ScriptedAdapter(SofascoreAdapter):
    """Returns the reader's results unchanged."""

    def lineup_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return (Request("lineups", f"{base_url}/{ref.source_event_id}/lineups"),)

    def parse_lineups(self, reading: Reading) -> Lineups:
        return Lineups.model_validate_json(reading.documents["lineups"].body)

    def figure_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return (Request("figures", f"{base_url}/{ref.source_event_id}/figures"),)

    def parse_figures(self, reading: Reading) -> Figures:
        return Figures.model_validate_json(reading.documents["figures"].body)


class PeopleReader(ScriptedReader):
    """Returns scripted outcomes for the match, and `result_for` for other documents."""

    def __init__(self, *outcomes: Outcome, result_for: Callable[[str], Parsed]) -> None:
        super().__init__(*(outcomes or (Exception("the match must not be read"),)))
        self._result_for = result_for
        self.asked: list[str] = []

    def extra_documents(self, target: Target, requests: tuple[Request, ...]) -> Reading:
        name = requests[0].name
        self.asked.append(name)
        result = self._result_for(name)
        if isinstance(result, Exception):
            raise result
        body = result.model_dump_json().encode()
        document = Document(name, requests[0].url, 200, "application/json", body)
        return Reading(target.ref, ReadMode.DIRECT, result.captured_at, {name: document})


def engine_parsing(result: Parsed | Callable[[str], Parsed], *outcomes: Payload | Exception) -> Engine:
    result_for = result if callable(result) else lambda _name: result
    return Engine(worker_id="w-1", reader=PeopleReader(*outcomes, result_for=result_for), policies=POLICIES)
