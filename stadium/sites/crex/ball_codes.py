"""Codes of deliveries at this site.

The number of a no-ball is the runs off the bat, without its own run; the number of a wide is all of its runs. Further
extras are joined by a plus.
"""

from __future__ import annotations

from stadium.cricket.script import Ball, Dismissal, Wicket

_LAST_NUMBERED = Dismissal.LBW  # the site has no numbers for later ones
_OFF_A_NO_BALL = (1, 2, 3, 4, 6)


def code(ball: Ball) -> str:
    """The code in the ball feed: `4`, `1nb`, `5wd`, `2lb`, `W`, `1W`, `wd+W`."""
    parts = [_main(ball), *(f"{runs}{name}" for name, runs in ball.extras[1:])]
    if not ball.wicket:
        return "+".join(parts)
    if len(parts) > 1 or ball.extras:
        return "+".join([*parts, "W"])
    return f"{ball.runs or ''}W"


def recent_code(ball: Ball) -> str:
    """The code in the recent overs of the live state, with letters first: `nb1` and `w`."""
    if ball.wicket:
        return "w"
    text = code(ball)
    letters = text.lstrip("0123456789")
    return text if "+" in text else letters + text[: len(text) - len(letters)]


def last_ball_code(ball: Ball) -> str:
    """The code of the last ball in the live state, where a wicket has the number of its dismissal."""
    if ball.wicket is None:
        return code(ball)
    number = dismissal_number(ball.wicket)
    return f"^{number}" if number else "W"


def dismissal_number(wicket: Wicket) -> int | None:
    return int(wicket.kind) if wicket.kind <= _LAST_NUMBERED else None


def _main(ball: Ball) -> str:
    name, runs = ball.extras[0] if ball.extras else ("", 0)
    if name == "nb":
        return _no_ball(ball.runs, runs)
    if name == "wd":
        return "wd" if runs == 1 else f"{runs}wd"
    if name and ball.runs:
        return f"{ball.runs}+{runs}{name}"
    return f"{runs}{name}" if name else str(ball.runs)


def _no_ball(off_the_bat: int, runs: int) -> str:
    rest = off_the_bat + runs - 1
    if runs == 1 and off_the_bat in _OFF_A_NO_BALL:
        return f"{off_the_bat}nb"
    return f"nb+{rest}" if rest else "nb"
