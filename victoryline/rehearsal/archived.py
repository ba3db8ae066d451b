"""The record of a completed match (`scraping/matches/match_logs.py`), split into the steps in which it was read.

A record keeps what changed with each state, not the states; here they are put together again, and every one of them is
held against the checksum that was written with it. A record from which something is missing is refused, not guessed.
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
from victoryline.rehearsal.recording import BadRecordingError

SUFFIX = ".json.gz"
MAX_BYTES = 256 * 1024 * 1024  # unpacked; a record is capped far below
RETRACT = "retract"
UNKNOWN_WEIGHT = 50
NEEDED = ("events", "snapshots")


@dataclass(frozen=True)
class Told:
    """One revision of an event, as its source told it; `event` is what it said, `is_gone`: that it takes it back."""

    source_id: int
    event: Event
    is_gone: bool


@dataclass(frozen=True)
class Step:
    """A state of the match, when it was written, and the revisions of events that came with it, in their order."""

    sequence: int
    at: datetime
    captured_at: datetime
    state: MatchState
    told: tuple[Told, ...] = ()


@dataclass(frozen=True)
class Teller:
    """A source of the match."""

    source_id: int
    key: str
    weight: int
    event_id: str
    url: str


@dataclass(frozen=True)
class Record:
    name: str
    match: Mapping[str, Any]
    tellers: tuple[Teller, ...]  # the heaviest first
    steps: tuple[Step, ...]
    events: tuple[Mapping[str, Any], ...]  # as rows, the revisions that hold in the end


def records_in(path: Path) -> list[Path]:
    """The one file if it is a record, those of a folder of them (MATCH_LOG_DIR); none where there are none."""
    if path.is_dir():
        return sorted(path.glob(f"*{SUFFIX}")) + sorted(path.glob(f"*/*{SUFFIX}"))
    return [path] if path.name.endswith(SUFFIX) else []


def load(path: Path) -> Record:
    """BadRecordingError where it is none, or not whole."""
    try:
        return _record(path.parent.name or path.name, _unpacked(path))
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRecordingError(f"{path.name} is no record of a match: {error}") from error


def _unpacked(path: Path) -> dict[str, Any]:
    with gzip.open(path) as packed:
        content = packed.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError("it is too large")
    found: dict[str, Any] = json.loads(content)
    if found["format"] != FORMAT:
        raise ValueError(f"its format is {found['format']!r}, not {FORMAT!r}")
    if lost := [name for name in found["cut_off"] if name in NEEDED]:
        raise ValueError(f"it was cut off: {', '.join(lost)} are not all there")
    return found


def _record(name: str, found: Mapping[str, Any]) -> Record:
    steps = tuple(_with_events(tuple(_states(found["snapshots"])), found["events"]))
    if not steps:
        raise ValueError("it holds no state of the match")
    current = tuple(row for row in found["events"] if row["is_current"])
    return Record(name, found["match"], _tellers(found), steps, current)


def _tellers(found: Mapping[str, Any]) -> tuple[Teller, ...]:
    known = {one["id"]: one for one in found.get("sources", ())}  # records of before had none
    tellers = []
    for ref in found["refs"]:
        number = int(ref["source_id"])
        source = known.get(number, {})
        key, weight = source.get("key", f"source-{number}"), source.get("precedence_weight", UNKNOWN_WEIGHT)
        tellers.append(Teller(number, key, int(weight), ref["source_event_id"], ref["url"]))
    if not tellers:
        raise ValueError("it names no source of the match")
    return tuple(sorted(tellers, key=lambda one: (-one.weight, one.source_id)))


def _states(snapshots: Iterable[Mapping[str, Any]]) -> Iterator[Step]:
    """What changed, laid over what was there before; each state must be the one that was told then."""
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
    """Each revision with the first state that is not older than it; what came after the last one, with that."""
    waiting = sorted(rows, key=lambda row: int(row["id"]))
    for number, step in enumerate(steps, start=1):
        is_last = number == len(steps)
        here = [row for row in waiting if is_last or int(row["sequence"]) <= step.sequence]
        waiting = [row for row in waiting if not is_last and int(row["sequence"]) > step.sequence]
        yield replace(step, told=tuple(_told(row) for row in here))


def _told(row: Mapping[str, Any]) -> Told:
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
    return Told(int(row["source_id"]), event, is_gone=row["action"] == RETRACT)
