"""What a delivery's code says: "4", "1nb", "5wd", "2lb", "W", "1wd+W"; "nb1" in the recent overs, "^2" as last ball."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from scraping.sources import parsing

_TOKEN = re.compile(r"(\d{1,2})?(wd|nb|lb|pen|b|w|\^\d)(\d{1,2})?|(\d{1,2})", re.ASCII)
_KINDS = (("w", "wicket"), ("^", "wicket"), ("wd", "wide"), ("nb", "no_ball"), ("lb", "leg_bye"), ("b", "bye"))
_RUNS = {0: "dot", 4: "four", 6: "six"}
# The last-ball field also says what is about to happen: the ball starts, is in the air, is a free hit; the over ends.
MOMENTS = frozenset({"b", "o", "bc", "ba", "fh", "e", "wd", "nb", "w"})
DISMISSALS = frozenset(range(1, 8))  # bowled, caught, caught and bowled, run out, stumped, hit wicket, lbw


class Code(NamedTuple):
    kind: str
    runs: int | None
    is_known: bool


@lru_cache(maxsize=512)
def read(code: str) -> Code:
    """Kind and everything that the delivery added to the score."""
    text = code.strip().lower().replace(" ", "")
    found = _TOKEN.findall(text.replace("+", "|"))
    spelled = "".join("".join(groups) for groups in found)
    if not found or spelled != text.replace("+", "") or text == "b":  # "B" alone: the bowler starts his run
        return Code("other", None, is_known=False)
    marks = {mark[:1] if mark.startswith("^") else mark for _, mark, _, _ in found}
    runs = sum(_runs(mark, int(before or after or plain or -1)) for before, mark, after, plain in found)
    kind = next((kind for mark, kind in _KINDS if mark in marks), "")
    return Code(kind or ("other" if marks - {""} else _RUNS.get(runs, "runs")), runs, is_known=True)


def kind_of(code: str, path: str) -> Code:
    """The same, and a code that is in no table is counted."""
    known = read(code)
    if not known.is_known:
        parsing.note_unrecognized(path, code)
    return known


def is_legal(code: str) -> bool:
    """Whether the delivery counts for the over."""
    text = code.lower()
    return "wd" not in text and "nb" not in text


def _runs(mark: str, number: int) -> int:
    """`number` is -1 where there is none.

    A no-ball's number is what came off the bat, its own run is on top: in a recorded over "1nb" made two (its total,
    the partnership and the batter's figures all say so, only the item's own score lags behind). Five and seven can't
    come off one stroke: there the number is a total. A wide's number is its total.
    """
    if mark == "nb":
        return number if number in (5, 7) else max(number, 0) + 1
    if mark in ("wd", "lb"):
        return number if number > 0 else 1
    return max(number, 0)
