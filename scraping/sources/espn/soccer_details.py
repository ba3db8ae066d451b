"""Goals, cards and kicks of a football match: what `details` lists, in the order in which it happened."""

from __future__ import annotations

import re
from collections import Counter

from scraping import event_keys
from scraping.payloads import Event
from scraping.sources import parsing
from scraping.sources.espn.soccer_answers import Detail
from scraping.sources.espn.soccer_status import minute_of
from scraping.sources.parsing import note_unrecognized

_MISSED = re.compile(r"penalty.*(?:miss|saved|no goal|blocked)", re.IGNORECASE)
_SUBSTITUTION = re.compile(r"substitut", re.IGNORECASE)
_VAR = re.compile(r"\bvar\b", re.IGNORECASE)
_SCORED = re.compile(r"scored|goal", re.IGNORECASE)
_OTHER_SIDE = {"team_a": "team_b", "team_b": "team_a"}
_WORDS = {
    "goal": "Goal",
    "penalty_goal": "Penalty goal",
    "own_goal": "Own goal",
    "yellow_card": "Yellow card",
    "red_card": "Red card",
    "substitution": "Substitution",
    "var": "VAR",
    "penalty_missed": "Penalty missed",
    "shootout_goal": "Shoot-out, scored",
    "shootout_miss": "Shoot-out, missed",
}
GOALS = frozenset({"goal", "penalty_goal", "own_goal"})
_KICKS = frozenset({"shootout_goal", "shootout_miss"})


def events_of(details: list[Detail], sides: dict[str, str], goals: tuple[int, int]) -> tuple[Event, ...]:
    """Newest first. `sides`: our name of a side by the source's id of its team; `goals`: the score."""
    told = [(detail, kind_of(detail), _side(detail, sides)) for detail in details]
    if goals_in(told) != goals and goals_in(flipped := _own_goals_flipped(told)) == goals:
        told = flipped  # this list gives an own goal to the side of the player who scored it
    counts: Counter[tuple[str, str]] = Counter()
    ids: Counter[str] = Counter()
    found: list[Event] = []
    for detail, kind, side in told:
        group = "goal" if kind in GOALS else "kick" if kind in _KICKS else ""
        counts[group, side] += 1
        slot = _slot(detail, kind, side, counts[group, side])
        if slot and any(slot == event.slot for event in found):
            slot = ""  # a second yellow card is the same player's red one
        identity = _id(detail, kind)
        ids[identity] += 1
        unique = identity if ids[identity] == 1 else f"{identity}:{ids[identity]}"
        found.append(_event(detail, kind, side, slot, unique))
    return tuple(reversed(found))


def goals_in(told: list[tuple[Detail, str, str]]) -> tuple[int, int]:
    sides = [side for _, kind, side in told if kind in GOALS]
    return sides.count("team_a"), sides.count("team_b")


def kind_of(detail: Detail) -> str:
    text = detail.type.text
    if detail.shootout:
        is_goal = detail.scoring_play or (bool(_SCORED.search(text)) and not _MISSED.search(text))
        return "shootout_goal" if is_goal else "shootout_miss"
    if detail.red_card:
        return "red_card"
    if detail.yellow_card:
        return "yellow_card"
    if detail.scoring_play:
        return "own_goal" if detail.own_goal else "penalty_goal" if detail.penalty_kick else "goal"
    for pattern, kind in ((_MISSED, "penalty_missed"), (_SUBSTITUTION, "substitution"), (_VAR, "var")):
        if pattern.search(text):
            return kind
    note_unrecognized("details[].type.text", text)
    return "other"


def _own_goals_flipped(told: list[tuple[Detail, str, str]]) -> list[tuple[Detail, str, str]]:
    return [(detail, kind, _OTHER_SIDE.get(side, "") if kind == "own_goal" else side) for detail, kind, side in told]


def _side(detail: Detail, sides: dict[str, str]) -> str:
    return sides.get(detail.team.id, "") if detail.team else ""


def _slot(detail: Detail, kind: str, side: str, number: int) -> str:
    who = _names(detail)
    if not side:
        return ""
    if kind in GOALS:
        return event_keys.goal(side, number)
    if kind in _KICKS:
        return event_keys.shootout_kick(side, number)
    if kind in ("yellow_card", "red_card"):
        return event_keys.card(side, kind.partition("_")[0], who[0]) if who else ""
    if kind == "substitution":
        return event_keys.substitution(side, who[1]) if len(who) > 1 else ""
    return ""


def _id(detail: Detail, kind: str) -> str:
    """Made of what the source says of it: kind, team, time, player. It gives no id."""
    team = detail.team.id if detail.team else ""
    who = detail.athletes[0].id if detail.athletes else ""
    clock = detail.clock
    when = clock.display_value or ("" if clock.value is None else f"{clock.value:g}")
    return parsing.text(f"{kind}:{team}:{when}:{who or ''}", 110)


def _event(detail: Detail, kind: str, side: str, slot: str, identity: str) -> Event:
    who, minute = _names(detail), minute_of(detail.clock.display_value)
    found: dict[str, str | int | float | bool | None] = {"team": side} if side else {}
    if kind == "substitution":
        found |= dict(zip(("player_in", "player_out"), who, strict=False))
    elif who:
        found["player"] = who[0]
        if kind in GOALS and len(who) > 1:
            found["assist"] = who[1]
    found["class"] = parsing.plain(detail.type.text, 60)
    head = f"{_WORDS.get(kind) or parsing.plain(detail.type.text, 60)}{f' {minute}' + chr(39) if minute else ''}"
    body = " for ".join(who[:2]) if kind == "substitution" else who[0] if who else ""
    return Event(
        id=identity,
        kind=kind,
        minute=minute,
        slot=slot,
        is_critical=kind != "other",
        description=parsing.text(f"{head}: {body}" if body else head) or kind,
        detail=found,
    )


def _names(detail: Detail) -> list[str]:
    return [name for one in detail.athletes if (name := parsing.plain(one.display_name, 120))]
