"""The ball feed: one item for each delivery, wicket and finished over."""

from __future__ import annotations

from bisect import bisect_left
from operator import itemgetter
from typing import Any

from stadium.cricket.generator import dismissal_text
from stadium.cricket.innings import Innings
from stadium.cricket.script import Ball, CricketEvent, Notice, OverCard, WicketCard
from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.sites.crex.ball_codes import code, dismissal_number

PAGE_SIZE = 20


def feed_item(match: Match, event: CricketEvent, state: CricketState, identity: int) -> dict[str, Any] | None:
    if isinstance(event, Notice):
        return None
    ball = event if isinstance(event, Ball) else event.ball
    innings = state.innings[ball.innings]
    common = {
        "id": identity,
        "mfkey": match.key,
        "inning": ball.innings,
        "on": ball.over,
        "bf": ball.bowler.key,
        "bowl_tfkey": innings.bowling.key,
        "sh": 1,
        "hideSpecialCard": False,
    }
    if isinstance(event, OverCard):
        return common | _over(ball, innings)
    return common | (_wicket(event, innings) if isinstance(event, WicketCard) else _ball(match, ball, innings))


def feed_page(items: list[dict[str, Any]], before: int | None, size: int = PAGE_SIZE) -> list[dict[str, Any]]:
    """Returns a page, newest first; with `before` only items older than that id."""
    end = len(items) if before is None else bisect_left(items, before, key=itemgetter("id"))
    return items[max(end - size, 0) : end][::-1]


def _ball(match: Match, ball: Ball, innings: Innings) -> dict[str, Any]:
    return {
        "type": "b",
        "fv": {4: 8, 6: 4}.get(ball.runs, 2),
        "b": code(ball),
        "o": ball.label,
        "s": innings.score,
        "c1": f"{ball.bowler.name} to {ball.striker.name}",
        "c2": describe(ball),
        "pf": ball.striker.key,
        "bat_team_fkey": innings.batting.key,
        "delivery": ball.delivery,
        "ball_db_id": f"{50_000 + match.number}-{ball.delivery - 1}",
        "connect": "NA",
        "shot_type": "NA",
        "wagon_w": "NA",
        "is_catch_drop": False,
    }


def _wicket(card: WicketCard, innings: Innings) -> dict[str, Any]:
    ball, wicket = card.ball, card.wicket
    fall = next(fall for fall in reversed(innings.falls) if fall.wicket == wicket)
    out, (head, tail) = wicket.out, dismissal_text(ball, wicket)
    short_head, short_tail = dismissal_text(ball, wicket, surnames=True)
    line = innings.batters[out.key]
    return {
        "type": "w", "fv": 64, "o": ball.label, "i": ball.innings, "c": "",
        "dismissal": dismissal_number(wicket), "wn": fall.number,
        "pf": out.key, "player_fkey": out.key, "player": out.short, "player_s_name": out.short,
        "player_fullname": out.name, "n": out.name, "link": f"/player/{out.slug}-{out.key}",
        "r": line.runs, "b": line.balls, "f": line.fours, "s": line.sixes,
        "sr": f"{line.runs * 100 / line.balls:.2f}" if line.balls else "0.00",
        "tf": innings.batting.key,
        "wicketDesc": f"{head} {tail}".strip(), "wicketDesc1": short_head, "wicketDesc2": short_tail,
    }  # fmt: skip


def _over(ball: Ball, innings: Innings) -> dict[str, Any]:
    over, bowler = innings.overs[-1], innings.bowlers[ball.bowler.key]
    lines = [innings.batters[player.key] for player in innings.crease]
    outs = [wicket.out.key for ball in over.balls for wicket in ball.wickets if wicket.counts]
    item: dict[str, Any] = {
        "type": "o", "fv": 32, "o": over.number, "runs": over.runs, "rb": ".".join(map(code, over.balls)),
        "s": over.total, "bowler": ball.bowler.name, "bd": f"{bowler.wickets}-{bowler.runs}({bowler.overs})",
        "team": innings.batting.name, "tfkey": innings.batting.key,
    }  # fmt: skip
    for place, line in enumerate(lines, start=1):
        item[f"p{place}"] = line.player.name
        item[f"pf{place}"] = line.player.key
        item[f"s{place}"] = f"{line.runs}({line.balls})"
    if outs:
        item |= {"ow": len(outs), "owd": [{"pf": key, "tfkey": innings.batting.key} for key in outs]}
    return item


def describe(ball: Ball) -> str:
    """Commentary text with the site's HTML tags."""
    if ball.wicket:
        head, tail = dismissal_text(ball)
        return f"<b>OUT!</b> {ball.wicket.out.name} {head} {tail}".strip()
    if ball.extra:
        name = {"wd": "wide", "nb": "no ball", "b": "byes", "lb": "leg byes", "pen": "penalty runs"}[ball.extra]
        return f"{ball.total} {name}"
    return {0: "No run", 4: "<b>FOUR!</b> To the rope", 6: "<b>SIX!</b> Into the stand"}.get(
        ball.runs, f"{ball.runs} run"
    )
