"""How the scoreboard is marked up. The site is redesigned by the fault `layout`; what it tells stays the same."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

REDESIGNED, FOREIGN = 2, 0  # values of the fault; any other but these is the usual skin


@dataclass(frozen=True, slots=True)
class Skin:
    """What readers can hold on to: the attributes that mark a part, and those that number a ball."""

    number: int
    tag: str
    ball_id: str
    ball_number: str

    def mark(self, part: str) -> str:
        if self.number == REDESIGNED:
            return f'class="css-{zlib.crc32(part.encode()):x}" data-part="{part}"'
        if self.number == FOREIGN:
            return f'class="z{zlib.crc32(part[::-1].encode()):x}"'
        return f'class="sb-{part}"'

    def number_ball(self, identity: int, delivery: int | None) -> str:
        if self.number == FOREIGN:
            return ""
        counted = f' {self.ball_number}="{delivery}"' if delivery else ""
        return f'{self.ball_id}="{identity}"{counted}'


USUAL = Skin(1, "p", "data-id", "data-n")
_OTHERS = {
    REDESIGNED: Skin(REDESIGNED, "div", "data-ball", "data-no"),
    FOREIGN: Skin(FOREIGN, "section", "", ""),
}


def skin_of(fault_value: float | None) -> Skin:
    """The skin that a planted fault asks for; None: there is no such fault."""
    return USUAL if fault_value is None else _OTHERS.get(int(fault_value), USUAL)
