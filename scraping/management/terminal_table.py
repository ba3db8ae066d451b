"""Tables for a terminal: aligned columns, coloured on a terminal only."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

COLOURS = {"red": "31", "green": "32", "yellow": "33", "bold": "1"}


@dataclass(frozen=True)
class Cell:
    text: str
    colour: str = ""
    is_number: bool = False  # aligned to the right


def table(headings: Sequence[str], rows: Sequence[Sequence[Cell]], *, is_coloured: bool) -> list[str]:
    lines = [[Cell(heading, "bold", rows[0][place].is_number) for place, heading in enumerate(headings)], *rows]
    widths = [max(_width(line[place].text) for line in lines) for place in range(len(headings))]
    return [
        "  ".join(_shown(cell, width, is_coloured) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def _shown(cell: Cell, width: int, is_coloured: bool) -> str:
    gap = " " * (width - _width(cell.text))
    text = gap + cell.text if cell.is_number else cell.text + gap
    code = COLOURS.get(cell.colour)
    return f"\x1b[{code}m{text}\x1b[0m" if is_coloured and code and cell.text else text


def _width(text: str) -> int:
    """Returns the width in columns: East Asian letters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )
