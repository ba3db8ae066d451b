"""The match cards of the status page: live matches, the next to start, the last to end."""

import zlib
from datetime import datetime
from typing import Any

from django.db.models import F, Prefetch

from scraping.documents.cached_match import CachedMatch
from scraping.documents.freshness import DataState
from scraping.models import Match, MatchLifecycle, MatchRef
from scraping.payloads import Status
from scraping.policies.ladder import Rung
from victoryline.lib.times import as_utc_iso

MAX_LIVE = 400
MAX_UPCOMING = 24
MAX_FINISHED = 24
HUES = 12
PARTIAL_TEXT = "Some details could not be read"
PHASES = {
    "innings_break": "Innings break",
    "extra_time": "Extra time",
    "halftime": "Half-time",
    "lunch": "Lunch",
    "tea": "Tea",
    "drinks": "Drinks",
    "stumps": "Stumps",
    "rain": "Rain",
    "interrupted": "Interrupted",
    "penalties": "Penalties",
    "postponed": "Postponed",
}


def shown_matches() -> list[Match]:
    """Returns matches with everything that `card` needs, so that it works later without the database."""
    refs = MatchRef.objects.select_related("source").defer("payload", "source__metadata")
    shown = (
        Match.objects.public()
        .exclude(lifecycle=MatchLifecycle.ARCHIVED)
        .defer("provenance")
        .prefetch_related(Prefetch("refs", queryset=refs.order_by("-source__precedence_weight", "pk")))
    )
    live, upcoming = shown.filter(status=Status.LIVE), shown.filter(status=Status.UPCOMING)
    finished = shown.filter(status__in=(Status.COMPLETED, Status.ABANDONED))
    return [
        *live.order_by("importance", "sport", "start_time", "pk")[:MAX_LIVE],
        *upcoming.order_by(F("start_time").asc(nulls_last=True), "pk")[:MAX_UPCOMING],
        *finished.order_by(F("completed_at").desc(nulls_last=True), "-pk")[:MAX_FINISHED],
    ]


def card(match: Match, now: datetime) -> dict[str, Any]:
    refs = list(match.refs.all())
    fresh = CachedMatch.from_row(match).freshness(now)
    payload, is_paused = match.payload, match.lifecycle == MatchLifecycle.PAUSED
    result = str(payload.get("result") or "")
    last_event = str((payload.get("last_event") or {}).get("description") or "")
    has_ended = match.status in (Status.COMPLETED, Status.ABANDONED)
    return {
        "id": match.pk,
        "key": refs[0].key if refs else str(match.pk),
        "sport": match.sport,
        "title": match.title,
        "series": match.series,
        "heading": match.series or match.title,
        "group": {Status.LIVE.value: "live", Status.UPCOMING.value: "upcoming"}.get(match.status, "finished"),
        "status": match.status,
        "phase": match.phase,
        "phase_text": PHASES.get(match.phase, ""),
        "is_play": match.status == Status.LIVE and match.phase not in PHASES,
        "clock": str(payload.get("clock") or ""),
        "teams": [_team(match, "team_a"), _team(match, "team_b")],
        "result": result,
        "last_event": last_event,
        "story": (result or last_event) if has_ended else (last_event or result),
        "moment": _moment(match),
        "age_seconds": _tenths(fresh.age_seconds),
        "age_text": age_text(match, fresh.age_seconds),
        "paused_until": as_utc_iso(match.pause_until) if is_paused and match.pause_until else None,
        "state": fresh.state.value,
        "care": _recovery_text(match) or (PARTIAL_TEXT if fresh.state == DataState.PARTIAL else ""),
        "next_update_in": _tenths(fresh.next_update_in),
        "sequence": match.sequence,
        "scraper_status": match.scraper_status,
        "source": ", ".join(ref.source.name for ref in refs),  # of the highest precedence first
        "start_time": as_utc_iso(match.start_time) if match.start_time else None,
        "updated_at": as_utc_iso(match.last_scraper_update) if match.last_scraper_update else None,
    }


def _recovery_text(match: Match) -> str:
    """Returns the recovery step of a silent match; empty once it was read again."""
    read, since = match.last_scraper_update, match.silent_since
    is_read = read is not None and since is not None and read > since
    return "" if is_read else Rung(match.silence_rung).public_text


def age_text(match: Match, age: float | None) -> str:
    if age is None:
        read = "not read yet"
    elif age < 60:
        read = "just now" if age < 1 else f"{age:.0f} s ago"
    else:
        read = f"{age // 60:.0f} min ago" if age < 3600 else f"{age // 3600:.0f} h ago"
    if match.lifecycle == MatchLifecycle.PAUSED:
        end = f"paused until {match.pause_until:%H:%M} UTC" if match.pause_until else "paused"
        return f"{end}, not read yet" if age is None else f"{end}, read {read}"
    if match.status == Status.LIVE:
        return read
    return "waiting" if match.status == Status.UPCOMING else "final"


def _moment(match: Match) -> str:
    if match.status == Status.LIVE:
        clock = str(match.payload.get("clock") or "Live")
        return PHASES.get(match.phase) or (f"{clock}'" if clock[0].isdecimal() else clock)
    if match.status == Status.UPCOMING:
        return PHASES.get(match.phase) or (f"{match.start_time:%d %b, %H:%M} UTC" if match.start_time else "Soon")
    return "Abandoned" if match.status == Status.ABANDONED else "Final"


def _team(match: Match, side: str) -> dict[str, Any]:
    payload = match.payload
    team: dict[str, Any] = (payload.get("teams") or {}).get(side) or {}
    name = str(team.get("name") or getattr(match, side) or "To be decided")
    words = name.split()
    initials = words[0][:3] if len(words) == 1 else "".join(word[0] for word in words[:3])
    whole, main, below = score(payload, side)
    batting = (payload.get("current_innings"), side)
    return {
        "name": name,
        "short_name": str(team.get("short_name") or "") or initials.upper(),
        "score": whole,
        "score_main": main,
        "score_detail": below,
        "is_batting": match.status == Status.LIVE
        and any((turn.get("number"), turn.get("team")) == batting for turn in payload.get("innings") or []),
        "hue": zlib.crc32(name.encode()) % HUES,
    }


def score(payload: dict[str, Any], side: str) -> tuple[str, str, str]:
    """Returns a side's score, its main part, and the small text below the team's name.

    In a Test ("412 & 45/2 (12.1)", "45/2", "412 · 12.1 overs"), in football ("2 (4 pens)", "2", "4 pens").
    """
    value: dict[str, Any] = (payload.get("score") or {}).get(side) or {}
    if (goals := value.get("goals")) is not None:
        pens = "" if value.get("penalties") is None else f"{value['penalties']} pens"
        return f"{goals} ({pens})" if pens else str(goals), str(goals), pens
    turns = [turn for turn in payload.get("innings") or [] if turn.get("team") == side]
    if not turns and value.get("runs") is not None:
        turns = [value]
    if not turns:
        return "", "", ""
    runs, overs = [_runs(turn) for turn in turns], turns[-1].get("overs")
    below = [" & ".join(runs[:-1])] if len(runs) > 1 else []
    below.append(f"{overs} overs" if overs else "")
    return " & ".join(runs) + (f" ({overs})" if overs else ""), runs[-1], " · ".join(below)


def _tenths(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def _runs(turn: dict[str, Any]) -> str:
    wickets = turn.get("wickets")
    return str(turn.get("runs")) if wickets in (None, 10) else f"{turn.get('runs')}/{wickets}"
