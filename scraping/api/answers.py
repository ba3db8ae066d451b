"""Builds the bodies and headers of match answers. Plain dicts, shaped as in `documents`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.utils.http import http_date

from scraping.documents.freshness import DataState, Freshness
from scraping.documents.known import Known
from scraping.models import Conflict, Lineup, MatchEvent
from scraping.payloads import Status
from victoryline.lib.times import as_utc_iso

Body = dict[str, Any]
CACHE_SECONDS = {Status.LIVE: 1, Status.UPCOMING: 10, Status.COMPLETED: 60, Status.ABANDONED: 60}
# For how long a cache may go on with what it has while we fail. How old that is, X-Data-Freshness says.
STALE_IF_ERROR_SECONDS = {
    DataState.FRESH: 60,
    DataState.AGING: 60,
    DataState.STALE: 300,
    DataState.FROZEN: 300,
    DataState.PAUSED: 300,
    DataState.FINAL: 86_400,
    DataState.UNKNOWN: 0,
}
NOTHING = Freshness(state=DataState.UNKNOWN, scraped_at=None, age_seconds=None, next_update_in=None)


def headers(
    freshness: Freshness,
    *,
    etag: str,
    cache_seconds: int,
    changed_at: datetime | None = None,
    good_for: float | None = None,
) -> dict[str, str]:
    found = age_headers(freshness)
    found["Cache-Control"] = _cache_control(freshness.state, cache_seconds, good_for)
    if changed_at is not None:
        found["Last-Modified"] = http_date(changed_at.timestamp())
    if freshness.next_update_in is not None:
        # Never 0: a client that sleeps for as long as we say would ask without a pause while a reading is overdue.
        found["X-Next-Update-In"] = str(max(1, math.ceil(freshness.next_update_in)))
    if etag:
        found["ETag"] = etag
    return found


def _cache_control(state: DataState, cache_seconds: int, good_for: float | None) -> str:
    """`good_for`: the caller's `max_age` ends there. A cache that goes on longer would give what we refuse with 503."""
    spare = STALE_IF_ERROR_SECONDS[state]
    if good_for is not None:
        cache_seconds = min(cache_seconds, int(good_for))
        spare = min(spare, int(good_for) - cache_seconds)
    return f"private, max-age={cache_seconds}, stale-if-error={spare}"


def age_headers(freshness: Freshness) -> dict[str, str]:
    """A match that was never read has no time and no age; its state says so."""
    found = {"X-Data-State": freshness.state.value}
    if freshness.scraped_at is not None:
        found["X-Data-Freshness"] = as_utc_iso(freshness.scraped_at)
        found["X-Data-Age-Seconds"] = str(freshness.whole_age_seconds)
    return found


def match_etag(match: Known) -> str:
    """Strong: the data of a match is the same as long as this is. (Ages change all the time; they are in the headers.)

    A match that was never read has no number yet, so nothing to compare.
    """
    return f'"{_version(match)}"' if match.sequence else ""


def list_etag(matches: Sequence[Known], rest: str) -> str:
    parts = "|".join(map(_version, matches))
    return f'"{hashlib.sha256(f"{parts}|{rest}".encode()).hexdigest()[:32]}"'


def _version(match: Known) -> str:
    return f"{match.id}-{match.sequence}-{match.status}-{match.lifecycle}-{unnumbered(match)}"


def unnumbered(match: Known) -> str:
    """Of what is shown of a match and has no number of its own: the names it goes by at sources, above all."""
    made = match.text("version", lambda: _hash_of((match.keys, match.title, match.phase, _time(match.start_time))))
    return made.decode()


def _hash_of(facts: tuple[object, ...]) -> bytes:
    return hashlib.blake2b(repr(facts).encode(errors="backslashreplace"), digest_size=6).hexdigest().encode()


def match_state(match: Known) -> Body:
    """What a match is, without its age."""
    state, keys = match.payload, match.keys
    return {
        "id": match.id,
        "match_id": keys[0] if keys else str(match.id),
        "keys": keys,
        "domain_id": next((ref.source for ref in match.refs), ""),
        **_identity(match),
        "innings": state.get("innings") or [],
        "current_innings": state.get("current_innings"),
        "clock": state.get("clock") or "",
        "toss": state.get("toss"),
        "venue": state.get("venue") or "",
        "start_time": _time(match.start_time),
        "last_event": _last_event(state),
        "result": state.get("result") or "",
        "metadata": state.get("metadata") or {},
        "sequence": match.sequence,
    }


def item_state(match: Known) -> Body:
    """The same for a list: shorter."""
    return {
        "id": match.id,
        "keys": match.keys,
        **_identity(match),
        "start_time": _time(match.start_time),
        "sequence": match.sequence,
    }


def item_freshness(freshness: Freshness) -> Body:
    return {
        "state": freshness.state.value,
        "age_seconds": freshness.whole_age_seconds,
        "scraped_at": _time(freshness.scraped_at),
        "next_update_in": _tenths(freshness.next_update_in),
    }


def info_state(match: Known) -> Body:
    """The older surface's shape: teams as a list, names in camel case."""
    state = match.payload
    teams = state.get("teams") or {}
    return {
        "matchId": match.id,
        "title": match.title,
        "teams": [{"key": side, **teams[side]} for side in ("team_a", "team_b") if teams.get(side)],
        "score": state.get("score") or {},
        "status": match.status,
        "phase": match.phase,
        "innings": state.get("innings") or [],
        "currentInnings": state.get("current_innings"),
        "toss": state.get("toss"),
        "venue": state.get("venue") or "",
        "startTime": _time(match.start_time),
        "lastEvent": _last_event(state),
        "result": state.get("result") or "",
    }


def event_row(event: MatchEvent) -> Body:
    plain = ("action", "sequence", "kind", "ordinal", "innings", "over", "minute", "runs")
    return {
        "id": event.pk,
        "event_id": event.known_as,
        "slot": event.slot,
        "revision": event.shown_revision,
        "reason": event.reason,
        **{name: getattr(event, name) for name in plain},
        "is_critical": event.is_critical,
        "description": event.description,
        "detail": event.detail,
        "source": event.source.key,
        "happened_at": _time(event.happened_at),
        "created_at": as_utc_iso(event.created_at),
    }


def lineup_row(lineup: Lineup) -> Body:
    plain = ("name", "position", "shirt", "is_starter", "is_captain", "rating", "minutes")
    return {
        "side": lineup.side,
        "source": lineup.source.key,
        "snapshot_type": lineup.snapshot_type,
        "schema_version": lineup.payload_schema,
        "formation": lineup.formation,
        "is_confirmed": lineup.is_confirmed,
        "xi_missing": lineup.xi_missing,
        "kickoff": as_utc_iso(lineup.kickoff),
        "captured_at": as_utc_iso(lineup.captured_at),
        "players": [
            {"player_id": player.player_id_ext, **{name: getattr(player, name) for name in plain}}
            for player in lineup.players.all()
        ],
    }


def conflict_row(conflict: Conflict) -> Body:
    plain = (
        "field",
        "chosen_source",
        "chosen_value",
        "other_source",
        "other_value",
        "difference_percent",
        "times_seen",
    )
    return {
        "id": conflict.pk,
        **{name: getattr(conflict, name) for name in plain},
        "first_seen_at": as_utc_iso(conflict.first_seen_at),
        "last_seen_at": as_utc_iso(conflict.last_seen_at),
        "resolved_at": _time(conflict.resolved_at),
    }


def without_silent_senders(found: Sequence[Known], max_age: int | None, now: datetime) -> tuple[Sequence[Known], int]:
    """What is only sent to us, and older than the caller accepts, is left out; and how many were.

    A sender who stops would otherwise keep every list from everybody who says `max_age`. Our own readings are our own
    fault: a list of those is refused as a whole.
    """
    if max_age is None:
        return found, 0
    kept = [match for match in found if not (match.is_sent_in and match.freshness(now).is_older_than(max_age))]
    return kept, len(found) - len(kept)


def list_metadata(matches: Sequence[Known], freshness: Freshness, now: datetime, left_out: int) -> Body:
    return {
        "generated_at": as_utc_iso(now),
        "count": len(matches),
        "left_out": left_out,
        "state": freshness.state.value,
        "scraped_at": _time(freshness.scraped_at),
        "data_age_seconds": freshness.whole_age_seconds,
        "next_update_in_seconds": _tenths(freshness.next_update_in),
    }


def full_metadata(match: Known, freshness: Freshness) -> Body:
    return {
        **metadata(match, freshness),
        "sequence": match.sequence,
    }


def list_freshness(matches: Sequence[Known], now: datetime) -> Freshness:
    """A list is as old as its oldest live match; without a live one, as the oldest that is not over yet."""
    return max((match.freshness(now) for match in _telling(matches)), key=_age_or_zero, default=NOTHING)


def with_next_update(oldest: Freshness, matches: Sequence[Known], now: datetime) -> Freshness:
    """A list has news when any of its matches is read again: one that is paused till tomorrow is no reason to wait."""
    going_on = (match for match in matches if match.status in {Status.LIVE, Status.UPCOMING})
    planned = [at for match in going_on if (at := match.next_update_at) is not None]
    wait = max(0.0, (min(planned) - now).total_seconds()) if planned else None
    return replace(oldest, next_update_in=wait)


def _telling(matches: Sequence[Known]) -> Sequence[Known]:
    """Those that a list's age is told by. What is over is never too old, so it speaks only where all of them are."""
    live = [match for match in matches if match.status == Status.LIVE]
    return live or [match for match in matches if match.status == Status.UPCOMING and match.scraped_at] or matches


def list_changed_at(matches: Sequence[Known]) -> datetime | None:
    return max((match.changed_at for match in matches if match.changed_at is not None), default=None)


def _age_or_zero(freshness: Freshness) -> float:
    return freshness.age_seconds or 0.0


def list_cache_seconds(matches: Sequence[Known]) -> int:
    return min((CACHE_SECONDS[Status(match.status)] for match in matches), default=1)


def _identity(match: Known) -> Body:
    return {
        "sport": match.sport,
        "title": match.title,
        "status": match.status,
        "phase": match.phase,
        "lifecycle": match.lifecycle,
        "teams": match.payload.get("teams"),
        "score": match.payload.get("score"),
    }


def metadata(match: Known, freshness: Freshness) -> Body:
    return {
        "scraped_at": _time(freshness.scraped_at),
        "data_age_seconds": freshness.whole_age_seconds,
        "scraper_id": next((ref.scraper_id for ref in match.refs if ref.scraper_id), None),
        "source": match.data_source,
        "state": freshness.state.value,
        "next_update_in_seconds": _tenths(freshness.next_update_in),
    }


def _last_event(state: Body) -> Body | None:
    """Its time is stored as the source's reader spelled it; here it is spelled like all others."""
    event: Body | None = state.get("last_event")
    if not event or not event.get("timestamp"):
        return event
    return {**event, "timestamp": as_utc_iso(datetime.fromisoformat(event["timestamp"]))}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else as_utc_iso(moment)


def _tenths(seconds: float | None) -> float | None:
    """Upwards, as the header has it in whole seconds: whoever waits so long does not come too early."""
    return None if seconds is None else math.ceil(seconds * 10) / 10
