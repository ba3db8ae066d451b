"""Figures of the cricketers: the batting and bowling lines of each innings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scraping.errors import SchemaBreak
from scraping.payloads import Figures, PlayerFigure, Side
from scraping.sources import parsing
from scraping.sources.base import Reading, RefInfo, Request
from scraping.sources.parsing import collecting_unrecognized, validated
from scraping.sources.sofascore import schemas
from scraping.sources.sofascore.batting_order import overs_text, side_of
from scraping.sources.sofascore.cricket_state import check_shape, checked
from scraping.sources.sofascore.schemas import BattingLine, BowlingLine, InningsResponse, InningsRow
from scraping.sources.sofascore.site import event_in

Values = dict[str, str | int | float | bool | None]
_NOT_OUT = "not out"


def requests(ref: RefInfo, base_url: str) -> tuple[Request, ...]:
    event = f"{base_url.rstrip('/')}/api/v1/event/{ref.source_event_id}"
    headers = {"accept": "*/*", "referer": ref.url.partition("#")[0] or base_url}
    return Request("innings", f"{event}/innings", headers=headers), Request("event", event, headers=headers)


def rows_of(response: Any, url: str = "") -> list[InningsRow]:
    return validated(InningsResponse, response, schema=schemas.INNINGS, url=url).innings


def parse(reading: Reading, source: str) -> Figures:
    """Returns no figures where the source has no list of innings; sides come from the event, which names the teams."""
    with collecting_unrecognized() as unknown:
        document = reading.document("innings")
        rows = (
            [] if document is None or document.status >= 400 else rows_of(parsing.json_object(document), document.url)
        )
        figures = [figure for row in rows for figure in _figures(row, _side(reading, row))]
        return Figures(
            source=source,
            payload_schema=schemas.INNINGS,
            captured_at=reading.captured_at,
            source_event_id=reading.ref.source_event_id,
            figures=tuple(figures),
            unknown=tuple(unknown),
        )


def _side(reading: Reading, row: InningsRow) -> Side:
    event = checked(event_in(reading, "cricket", check_shape)[0])
    side = side_of(event, row.battingTeam.id)
    if side is None:
        raise SchemaBreak(f"{schemas.INNINGS}: innings[].battingTeam.id ({row.battingTeam.id} is no team of the match)")
    return side


def _figures(row: InningsRow, side: Side) -> Iterator[PlayerFigure]:
    other: Side = "team_b" if side == "team_a" else "team_a"
    for batting in row.battingLine:
        yield from _figure(row, side, batting, _batting(batting))
    for bowling in row.bowlingLine:
        yield from _figure(row, other, bowling, _bowling(bowling))


def _figure(row: InningsRow, side: Side, line: BattingLine | BowlingLine, values: Values) -> Iterator[PlayerFigure]:
    name = (line.playerName or (line.player.name if line.player else "") or "").strip()
    number = line.player.id if line.player else None
    if name and number is not None:
        yield PlayerFigure(
            side=side,
            role="batting" if isinstance(line, BattingLine) else "bowling",
            innings=row.number,
            player_id=str(number),
            name=name[:120],
            values={field: value for field, value in values.items() if value is not None},
        )


def _batting(line: BattingLine) -> Values:
    how = (line.wicketTypeName or "").strip()
    return {
        "runs": line.score,
        "balls": line.balls,
        "fours": line.s4,
        "sixes": line.s6,
        "is_out": how.lower() != _NOT_OUT if how else None,
        "how_out": how or None,
    }


def _bowling(line: BowlingLine) -> Values:
    return {
        "overs": None if line.over is None else overs_text(line.over),
        "maidens": line.maiden,
        "runs": line.run,
        "wickets": line.wicket,
    }
