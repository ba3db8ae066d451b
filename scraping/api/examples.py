"""The examples of the API's description. Tests hold them to the bodies that they show."""

from __future__ import annotations

from typing import Any

from scraping.api.history_bodies import NOT_IN_DELTA

TEAMS = {
    "team_a": {"name": "India", "short_name": "IND"},
    "team_b": {"name": "Australia", "short_name": "AUS"},
}
SCORE = {
    "team_a": {"runs": 187, "wickets": 5, "overs": "20.0", "goals": None, "penalties": None},
    "team_b": {"runs": 95, "wickets": 3, "overs": "12.3", "goals": None, "penalties": None},
}
INNINGS = [
    {"number": 1, "team": "team_a", "runs": 187, "wickets": 5, "overs": "20.0"},
    {"number": 2, "team": "team_b", "runs": 95, "wickets": 3, "overs": "12.3"},
]
LAST_EVENT = {
    "type": "wicket",
    "description": "Smith c Kohli b Bumrah 42 (28)",
    "timestamp": "2025-11-22T15:23:45.000Z",
}
METADATA: dict[str, Any] = {
    "scraped_at": "2025-11-22T15:23:47.120Z",
    "data_age_seconds": 3,
    "scraper_id": "0b6f9bd6-65d2-44cc-9d0f-6cbe9c1d8a55",
    "source": "scraper",
    "state": "fresh",
    "next_update_in_seconds": 1.4,
}
FULL_METADATA = {**METADATA, "sequence": 212}
LIST_METADATA = {
    "generated_at": "2025-11-22T15:23:50.300Z",
    "count": 1,
    "left_out": 0,
    "state": "fresh",
    "scraped_at": "2025-11-22T15:23:47.120Z",
    "data_age_seconds": 3,
    "next_update_in_seconds": 1.4,
}
_GAME = {
    "sport": "cricket",
    "title": "India vs Australia, 3rd T20I",
    "status": "live",
    "phase": "play",
    "lifecycle": "ACTIVE",
    "teams": TEAMS,
    "score": SCORE,
    "start_time": "2025-11-22T14:00:00.000Z",
    "sequence": 212,
}
MATCH = {
    "id": 123,
    "match_id": "crex_13KM",
    "keys": ["crex_13KM"],
    "domain_id": "crex",
    **_GAME,
    "innings": INNINGS,
    "current_innings": 2,
    "clock": "",
    "toss": {"winner": "India", "decision": "bat"},
    "venue": "MCG, Melbourne",
    "last_event": LAST_EVENT,
    "result": "",
    "metadata": {"series": "India tour of Australia 2025", "match_type": "T20I"},
    "_metadata": FULL_METADATA,
}
PROVENANCE = {
    "score": {
        "source": "crex",
        "confidence": 1.0,
        "timestamp": "2025-11-22T15:23:47.120Z",
        "others": [
            {
                "source": "espn",
                "value": "team_a runs 187, wickets 5, team_b runs 86, wickets 3",
                "confidence": 0.9,
                "timestamp": "2025-11-22T15:23:32.000Z",
            }
        ],
    },
    "toss": {"source": "espn", "confidence": 1.0, "timestamp": "2025-11-22T15:23:32.000Z"},
}
PAST_METADATA = {
    **FULL_METADATA,
    "state": "final",
    "next_update_in_seconds": None,
    "as_of": None,
    "captured_at": "2025-11-22T15:23:47.120Z",
    "created_at": "2025-11-22T15:23:47.130Z",
}
PAST_MATCH: dict[str, Any] = {
    **MATCH,
    "lifecycle": None,
    "_metadata": {**PAST_METADATA, "as_of": "2025-11-22T15:24:00.000Z"},
}
DOUBTED_MATCH: dict[str, Any] = {
    **MATCH,
    "provisional": {
        "source": "crex",
        "since": "2025-11-22T15:23:49.000Z",
        "readings": 1,
        "status": "live",
        "score": {**SCORE, "team_b": {**SCORE["team_b"], "runs": 94}},
    },
}
ITEM = {
    "id": 123,
    "keys": ["crex_13KM"],
    **_GAME,
    "freshness": {
        "state": "fresh",
        "age_seconds": 3,
        "scraped_at": "2025-11-22T15:23:47.120Z",
        "next_update_in": 1.4,
    },
}
MATCH_INFO = {
    "matchId": 123,
    "title": "India vs Australia, 3rd T20I",
    "teams": [{"key": key, **team} for key, team in TEAMS.items()],
    "score": SCORE,
    "status": "live",
    "phase": "play",
    "innings": INNINGS,
    "currentInnings": 2,
    "toss": {"winner": "India", "decision": "bat"},
    "venue": "MCG, Melbourne",
    "startTime": "2025-11-22T14:00:00.000Z",
    "lastEvent": LAST_EVENT,
    "result": "",
    "_metadata": METADATA,
}
EVENT = {
    "id": 9001,
    "event_id": "2-12.3",
    "slot": "b:2:12:3",
    "revision": 1,
    "action": "add",
    "reason": "",
    "sequence": 212,
    "kind": "wicket",
    "ordinal": 203,
    "innings": 2,
    "over": "12.3",
    "minute": "",
    "runs": 0,
    "is_critical": True,
    "description": "Smith c Kohli b Bumrah 42 (28)",
    "detail": {},
    "source": "crex",
    "happened_at": "2025-11-22T15:23:45.000Z",
    "created_at": "2025-11-22T15:23:47.130Z",
}
PAUSE = {"minutes": 10, "reason": "the source is down"}
PAUSED = {
    "id": 123,
    "title": "India vs Australia, 3rd T20I",
    "lifecycle": "PAUSED",
    "pause_until": "2025-11-22T15:33:50.300Z",
    "pause_reason": "the source is down (by api:acme)",
}
_THEN = {
    "captured_at": "2025-11-22T15:23:47.120Z",
    "created_at": "2025-11-22T15:23:47.130Z",
    "scraper_id": "0b6f9bd6-65d2-44cc-9d0f-6cbe9c1d8a55",
}
_ROW = {
    "sequence": 212,
    "checksum": "5c1d4e1a5c2b0f7d0a4c6a6a8f5b0b8b6f4d9c0f3f6f7a1f7ce9d2c9b7f4a1e0",
    "data_source": "scraper",
    **_THEN,
}
_STATE = {name: value for name, value in MATCH.items() if name not in NOT_IN_DELTA}
DELTA: dict[str, Any] = {
    "id": 123,
    "_diff_type": "update",
    "_sequence_delta": 1,
    "from_sequence": 211,
    "to_sequence": 212,
    "changed": {"score": SCORE, "innings": INNINGS, "last_event": LAST_EVENT},
    "removed": [],
    "events": [EVENT],
    "has_more": False,
    "next_since": None,
    "_metadata": FULL_METADATA,
}
SNAPSHOTS: dict[str, Any] = {
    "snapshots": [{**_ROW, "changed": ["innings", "last_event", "score"]}],
    "next": None,
    "_metadata": FULL_METADATA,
}
SNAPSHOT: dict[str, Any] = {
    **_ROW,
    "payload": _STATE,
    "provenance": PROVENANCE,
    "_metadata": PAST_METADATA,
}
LINEUPS: dict[str, Any] = {
    "lineups": [
        {
            "side": "team_a",
            "team": "Flamengo",
            "source": "sofascore",
            "snapshot_type": "pre_match",
            "schema_version": "sofascore.lineups.v1",
            "formation": "4-2-3-1",
            "is_confirmed": True,
            "xi_missing": False,
            "kickoff": "2025-11-22T14:00:00.000Z",
            "captured_at": "2025-11-22T12:58:03.000Z",
            "players": [
                {
                    "player_id": "98765",
                    "name": "A. Rossi",
                    "position": "G",
                    "shirt": "1",
                    "is_starter": True,
                    "is_captain": False,
                    "rating": None,
                    "minutes": None,
                }
            ],
        }
    ],
    "xi_missing": {"team_a": False, "team_b": True},
    "_metadata": FULL_METADATA,
}
CONFLICTS: dict[str, Any] = {
    "conflicts": [
        {
            "id": 77,
            "field": "innings.2.runs",
            "chosen_source": "crex",
            "chosen_value": 95,
            "other_source": "espn",
            "other_value": 86,
            "difference_percent": 9.5,
            "times_seen": 14,
            "first_seen_at": "2025-11-22T15:22:10.000Z",
            "last_seen_at": "2025-11-22T15:23:47.120Z",
            "resolved_at": None,
        }
    ],
    "provisional": None,
    "_metadata": FULL_METADATA,
}
