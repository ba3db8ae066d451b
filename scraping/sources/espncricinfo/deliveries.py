"""The deliveries of a page: their positions, the gaps in the list, and the events that they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from scraping import event_keys
from scraping.payloads import Event, LastEvent
from scraping.sources import cricket, parsing
from scraping.sources.cricket import ball_kind
from scraping.sources.espncricinfo.schemas import Ball, Commentary, Inning

OVER = 6
Names = Mapping[int, str]  # by the site's own number of a player
_NOT_OUT = ("retired hurt", "retired not out", "retired ill", "not out", "absent")


@dataclass(frozen=True)
class Delivery:
    """A ball with its position in the match."""

    ball: Ball
    innings: int  # from 1 over the whole match, super overs too
    over: int  # completed overs before it
    index: int | None  # its place within the over, from 1, wides and no-balls counted
    has_commentary: bool  # it comes from the commentary, with a text
    is_counted: bool = True  # there is no hole between it and the newest of its list

    @property
    def place(self) -> tuple[int, int, int]:
        return self.innings, self.over, self.index or 0

    @property
    def label(self) -> str:
        """Returns a label like "11.5", the fifth ball after 11 overs; a wide has that of the ball that replaces it."""
        actual = self.ball.actual
        if actual is None:
            return ""
        return f"{self.over}.{max(round((actual - self.over) * 10), 0)}"

    @property
    def is_legal(self) -> bool:
        return not self.ball.wides and not self.ball.no_balls

    @property
    def ends_over(self) -> bool:
        return self.is_legal and self.label.endswith(f".{OVER}")


@dataclass(frozen=True)
class Numbering:
    """The number of each innings within the match. The site may number super overs anew."""

    innings: Sequence[Inning]
    super_overs: Sequence[Inning]

    @property
    def numbered(self) -> list[tuple[int, Inning]]:
        return list(enumerate((*self.innings, *self.super_overs), start=1))

    def of(self, stated: int) -> int:
        """Returns the innings of a ball of the commentary: of two with the same number the later one."""
        return next((number for number, one in reversed(self.numbered) if one.number == stated), stated)


def numbering(innings: Iterable[Inning], super_overs: Iterable[Inning]) -> Numbering:
    def in_order(listed: Iterable[Inning]) -> list[Inning]:
        return sorted((one for one in listed if is_played(one)), key=lambda one: one.number)

    return Numbering(in_order(innings), in_order(super_overs))


def is_played(inning: Inning) -> bool:
    """Returns whether the innings has begun: some pages also list the innings to come."""
    return inning.is_batted is not False and inning.runs is not None


def deliveries(numbers: Numbering, commentary: Commentary) -> list[Delivery]:
    """Returns every ball of the page once, oldest first, preferably with its commentary."""
    found: dict[int, Delivery] = {}
    for number, inning in numbers.numbered:
        for over in inning.over_list or ():
            for ball in over.balls or ():
                found[ball.id] = _placed(ball, number, has_commentary=False)
    recent = commentary.recent.balls if commentary.recent else None
    for ball in (*(commentary.comments or ()), *(recent or ())):
        found[ball.id] = _placed(ball, numbers.of(ball.inning), has_commentary=True)
    ordered = sorted(found.values(), key=lambda one: (*one.place[:2], one.ball.id))
    overs = groupby(ordered, key=lambda one: one.place[:2])
    return _counted([one for _, balls in overs for one in _in_order(list(balls))], dict(numbers.numbered))


def _placed(ball: Ball, innings: int, *, has_commentary: bool) -> Delivery:
    index = ball.number or None
    if index is None and ball.unique is not None:
        index = round((ball.unique - (ball.over - 1)) * 100)  # the tenth ball, 0.10, is written 0.1
    return Delivery(ball, innings, ball.over - 1, index if index and 1 <= index <= 99 else None, has_commentary)


def _in_order(balls: list[Delivery]) -> list[Delivery]:
    """Returns the balls of an over. Where two have the same position, the order of their ids decides."""
    indexes = [one.index for one in balls]
    if None in indexes:
        return balls
    if len(set(indexes)) == len(indexes):
        return sorted(balls, key=lambda one: one.place)
    placed: list[Delivery] = []
    for one in balls:
        last = placed[-1].index or 0 if placed else 0
        placed.append(one if (one.index or 0) > last else replace(one, index=last + 1))
    return placed


def _counted(ordered: list[Delivery], innings: Mapping[int, Inning]) -> list[Delivery]:
    """Marks balls before a gap as not counted: a page has the first over of an innings, and nothing of the rest.

    Where the page has commentary, such balls are left out.
    """
    has_commented = any(one.has_commentary for one in ordered)
    found: list[Delivery] = []
    is_joined = True
    for one in reversed(ordered):
        is_next = follows(one, found[-1], innings) if found else is_newest(one, innings)
        is_joined = one.has_commentary or (is_joined and is_next)
        found.append(replace(one, is_counted=is_joined))
    return [one for one in reversed(found) if one.is_counted or not has_commented]


def follows(one: Delivery, other: Delivery, innings: Mapping[int, Inning]) -> bool:
    """Returns whether `other` is the next ball after `one`."""
    if one.innings != other.innings:
        return is_newest(one, innings) and other.place == (one.innings + 1, 0, 1)
    if one.over == other.over:
        return (one.index or 0) + 1 == (other.index or 0)
    return other.over == one.over + 1 and other.index == 1 and (one.ends_over or _adds_up(one, other))


def is_newest(one: Delivery, innings: Mapping[int, Inning]) -> bool:
    """Returns whether it is the newest ball of its innings, whose score is then the innings' score."""
    played = innings.get(one.innings)
    return played is not None and (one.ball.inning_runs, one.ball.inning_wickets) == (played.runs, played.wickets)


def _adds_up(one: Delivery, other: Delivery) -> bool:
    before, after = one.ball.inning_runs, other.ball.inning_runs
    return before is not None and after is not None and before + other.ball.total == after


def events_of(balls: Sequence[Delivery], names: Names, innings: Mapping[int, Inning]) -> tuple[Event, ...]:
    """Returns the events, newest first."""
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
    return tuple(reversed(cricket.with_unnamed_wickets(found)))


def last_event_of(events: Sequence[Event]) -> LastEvent | None:
    """Returns the newest counted ball: a scorecard always shows the first over of an innings."""
    newest = next((event for event in events if event.ordinal is not None), None)
    if newest is None:
        return None
    return LastEvent(type=newest.kind, description=newest.description, timestamp=newest.happened_at)


def is_out(one: Delivery, before: Delivery | None) -> bool:
    """Returns whether the ball brought a wicket; a batter who retires hurt may come back."""
    ball = one.ball
    said = parsing.plain(ball.dismissal.short or ball.dismissal.long).lower() if ball.dismissal else ""
    if not ball.is_wicket or said.startswith(_NOT_OUT):
        return False
    fallen = before.ball.inning_wickets if before is not None and before.innings == one.innings else None
    return fallen is None or ball.inning_wickets is None or ball.inning_wickets > fallen


def code_of(ball: Ball, *, is_wicket: bool) -> str:
    """Returns the code of the ball as scoreboards print it: "4", "1nb", "W"."""
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
    text = " ".join(parsing.plain(item.html) for item in ball.texts or ())
    return parsing.text(", ".join(filter(None, (title, text.strip()))))


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
    """Returns the player and the manner of the dismissal, from the commentary or the scorecard of the innings."""
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
