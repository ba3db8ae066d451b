"""The page of one match beside the status page: score card, events, sources, and the ages of its data over time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cachetools import TTLCache, cached
from django.http import Http404

from monitoring.health.match_cards import card
from monitoring.models import HealthLog
from scraping.documents.queries import find_match
from scraping.models import Match, MatchEvent, MatchRef
from scraping.payloads import Sport

MAX_EVENTS = 40
AGES_OVER = timedelta(hours=1)
MAX_SAMPLES = 240
WIDTH, HEIGHT = 600, 80  # of the drawing of ages
LEAST_SCALE_SECONDS = 10.0
KEPT_SECONDS = 1.0  # many visitors of one match cost the queries of one
MAX_KEPT = 200


@dataclass(frozen=True)
class Ages:
    """The ages of one source's data over the last hour, as points of a line."""

    source: str
    points: str
    oldest_seconds: int
    now_seconds: int


@cached(TTLCache(MAX_KEPT, KEPT_SECONDS), key=lambda name, now: name)
def match_page(name: str, now: datetime) -> dict[str, Any]:
    """Returns the values of the page; raises Http404 for an unknown match."""
    match = find_match(name)
    if match is None:
        raise Http404
    refs = list(match.refs.all())
    return {
        "match": card(match, now),
        "innings": _innings(match),
        "facts": _facts(match),
        "events": _events(match),
        "sources": [_source(ref, now) for ref in refs],
        "ages": [ages for ref in refs if (ages := _ages(ref, now))],
        "scale": {"width": WIDTH, "height": HEIGHT},
    }


def _innings(match: Match) -> list[dict[str, Any]]:
    """Returns the innings of cricket, the latest first; in football the card shows the whole score."""
    teams = match.payload.get("teams") or {}
    return [
        {**turn, "team": (teams.get(turn["team"]) or {}).get("name") or getattr(match, turn["team"], "")}
        for turn in reversed(match.payload.get("innings") or [])
    ]


def _facts(match: Match) -> list[tuple[str, str]]:
    payload = match.payload
    toss = payload.get("toss") or {}
    facts = (
        ("Venue", payload.get("venue")),
        ("Toss", f"{toss['winner']} chose to {toss['decision']}" if toss.get("decision") else toss.get("winner")),
        ("Start", f"{match.start_time:%d %b %Y, %H:%M} UTC" if match.start_time else ""),
        ("Result", payload.get("result")),
    )
    return [(name, str(value)) for name, value in facts if value]


def _events(match: Match) -> list[dict[str, Any]]:
    rows = MatchEvent.objects.filter(match=match, is_current=True, is_served=True).exclude(action="retract")
    is_football = match.sport == Sport.FOOTBALL
    newest = list(rows.order_by("-pk")[:MAX_EVENTS])
    if is_football:  # the events before the first reading were written in the order of the source's list
        newest.sort(key=lambda row: _minute(row.minute), reverse=True)
    return [
        {
            "mark": f"{row.minute}'" if is_football and row.minute else row.over or row.minute,
            "text": row.description or row.kind.replace("_", " "),
            "is_critical": row.is_critical and row.kind not in ("ball", "run", "dot"),
            "is_corrected": row.shown_revision > 1,
        }
        for row in newest
    ]


def _minute(text: str) -> tuple[int, int]:
    """Returns minute and added time of "45+2"; events without a minute, as of a shoot-out, are the last."""
    minute, _, added = text.partition("+")
    return (int(minute), int(added) if added.isdecimal() else 0) if minute.isdecimal() else (1000, 0)


def _source(ref: MatchRef, now: datetime) -> dict[str, Any]:
    return {
        "name": ref.source.name,
        "key": ref.key,
        "read_at": ref.captured_at,
        "pace": f"every {ref.polling_interval_seconds:g} s" if ref.is_watched else "not watched",
        "mode": ref.read_mode.replace("_", " ") or "-",
    }


def _ages(ref: MatchRef, now: datetime) -> Ages | None:
    since = now - AGES_OVER
    rows = HealthLog.objects.filter(match_id=ref.key, timestamp__gt=since, timestamp__lte=now)
    samples = rows.order_by("-timestamp").values_list("timestamp", "last_update_age_seconds")[:MAX_SAMPLES]
    known = [(at, age) for at, age in samples if age is not None]
    if len(known) < 2:
        return None
    top = max(LEAST_SCALE_SECONDS, *(age for _, age in known))
    points = (f"{WIDTH * ((at - since) / AGES_OVER):.1f},{HEIGHT * (1 - age / top):.1f}" for at, age in reversed(known))
    return Ages(ref.source.name, " ".join(points), max(age for _, age in known), known[0][1])
