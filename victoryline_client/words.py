"""A match in words, for people. Pure. Whatever came from outside is cleaned: a terminal obeys what it is sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from victoryline_client.answers import Answer, Freshness
from victoryline_client.errors import ClientError, Problem, clean

SIDES = ("team_a", "team_b")
USUAL_PHASES = ("", "play", "scheduled", "finished")  # which the status tells already


def title_words(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata") or {}
    parts = (document.get("title"), metadata.get("series"), document.get("venue"))
    return " · ".join(text for text in map(clean, parts) if text)


def score_words(document: Mapping[str, Any], *, is_short: bool = False) -> str:
    """India 187/5 (20.0) v Australia 95/3 (12.3); Arsenal 2 v Chelsea 1, 67'. Short: with IND and AUS."""
    teams, score = document.get("teams") or {}, document.get("score") or {}
    if not any(teams.get(side) for side in SIDES):
        return clean(document.get("title")) or "a match without a name"
    words = " v ".join(_side(teams.get(side) or {}, score.get(side) or {}, is_short=is_short) for side in SIDES)
    clock = clean(document.get("clock"), 12)
    return f"{words}, {clock}'" if clock.replace("+", "").isdigit() else words


def _side(team: Mapping[str, Any], score: Mapping[str, Any], *, is_short: bool) -> str:
    names = [team.get("name"), team.get("short_name")]
    name = clean(next(filter(None, reversed(names) if is_short else names), "?"), 40)
    if score.get("goals") is not None:
        shootout = f" ({score['penalties']} pens)" if score.get("penalties") is not None else ""
        return f"{name} {clean(score['goals'])}{clean(shootout)}"
    if score.get("runs") is None:
        return name
    wickets = f"/{score['wickets']}" if score.get("wickets") is not None else ""
    overs = f" ({score['overs']})" if score.get("overs") else ""
    return f"{name} {clean(score['runs'])}{clean(wickets)}{' ' + clean(overs) if overs else ''}"


def standing_words(document: Mapping[str, Any]) -> str:
    """Live, lunch; completed: India won by 5 wickets."""
    status, phase = clean(document.get("status")), clean(document.get("phase"))
    words = status if phase in (*USUAL_PHASES, status) else f"{status}, {phase.replace('_', ' ')}"
    result = clean(document.get("result"), 120)
    return f"{words}: {result}" if result else words


def age_words(seconds: float | None) -> str:
    if seconds is None:
        return "never read"
    whole = int(seconds)
    if whole < 120:
        return f"{whole} s old"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60} s old"
    return f"{whole // 3600} h {whole % 3600 // 60} min old"


def freshness_words(freshness: Freshness) -> str:
    """Fresh, 3 s old, next in 2 s. What is final does not age."""
    if freshness.is_final:
        return "final"
    words = f"{clean(freshness.state)}, {age_words(freshness.age_now())}"
    if freshness.is_from_cache:
        words += ", from the server's memory"
    wait = freshness.next_update_now()
    if wait is None:
        return words
    return f"{words}, next in {wait:.0f} s" if wait >= 0.5 else f"{words}, next any moment"


def status_words(document: Mapping[str, Any], freshness: Freshness) -> str:
    return f"{score_words(document)} · {standing_words(document)} · {freshness_words(freshness)}"


def status_line(document: Mapping[str, Any], freshness: Freshness, width: int) -> str:
    """The same on one line. Where that is narrow all else gives way: no score without its age."""
    score, standing, fresh = score_words(document, is_short=True), standing_words(document), freshness_words(freshness)
    age = fresh if freshness.is_final else f"{clean(freshness.state)}, {age_words(freshness.age_now())}"
    for line in (status_words(document, freshness), f"{score} · {standing} · {fresh}", f"{score} · {fresh}"):
        if len(line) <= width:
            return line
    room = max(0, width - len(f" · {age}"))
    return f"{score if len(score) <= room else score[: max(0, room - 1)] + '…'} · {age}"[-width:]


def place_in_match(row: Mapping[str, Any]) -> tuple[int, tuple[int, ...], int]:
    """Orders events as they happened. The feed has them as they were learned: of a match that is found late, all at
    once, and its newest first where the source tells it so."""
    numbers = re.findall(r"\d+", str(row.get("over") or row.get("minute") or ""))
    return row.get("innings") or 0, tuple(int(number[:9]) for number in numbers), row["id"]


def event_words(row: Mapping[str, Any]) -> str:
    """12.3 wicket: Smith c Kohli b Bumrah; corrected: ...; taken back: ..."""
    where = clean(row.get("over") or (f"{row['minute']}'" if row.get("minute") else ""), 12)
    kind = clean(row.get("kind"), 40).replace("_", " ")
    what = clean(row.get("description")) or _runs(row.get("runs"))
    words = f"{where:>6}  {kind}" + (f": {what}" if what and what != kind else "")
    before = {"update": "corrected: ", "retract": "taken back: "}.get(str(row.get("action")), "")
    reason = clean(row.get("reason"), 120)
    return before + (words.strip() if before else words) + (f" ({reason})" if before and reason else "")


def _runs(runs: object) -> str:
    return "" if runs is None else f"{clean(runs)} run{'' if runs == 1 else 's'}"


def trouble_words(error: ClientError) -> str:
    told = f"No answer now: {clean(error.detail or error.title)}" if isinstance(error, Problem) else clean(error)
    return f"{told.rstrip('.')}. What you see is what was known last; asking again."


def list_words(found: Answer) -> str:
    keys = found.data.get("keys") or ()
    name = clean(keys[0] if keys else found.data.get("id"), 40)
    return f"{name:<20} {status_words(found.data, found.freshness)}"
