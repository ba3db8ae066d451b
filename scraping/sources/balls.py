"""What a ball's code says, as cricket sites print it."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"\d{1,2}", re.ASCII)
_EXTRAS = (("wd", "wide"), ("nb", "no_ball"), ("lb", "leg_bye"))


def ball_kind(code: str) -> tuple[str, int | None]:
    """Kind and runs of a ball's code: "4", "1nb" (feed) or "nb1" (recent overs), "W", "^2" (caught)."""
    token = code.strip().lower()
    numbers = [int(number) for number in _NUMBER.findall(token)]
    if token.startswith("^"):
        return "wicket", 0
    for mark, kind in _EXTRAS:
        if mark in token and "w" not in token.replace("wd", ""):
            return kind, sum(numbers) if numbers else 1
    if "w" in token and len(token) <= 6:
        return "wicket", sum(numbers)
    if re.fullmatch(r"\d{0,2}b\d{1,2}|\d{1,2}b", token):
        return "bye", sum(numbers)
    if re.fullmatch(r"\d{1,2}", token):
        return {0: "dot", 4: "four", 6: "six"}.get(numbers[0], "runs"), numbers[0]
    return "other", None
