"""Factories of database rows: a test passes only the fields that matter to it. Times are NOW by default."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

from scraping.models import EventAction, Match, MatchEvent, MatchLifecycle, MatchRef, Scraper, Snapshot, Source
from scraping.payloads import Innings, MatchState, Phase, Score, SideScore, Sport, Status, Team, Teams

NOW = datetime(2026, 1, 10, 12, 0, 0, tzinfo=UTC)
_numbers = itertools.count(1)


def make_source(key: str = "crex", **fields: Any) -> Source:
    """Returns the source with this key; creates it the first time."""
    sport = "football" if key == "sofascore" else "cricket"
    defaults = {"name": key.title(), "sport": sport, "base_url": f"https://{key}.example", **fields}
    return Source.objects.get_or_create(key=key, defaults=defaults)[0]


def cricket_state(**fields: Any) -> MatchState:
    """India 187/5 against Australia 95/3, in play."""
    state = MatchState(
        sport=Sport.CRICKET,
        title="India vs Australia",
        status=Status.LIVE,
        phase=Phase.PLAY,
        teams=Teams(team_a=Team(name="India", short_name="IND"), team_b=Team(name="Australia", short_name="AUS")),
        score=Score(
            team_a=SideScore(runs=187, wickets=5, overs="20.0"), team_b=SideScore(runs=95, wickets=3, overs="12.3")
        ),
        innings=(
            Innings(number=1, team="team_a", runs=187, wickets=5, overs="20.0"),
            Innings(number=2, team="team_b", runs=95, wickets=3, overs="12.3"),
        ),
        current_innings=2,
        metadata={"series": "India tour of Australia"},
    )
    return state.model_copy(update=fields)


def football_state(**fields: Any) -> MatchState:
    """Arsenal 2, Chelsea 1, in play."""
    state = MatchState(
        sport=Sport.FOOTBALL,
        title="Arsenal vs Chelsea",
        status=Status.LIVE,
        phase=Phase.PLAY,
        teams=Teams(team_a=Team(name="Arsenal", short_name="ARS"), team_b=Team(name="Chelsea", short_name="CHE")),
        score=Score(team_a=SideScore(goals=2), team_b=SideScore(goals=1)),
        clock="67",
    )
    return state.model_copy(update=fields)


def make_match(*, state: MatchState | None = None, now: datetime = NOW, **fields: Any) -> Match:
    """A live, active match as ingest would leave it: read at `now`, sequence 1. Has no reference yet."""
    state = state or (football_state() if fields.get("sport") == "football" else cricket_state())
    if "status" in fields:
        state = state.model_copy(update={"status": Status(fields["status"])})
    values: dict[str, Any] = {
        "sport": state.sport,
        "title": state.title,
        "status": state.status,
        "phase": state.phase,
        "lifecycle": MatchLifecycle.ACTIVE,
        "team_a": state.teams.team_a.name,
        "team_b": state.teams.team_b.name,
        "sequence": 1,
        "checksum": state.checksum(),
        "payload": state.model_dump(mode="json"),
        "last_scraper_update": now,
        "last_changed_at": now,
        "start_time": now - timedelta(hours=2),
        "created_at": now - timedelta(hours=3),
    }
    return Match.objects.create(**values | fields)


def make_unread_match(*, now: datetime = NOW, **fields: Any) -> Match:
    """Creates a discovered match that was never read."""
    values: dict[str, Any] = {
        "sport": "cricket",
        "title": "Kenya vs Nepal",
        "lifecycle": MatchLifecycle.DISCOVERED,
        "created_at": now,
    }
    return Match.objects.create(**values | fields)


def make_ref(
    match: Match | None = None, *, source: Source | str = "crex", now: datetime = NOW, **fields: Any
) -> MatchRef:
    """A watched reference, due 2.5 s from `now`. Without a match, one is made."""
    number = next(_numbers)
    site = make_source(source) if isinstance(source, str) else source
    values: dict[str, Any] = {
        "source_event_id": f"T{number}",
        "next_poll_at": now + timedelta(seconds=2.5),
        "captured_at": now,
        "created_at": now,
    }
    values |= fields
    url = values.pop("url", f"{site.base_url}/match/{values['source_event_id']}")
    return MatchRef.objects.create(match=match or make_match(now=now), source=site, url=url, **values)


def make_scraper(ref: MatchRef, *, now: datetime = NOW, **fields: Any) -> Scraper:
    values: dict[str, Any] = {"start_time": now - timedelta(minutes=10), "last_update_time": now}
    return Scraper.objects.create(ref=ref, **values | fields)


def make_snapshot(match: Match, *, now: datetime = NOW, **fields: Any) -> Snapshot:
    """Creates a snapshot of the current state of the match."""
    values: dict[str, Any] = {
        "sequence": match.sequence,
        "checksum": match.checksum or "0" * 64,
        "payload": match.payload,
        "captured_at": now,
        "created_at": now,
    }
    return Snapshot.objects.create(match=match, **values | fields)


def make_event(match: Match, *, source: Source | str = "crex", now: datetime = NOW, **fields: Any) -> MatchEvent:
    number = next(_numbers)
    values: dict[str, Any] = {
        "event_id": f"2-{number}",
        "action": EventAction.ADD,
        "sequence": match.sequence,
        "kind": "wicket",
        "innings": 2,
        "over": "12.3",
        "fingerprint": f"{number:064d}",
        "created_at": now,
    }
    site = make_source(source) if isinstance(source, str) else source
    return MatchEvent.objects.create(match=match, source=site, **values | fields)
