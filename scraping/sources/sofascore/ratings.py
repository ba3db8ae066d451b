"""How every footballer did, as the line-ups tell it: rating, minutes, goals. Who did not play has none."""

from __future__ import annotations

from scraping.payloads import Figures, PlayerFigure
from scraping.sources.base import Reading
from scraping.sources.parsing import collecting_unrecognized
from scraping.sources.sofascore import lineups, schemas
from scraping.sources.sofascore.schemas import LineupRow

_VALUES = (("rating", "rating"), ("minutes", "minutesPlayed"), ("goals", "goals"), ("assists", "goalAssist"))


def parse(reading: Reading, source: str) -> Figures:
    with collecting_unrecognized() as unknown:
        answer = lineups.answer_in(reading)
        rows = [] if answer is None else [(s, row) for s, at, _ in lineups.SIDES for row in getattr(answer, at).players]
        figures = [
            PlayerFigure(side=s, role="rating", player_id=str(row.player.id), name=row.player.name[:120], values=values)
            for s, row in rows
            if (values := _values(row))
        ]
        return Figures(
            source=source,
            payload_schema=schemas.LINEUPS,
            captured_at=reading.captured_at,
            source_event_id=reading.ref.source_event_id,
            figures=tuple(figures),
            unknown=tuple(unknown),
        )


def _values(row: LineupRow) -> dict[str, str | int | float | bool | None]:
    stated = row.statistics
    if stated is None:
        return {}
    return {ours: value for ours, theirs in _VALUES if (value := getattr(stated, theirs)) is not None}
