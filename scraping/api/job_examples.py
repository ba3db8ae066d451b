"""The job that the API's description shows."""

from __future__ import annotations

from typing import Any

ROUND_REQUEST: dict[str, Any] = {
    "source": "sofascore",
    "round": {"tournament": 325, "season": 87678, "round": 12},
    "matches": 10,
}
URLS_REQUEST: dict[str, Any] = {
    "urls": ["https://www.sofascore.com/en/football/match/flamengo-santos/GOsuO#id:15052834"]
}
SUMMARY: dict[str, Any] = {
    "id": 7,
    "kind": "round",
    "name": "Sofascore: tournament 325, season 87678, round 12",
    "source": "sofascore",
    "state": "incomplete",
    "parameters": {"round": {"tournament": 325, "season": 87678, "round": 12}, "matches": 10},
    "requested_by": "api:acme",
    "started_at": "2026-06-14T18:00:00.000Z",
    "discovered_at": "2026-06-14T18:00:01.210Z",
    "finished_at": "2026-06-14T18:00:31.400Z",
    "expected": 10,
    "done": 8,
    "skipped": 1,
    "pending": 0,
    "executing": 0,
    "failed": 0,
    "dead": 1,
    "given_up": 0,
    "percent": 90.0,
    "problem": "",
}
MISSING: dict[str, Any] = {
    "key": "sofascore_15052834",
    "title": "Flamengo v Santos",
    "url": "https://www.sofascore.com/en/football/match/flamengo-santos/GOsuO#id:15052834",
    "state": "dead",
    "reason": "drift after 2 attempts: the event lacks homeScore",
    "attempts": 2,
    "next_attempt_at": None,
    "task_id": 4711,
}
JOB: dict[str, Any] = {**SUMMARY, "missing": [MISSING]}
RETRY_REQUEST: dict[str, Any] = {"job": 7, "dry_run": False}
RETRIED: dict[str, Any] = {"dry_run": False, "retried": [4711], "refused": [], "has_more": False}
