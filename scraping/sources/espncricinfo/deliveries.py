"""The deliveries of a page: their positions, the gaps in the list, and the events that they make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from scraping import event_keys
from scraping.payloads import Event
from scraping.sources import cricket, parsing
from scraping.sources.espncricinfo.schemas import Ball, Commentary, DismissalText, Inning

Names = Mapping[int, str]  # by the site's own number of a player
_OUT = 1  # in the fall of wickets, where batters who retire hurt may be too
_NOT_OUT = ("retired hurt", "retired not out", "retired ill", "not out", "absent")


@dataclass(frozen=True)
class PlayedInnings:
    """The innings that have begun, numbered through the match: the site may number super overs anew."""

    by_number: Mapping[int, Inning]
    regular: int  # how many are no super overs

    def number_of(self, ball: Ball) -> int:
        """Returns the innings of a ball; of two with one number the later is the super over, which has one over."""
        numbers = [number for number, one in self.by_number.items() if one.number == ball.inning]
        return numbers[0 if ball.over > 1 else -1] if numbers else ball.inning


@dataclass(frozen=True)
class Delivery:
    ball: Ball
    innings: int  # from 1 over the whole match, super overs too
    over: int  # completed overs before it
    index: int | None  # its place within the over, from 1, wides and no-balls counted
    has_commentary: bool  # it comes from the commentary, with a text
    is_counted: bool = True  # there is no hole between it and the newest of its list
    afterwards: Ball | None = None  # a row of its own for a batter who was timed out or retired after the ball

    @property
    def label(self) -> str:
        """Returns a label like "11.5", the fifth ball after 11 overs; a wide has that of the ball that replaces it."""
        actual = self.ball.actual
        return "" if actual is None else f"{self.over}.{max(round((actual - self.over) * 10), 0)}"


def deliveries(played: PlayedInnings, commentary: Commentary) -> list[Delivery]:
    found: dict[int, Delivery] = {}
    for number, inning in played.by_number.items():
        for over in inning.over_list or ():
            for ball in over.balls or ():
                found[ball.id] = _placed(ball, number, has_commentary=False)
    for ball in (*(commentary.comments or ()), *(commentary.recent or ())):
        found[ball.id] = _placed(ball, played.number_of(ball), has_commentary=True)
    ordered = sorted(found.values(), key=lambda one: (one.innings, one.over, one.ball.id))
    overs = groupby(ordered, key=lambda one: (one.innings, one.over))
    return _counted([one for _, balls in overs for one in _in_order(list(balls))], played.by_number)


def _placed(ball: Ball, innings: int, *, has_commentary: bool) -> Delivery:
    index = ball.number or None
    if index is None and ball.unique is not None:
        index = round((ball.unique - (ball.over - 1)) * 100)  # the tenth ball, 0.10, is written 0.1
    return Delivery(ball, innings, ball.over - 1, index if index and 1 <= index <= 99 else None, has_commentary)


def _in_order(balls: list[Delivery]) -> list[Delivery]:
    """Returns the balls of an over. Where two have the same position, the order of their ids decides."""
    balls = _with_afterwards(balls)
    indexes = [one.index for one in balls]
    if None in indexes:
        return balls
    if len(set(indexes)) == len(indexes):
        return sorted(balls, key=lambda one: one.index or 0)
    placed: list[Delivery] = []
    for one in balls:
        last = placed[-1].index or 0 if placed else 0
        placed.append(one if (one.index or 0) > last else replace(one, index=last + 1))
    return placed


def _with_afterwards(listed: list[Delivery]) -> list[Delivery]:
    """Joins the row of a batter who was timed out or retired with the ball before; it has that ball's position."""
    rows = {one.index: one for one in listed if one.index is not None and _is_afterwards(one.ball)}
    balls: list[Delivery] = []
    for one in listed:
        row = None if one.index is None or _is_afterwards(one.ball) else rows.pop(one.index, None)
        if row is None:
            balls.append(one)
        else:
            wickets = row.ball.inning_wickets or one.ball.inning_wickets
            over_end = one.ball.over_end or row.ball.over_end
            ball = one.ball.model_copy(update={"inning_wickets": wickets, "over_end": over_end})
            balls.append(replace(one, ball=ball, afterwards=row.ball))
    joined = {one.afterwards.id for one in balls if one.afterwards is not None}
    return [one for one in balls if one.ball.id not in joined]


def _is_afterwards(ball: Ball) -> bool:
    return ball.is_wicket and not ball.total and bool(cricket.AFTER_THE_BALL.search(_manner(ball.dismissal)))


def _counted(ordered: list[Delivery], innings: Mapping[int, Inning]) -> list[Delivery]:
    """Marks balls before a gap as not counted, as after the first over; with commentary they are left out."""
    has_commented = any(one.has_commentary for one in ordered)
    found: list[Delivery] = []
    is_joined = True
    for one in reversed(ordered):
        is_next = _follows(one, found[-1], innings) if found else _is_newest(one, innings)
        is_joined = one.has_commentary or (is_joined and is_next)
        found.append(replace(one, is_counted=is_joined))
    return [one for one in reversed(found) if one.is_counted or not has_commented]


def _follows(one: Delivery, other: Delivery, innings: Mapping[int, Inning]) -> bool:
    """Returns whether `other` is the next ball after `one`; after the over's last ball, or where the runs add up."""
    if one.innings != other.innings:
        return _is_newest(one, innings) and (other.innings, other.over, other.index) == (one.innings + 1, 0, 1)
    if one.over == other.over:
        return (one.index or 0) + 1 == (other.index or 0)
    ball, before, after = one.ball, one.ball.inning_runs, other.ball.inning_runs
    played = innings.get(one.innings)
    ends_over = one.label.endswith(f".{played.per_over if played else 6}") and not ball.wides and not ball.no_balls
    adds_up = before is not None and after is not None and before + other.ball.total == after
    return other.over == one.over + 1 and other.index == 1 and (ends_over or adds_up)


def _is_newest(one: Delivery, innings: Mapping[int, Inning]) -> bool:
    """Returns whether it is the newest ball of its innings, whose score is then the innings' score."""
    played = innings.get(one.innings)
    return played is not None and (one.ball.inning_runs, one.ball.inning_wickets) == (played.runs, played.wickets)


def events_of(balls: Sequence[Delivery], names: Names, innings: Mapping[int, Inning]) -> tuple[Event, ...]:
    found: list[Event] = []
    fallen = _fallen(innings)
    before: Delivery | None = None
    for one in balls:
        rows = [one.ball] if one.afterwards is None else [one.ball, one.afterwards]
        out = [row for row in rows if _is_out(row, one.innings, before)]
        event = _ball_event(one, names, is_wicket=one.ball in out)
        found.append(event)
        named = [_dismissed(row, names, innings.get(one.innings)) for row in out]
        wickets = one.ball.inning_wickets
        if named:
            found.append(cricket.dismissal_event(event, wickets, *named[0]))
        if len(named) > 1 and wickets:
            fallen = {(one.innings, wickets - 1): named[0], (one.innings, wickets): named[1]} | fallen
        if one.ball.over_end is not None and one.ball.over_end.is_complete is not False:
            found.append(_over_end(one, event))
        before = one
    per_over = min((one.per_over for one in innings.values()), default=6)
    return tuple(reversed(cricket.with_unnamed_wickets(found, fallen, per_over)))


def _dismissed(ball: Ball, names: Names, inning: Inning | None) -> tuple[str, str]:
    said = ball.dismissal or _on_card(inning, ball.out_id)
    manner = _manner(said)
    return names.get(ball.out_id or 0, "") or _name_in(said, manner), manner


def _on_card(inning: Inning | None, player_id: int | None) -> DismissalText | None:
    cards = (inning.batsmen if inning else None) or ()
    return next((card.dismissal for card in cards if card.player.id == player_id), None)


def _manner(said: DismissalText | None) -> str:
    return parsing.plain(said.long or said.short, 200) if said else ""


def _name_in(said: DismissalText | None, manner: str) -> str:
    """Returns the name before the manner in a comment: "Cy Moss c Vale b Reed". A substitute may be on no list."""
    comment = parsing.plain(said.commentary) if said else ""
    return comment.removesuffix(manner).strip()[:120] if manner and comment.endswith(manner) else ""


def _fallen(innings: Mapping[int, Inning]) -> dict[tuple[int, int], tuple[str, str]]:
    return {
        (number, fall.number): (
            parsing.text(fall.player.long_name, 120),
            _manner(_on_card(inning, fall.player.id)),
        )
        for number, inning in innings.items()
        for fall in inning.falls or ()
        if fall.kind in (None, _OUT)
    }


def _is_out(ball: Ball, innings: int, before: Delivery | None) -> bool:
    """Returns whether the ball brought a wicket; a batter who retires hurt may come back."""
    said = parsing.plain(ball.dismissal.short or ball.dismissal.long).lower() if ball.dismissal else ""
    if not ball.is_wicket or said.startswith(_NOT_OUT):
        return False
    fallen = before.ball.inning_wickets if before is not None and before.innings == innings else None
    return fallen is None or ball.inning_wickets is None or ball.inning_wickets > fallen


def _ball_event(one: Delivery, names: Names, *, is_wicket: bool) -> Event:
    ball = one.ball
    extras = {"wd": ball.wides, "nb": ball.no_balls, "b": ball.byes, "lb": ball.leg_byes, "pen": ball.penalties}
    people = filter(None, (names.get(ball.bowler_id or 0, ""), names.get(ball.batsman_id or 0, "")))
    title = parsing.plain(ball.title) or " to ".join(people)
    text = " ".join(parsing.plain(item.html) for item in ball.texts or ()).strip()
    has_score = ball.inning_runs is not None and ball.inning_wickets is not None
    return cricket.ball_event(
        str(ball.id),
        "W" if is_wicket else f"{ball.total}{next((mark for mark, runs in extras.items() if runs), '')}",
        (one.innings, one.over, one.index),
        label=one.label or None,
        runs=ball.total,
        score=f"{ball.inning_runs}/{ball.inning_wickets}" if has_score else "",
        description=parsing.text(", ".join(filter(None, (title, text)))),
        happened_at=parsing.iso_moment(ball.timestamp),
        is_counted=one.is_counted,
    )


def _over_end(one: Delivery, ball: Event) -> Event:
    end = one.ball.over_end
    assert end is not None
    score = "" if end.total_runs is None or end.total_wickets is None else f"{end.total_runs}/{end.total_wickets}"
    return Event(
        id=f"{ball.id}:o",
        kind="over_complete",
        innings=one.innings,
        over=str(one.over + 1),
        slot=event_keys.over_end(one.innings, one.over),
        runs=end.runs,
        is_critical=False,
        description=f"End of over {one.over + 1}: {score}".rstrip(": "),
        happened_at=ball.happened_at,
        detail={"score": score} if score else {},
    )
