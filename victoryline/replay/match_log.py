"""Reads the log of a completed match (`scraping/matches/match_logs.py`) as a sequence of states with their events.

A log contains the changes of each state. The states are rebuilt from them, and each is verified with its checksum. An
incomplete log is refused.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from scraping.matches.match_logs import FORMAT
from scraping.payloads import Event, MatchState, checksum_of
from victoryline.replay.recording import InvalidRecordingError

SUFFIX = ".json.gz"
MAX_BYTES = 256 * 1024 * 1024  # decompressed; logs are limited to far less
RETRACT = "retract"
UNKNOWN_WEIGHT = 50
NEEDED = ("events", "snapshots")


@dataclass(frozen=True)
class EventRevision:
    """One revision of an event from a source; `is_retracted` if the source removed the event."""

    source_id: int
    event: Event
    is_retracted: bool


@dataclass(frozen=True)
class Step:
    """A state of the match, its times, and the event revisions that came with it, in order."""

    sequence: int
    at: datetime
    captured_at: datetime
    state: MatchState
    revisions: tuple[EventRevision, ...] = ()


@dataclass(frozen=True)
class LoggedSource:
    source_id: int
    key: str
    weight: int
    event_id: str
    url: str


@dataclass(frozen=True)
class MatchLog:
    name: str
    match: Mapping[str, Any]
    sources: tuple[LoggedSource, ...]  # the highest precedence first
    steps: tuple[Step, ...]
    events: tuple[Mapping[str, Any], ...]  # rows of the revisions that are current at the end


def logs_in(path: Path) -> list[Path]:
    """Returns the file if it is a match log, or the logs in a folder such as MATCH_LOG_DIR; empty without any."""
    if path.is_dir():
        return sorted(path.glob(f"*{SUFFIX}")) + sorted(path.glob(f"*/*{SUFFIX}"))
    return [path] if path.name.endswith(SUFFIX) else []


def load(path: Path) -> MatchLog:
    """Raises InvalidRecordingError if the file is not a complete match log."""
    try:
        return _match_log(path.parent.name or path.name, _decompressed(path))
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidRecordingError(f"{path.name} is not a match log: {error}") from error


def _decompressed(path: Path) -> dict[str, Any]:
    with gzip.open(path) as packed:
        content = packed.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError("it is too large")
    found: dict[str, Any] = json.loads(content)
    if found["format"] != FORMAT:
        raise ValueError(f"its format is {found['format']!r}, not {FORMAT!r}")
    if lost := [name for name in found["cut_off"] if name in NEEDED]:
        raise ValueError(f"it was truncated: {', '.join(lost)} are incomplete")
    return found


def _match_log(name: str, found: Mapping[str, Any]) -> MatchLog:
    steps = tuple(_with_events(tuple(_states(found["snapshots"])), found["events"]))
    if not steps:
        raise ValueError("it contains no state of the match")
    current = tuple(row for row in found["events"] if row["is_current"])
    return MatchLog(name, found["match"], _sources_of(found), steps, current)


def _sources_of(found: Mapping[str, Any]) -> tuple[LoggedSource, ...]:
    known = {one["id"]: one for one in found.get("sources", ())}  # older logs have none
    sources = []
    for ref in found["refs"]:
        number = int(ref["source_id"])
        source = known.get(number, {})
        key, weight = source.get("key", f"source-{number}"), source.get("precedence_weight", UNKNOWN_WEIGHT)
        sources.append(LoggedSource(number, key, int(weight), ref["source_event_id"], ref["url"]))
    if not sources:
        raise ValueError("it names no source of the match")
    return tuple(sorted(sources, key=lambda one: (-one.weight, one.source_id)))


def _states(snapshots: Iterable[Mapping[str, Any]]) -> Iterator[Step]:
    """Applies each change to the state before it and verifies the checksum."""
    whole: dict[str, Any] = {}
    for row in sorted(snapshots, key=lambda row: int(row["sequence"])):
        changed = {name: value for name, value in row["delta"].items() if not name.startswith("_")}
        whole = changed if row["delta"]["_diff_type"] == "initial" else {**whole, **changed}
        if checksum_of(whole) != row["checksum"]:
            raise ValueError(f"state {row['sequence']} does not follow from those before it")
        yield Step(
            int(row["sequence"]),
            datetime.fromisoformat(row["created_at"]),
            datetime.fromisoformat(row["captured_at"]),
            MatchState.model_validate(whole),
        )


def _with_events(steps: tuple[Step, ...], rows: Iterable[Mapping[str, Any]]) -> Iterator[Step]:
    """Assigns each revision to the first state that is not older, or to the last state."""
    waiting = sorted(rows, key=lambda row: int(row["id"]))
    for number, step in enumerate(steps, start=1):
        is_last = number == len(steps)
        here = [row for row in waiting if is_last or int(row["sequence"]) <= step.sequence]
        waiting = [row for row in waiting if not is_last and int(row["sequence"]) > step.sequence]
        yield replace(step, revisions=tuple(_revision(row) for row in here))


def _revision(row: Mapping[str, Any]) -> EventRevision:
    event = Event(
        id=row["event_id"],
        kind=row["kind"],
        innings=row["innings"],
        over=row["over"] or None,
        minute=row["minute"] or None,
        ordinal=row["ordinal"],
        slot=row["slot"],
        runs=row["runs"],
        is_critical=row["is_critical"],
        description=row["description"],
        happened_at=row["happened_at"],
        detail=row["detail"],
    )
    return EventRevision(int(row["source_id"]), event, is_retracted=row["action"] == RETRACT)
