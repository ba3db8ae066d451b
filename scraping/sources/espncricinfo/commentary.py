"""Deliveries as events: one a ball, one more for a wicket that counts, one for the end of an over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scraping import event_keys
from scraping.payloads import Event, LastEvent
from scraping.sources import falls, parsing
from scraping.sources.balls import ball_kind
from scraping.sources.espncricinfo.balls import Delivery
from scraping.sources.espncricinfo.schemas import Ball, Inning

Names = Mapping[int, str]  # by the site's own number of a player
_NOT_OUT = ("retired hurt", "retired not out", "retired ill", "not out", "absent")


def events_of(balls: Sequence[Delivery], names: Names, innings: Mapping[int, Inning]) -> tuple[Event, ...]:
    """Newest first, as the site lists them."""
    found: list[Event] = []
    before: Delivery | None = None
    for one in balls:
        is_wicket = is_out(one, before)
        found.append(_ball(one, names, is_wicket=is_wicket))
        if is_wicket:
            found.append(_dismissal(one, names, innings.get(one.innings)))
        if one.ball.over_end is not None and one.ball.over_end.is_complete is not False:
            found.append(_over_end(one))
        before = one
    return tuple(reversed(falls.with_unnamed(found)))


def last_event_of(events: Sequence[Event]) -> LastEvent | None:
    """The newest ball. One that does not count is no news: a card shows an innings' first over for ever."""
    newest = next((event for event in events if event.ordinal is not None), None)
    if newest is None:
        return None
    return LastEvent(type=newest.kind, description=newest.description, timestamp=newest.happened_at)


def is_out(one: Delivery, before: Delivery | None) -> bool:
    """Whether the ball brought a wicket that counts. Who retires hurt may come back."""
    ball = one.ball
    said = parsing.plain(ball.dismissal.short or ball.dismissal.long).lower() if ball.dismissal else ""
    if not ball.is_wicket or said.startswith(_NOT_OUT):
        return False
    fallen = before.ball.inning_wickets if before is not None and before.innings == one.innings else None
    return fallen is None or ball.inning_wickets is None or ball.inning_wickets > fallen


def code_of(ball: Ball, *, is_wicket: bool) -> str:
    """The ball as scoreboards print it: "4", "1nb", "W"."""
    if is_wicket:
        return "W"
    extras = {"wd": ball.wides, "nb": ball.no_balls, "b": ball.byes, "lb": ball.leg_byes, "pen": ball.penalties}
    return f"{ball.total}{next((mark for mark, runs in extras.items() if runs), '')}"


def _ball(one: Delivery, names: Names, *, is_wicket: bool) -> Event:
    ball = one.ball
    code = code_of(ball, is_wicket=is_wicket)
    kind, _ = ball_kind(code)
    place = None if one.index is None else (one.innings, one.over, one.index)
    return Event(
        id=str(ball.id),
        kind=kind,
        innings=one.innings,
        over=one.label or None,
        ordinal=event_keys.position(*place) if place and one.is_counted else None,
        slot=event_keys.ball(*place) if place else "",
        runs=ball.total,
        is_critical=kind != "other",
        description=_said(ball, names),
        happened_at=parsing.iso_moment(ball.timestamp),
        detail=_detail(ball, code),
    )


def _detail(ball: Ball, code: str) -> dict[str, str | int | float | bool | None]:
    if ball.inning_runs is None or ball.inning_wickets is None:
        return {"ball": code}
    return {"score": f"{ball.inning_runs}/{ball.inning_wickets}", "ball": code}


def _said(ball: Ball, names: Names) -> str:
    title = parsing.plain(ball.title) or " to ".join(
        filter(None, (names.get(ball.bowler_id or 0, ""), names.get(ball.batsman_id or 0, "")))
    )
    words = " ".join(parsing.plain(item.html) for item in ball.words or ())
    return parsing.text(", ".join(filter(None, (title, words.strip()))))


def _dismissal(one: Delivery, names: Names, inning: Inning | None) -> Event:
    ball, number = one.ball, one.ball.inning_wickets
    player, text = _out(ball, names, inning)
    return Event(
        id=f"{ball.id}:w",
        kind="dismissal",
        innings=one.innings,
        over=one.label or None,
        slot=event_keys.wicket(one.innings, number) if number else "",
        description=parsing.text(f"{player} {text}"),
        happened_at=parsing.iso_moment(ball.timestamp),
        detail={"player": player, "text": text, "wicket": number},
    )


def _out(ball: Ball, names: Names, inning: Inning | None) -> tuple[str, str]:
    """Who is out, and how: the commentary says it, else the scorecard of the innings."""
    card = next((one for one in (inning.batsmen if inning else None) or () if one.player.id == ball.out_id), None)
    said = ball.dismissal or (card.dismissal if card else None)
    return names.get(ball.out_id or 0, ""), parsing.plain(said.long or said.short, 200) if said else ""


def _over_end(one: Delivery) -> Event:
    end = one.ball.over_end
    assert end is not None
    score = "" if end.total_runs is None or end.total_wickets is None else f"{end.total_runs}/{end.total_wickets}"
    return Event(
        id=f"{one.ball.id}:o",
        kind="over_complete",
        innings=one.innings,
        over=str(one.over + 1),
        slot=event_keys.over_end(one.innings, one.over),
        runs=end.runs,
        is_critical=False,
        description=f"End of over {one.over + 1}: {score}".rstrip(": "),
        happened_at=parsing.iso_moment(one.ball.timestamp),
        detail={"score": score} if score else {},
    )
