"""What the command `read` prints: the results of trials as text or JSON, and the next step after a failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from scraping.errors import ERROR_RULES, Drift, SchemaBreak, ScrapingError
from scraping.payloads import DiscoveredMatch, Event, Figures, Lineups, Payload
from scraping.reading.saved import Trial
from scraping.sources.base import Adapter
from victoryline.lib.redaction import printable

MAX_LINE, MAX_ERROR = 200, 2000  # characters
MAX_MATCHES = 10  # shown of a list
DRIFT_ADVICE = (
    "The site has changed there, or this is another kind of document (--as). Correct the schema or the selectors in "
    "scraping/sources/{folder}, and keep a recording of the new shape for its test (--save)."
)


def lines(trial: Trial) -> Iterator[str]:
    """Yields the lines about one result. Texts of a site could move the cursor of a terminal."""
    yield from (printable(line, MAX_LINE) for line in _lines(trial))


def _lines(trial: Trial) -> Iterator[str]:
    documents = ", ".join(f"{label} ({name})" for name, label in trial.labels.items())
    yield f"{trial.kind.capitalize()}, from {documents}"
    result = trial.result
    if isinstance(result, Payload):
        yield from _match(result)
    elif isinstance(result, Lineups):
        for side in result.lineups:
            state = "confirmed" if side.is_confirmed else "not confirmed"
            players = f"{len(side.starters)} starters of {len(side.players)} players"
            yield f"  {side.side}: {players}, {state} {side.formation}".rstrip()
    elif isinstance(result, Figures):
        yield f"  {len(result.figures)} figures of {len({one.player_id for one in result.figures})} players"
    elif isinstance(result, tuple):
        yield from _events(result)
    else:
        yield f"  {len(result)} matches"
        yield from (f"  {_listed(one)}" for one in result[:MAX_MATCHES])
        if len(result) > MAX_MATCHES:
            yield f"  ... and {len(result) - MAX_MATCHES} others"
    if trial.missing:
        yield f"Missing: {', '.join(trial.missing)}"
    if trial.unknown:
        yield "Unknown values:"
        yield from (f"  {one.path}: {one.value}" for one in trial.unknown)
    if trial.broken_parts:
        yield "Broken parts, left out:"
        yield from (f"  {one['path']}: {one['expected']}, {one['count']}x" for one in trial.broken_parts)


def _match(payload: Payload) -> Iterator[str]:
    state = payload.state
    yield f"  {payload.source_event_id}  {state.title}: {state.status}, {state.phase} {state.clock}".rstrip()
    yield from (f"  {text}" for text in (state.result, state.metadata.get("series"), state.venue) if text)
    for side in ("team_a", "team_b"):
        team, score = getattr(state.teams, side), getattr(state.score, side)
        printed = "-" if score.goals is None else f"{score.goals}"
        if score.runs is not None:
            printed = ", ".join(f"{one.runs}/{one.wickets} ({one.overs})" for one in state.innings if one.team == side)
        yield f"  {team.name} {f'({team.short_name})' if team.short_name else ''}: {printed}".replace(" :", ":")
    yield from _events(payload.events)


def _events(events: Sequence[Event]) -> Iterator[str]:
    newest = (f", the newest: {one.kind} {one.over or one.minute or ''} {one.description}" for one in events[:1])
    yield f"  {len(events)} events{''.join(newest)}"


def _listed(match: DiscoveredMatch) -> str:
    start = f"{match.start_time:%Y-%m-%d %H:%M}" if match.start_time else "no start time"
    return f"{match.source_event_id}  {match.title}: {match.status}, {start}"


def failure(trial: Trial, adapter: Adapter) -> str:
    error, files = trial.error, ", ".join(trial.labels.values())
    assert error is not None
    if not isinstance(error, ScrapingError):
        return f"{files}: the adapter of {adapter.key} failed with {error!r}. This is a bug of the adapter: mend it."
    found = [f"{files} could not be read as {trial.kind}: {error}"]
    if error.selector:
        found.append(f"Path: {error.selector}")
    return "\n".join([*(printable(line, MAX_ERROR) for line in found), advice(error, adapter)])


def advice(error: ScrapingError, adapter: Adapter) -> str:
    if isinstance(error, SchemaBreak) and not error.selector:
        return "Give the other documents of the reading too, or name what it is with --as."
    if isinstance(error, Drift):
        return DRIFT_ADVICE.format(folder=type(adapter).__module__.split(".")[-2])
    return ERROR_RULES[error.error_class].advice


def as_json(source: str, trials: Sequence[Trial], unused: Sequence[str]) -> dict[str, Any]:
    """Returns the results by kind, or the error."""
    found: dict[str, Any] = {"source": source, "unused": list(unused), "results": {}, "error": None}
    for trial in trials:
        if trial.error is not None:
            names = {"kind": trial.kind, "type": type(trial.error).__name__}
            found["error"] = {**names, "message": str(trial.error), "path": getattr(trial.error, "selector", "")}
            continue
        is_list = isinstance(trial.result, list | tuple)
        values = [one.model_dump(mode="json") for one in (trial.result if is_list else [trial.result])]
        found["results"][trial.kind] = {
            "documents": dict(trial.labels),
            "result": values if is_list else values[0],
            "missing": list(trial.missing),
            "unknown": [one.model_dump() for one in trial.unknown],
            "broken_parts": trial.broken_parts,
        }
    return found
