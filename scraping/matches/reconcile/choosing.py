"""Whose word counts, field by field: the heavier source's, among equals the newest.

What must agree with itself (score, innings, status ...) comes from one source, or an answer would tell a score of one
and the overs of another. There a source that has fallen behind a live match is not believed, however heavy it is; nor
one that the beginning or the end of the match has left behind (see stuck).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from scraping.matches.reconcile import disagreement
from scraping.matches.reconcile.progress import goes_backwards
from scraping.matches.reconcile.sides import with_sides_exchanged
from scraping.matches.reconcile.stuck import BEGUN, told_beginning, told_end
from scraping.matches.reconcile.views import Reconciled, SourceView, State, is_empty
from scraping.names import NO_ALIASES, Aliases
from victoryline.lib.times import as_utc_iso

PLAY = ("status", "phase", "score", "innings", "current_innings", "clock", "last_event", "result")
FRESH_SECONDS, OUTDATED_SECONDS = 10.0, 40.0  # behind the newest source: as good as new, and as bad as it gets
OUTDATED_CONFIDENCE = 0.4
REJECTED_BELOW = 0.5
HELD_SECONDS = 120.0
RUNNING = ("live", "upcoming")  # what grows old; the end of a match does not
LONGEST_OTHER = 80  # letters of another source's word that are kept beside the chosen one

Entry = dict[str, Any]


def reconcile(
    views: Sequence[SourceView],
    *,
    known: State | None = None,
    now: datetime | None = None,
    aliases: Aliases = NO_ALIASES,
) -> Reconciled:
    """One state out of all sources', who said what, and where they contradict each other.

    `known`: the match as it was before. `now` decides nothing: sources are compared with each other, so that an outage
    of ours makes none of them worse.
    """
    oriented = [_oriented(view) for view in views]
    turned = {view.source for view in views if view.is_crossed}  # their titles name the other side first
    if len(oriented) == 1:
        return _single(oriented[0])
    ranked = sorted(oriented, key=lambda view: (view.weight, view.captured_at, view.source), reverse=True)
    # Of what does not move on, whoever was read last knows no more than another: it would change with every reading.
    steady = sorted(ranked, key=lambda view: (-view.weight, view.source))
    trusts = _trusts(ranked)
    telling = [view for view in ranked if view.state.get("status")] or ranked
    chosen = _chosen(telling, trusts, known or {})
    state: dict[str, Any] = {}
    provenance: dict[str, Entry] = {}
    for field in dict.fromkeys(name for view in ranked for name in view.state):
        if field == "metadata":
            state[field], provenance[field] = _merged(steady)
            continue
        if field in PLAY:
            view, trust = _teller(field, chosen, ranked), trusts
        else:
            view, trust = _first_with(field, ranked, known or {}), {one.source: one.confidence for one in ranked}
        state[field] = view.state.get(field)
        if field == "title" and view.source in turned:
            state[field] = (known or {}).get(field) or state[field]
        provenance[field] = _entry(view, trust) | _others(field, state[field], view, ranked, trust)
    found = disagreement.found(state, chosen, [one for one in ranked if _counts(one, trusts)], provenance, aliases)
    return Reconciled(state, provenance, found)


def tells_other_play(before: State, after: State) -> bool:
    """Does a source move: has anything of the play changed between these two states of it?"""
    return any(before.get(field) != after.get(field) for field in PLAY)


def _oriented(view: SourceView) -> SourceView:
    if not view.is_crossed:
        return view
    return replace(view, state=with_sides_exchanged(view.state), is_crossed=False)


def _single(view: SourceView) -> Reconciled:
    entry = {"source": view.source, "confidence": view.confidence, "timestamp": as_utc_iso(view.captured_at)}
    return Reconciled(dict(view.state), {field: dict(entry) for field in view.state})


def _trusts(views: Sequence[SourceView]) -> dict[str, float]:
    """By source: how far its word on the state of play is believed."""
    newest = max(view.captured_at for view in views)
    return {view.source: round(view.confidence * _decay(view, newest), 3) for view in views}


def _decay(view: SourceView, newest: datetime) -> float:
    if view.state.get("status") not in RUNNING:
        return 1.0
    behind = (newest - view.captured_at).total_seconds()
    lost = (behind - FRESH_SECONDS) / (OUTDATED_SECONDS - FRESH_SECONDS)
    return 1.0 - (1.0 - OUTDATED_CONFIDENCE) * min(1.0, max(0.0, lost))


def _chosen(ranked: Sequence[SourceView], trusts: dict[str, float], known: State) -> SourceView:
    """Who tells the play: the first that is believed, unless it has fallen behind what is known, or stands still."""
    chosen = _not_taken_back(_best(ranked, trusts), ranked, known)
    has_begun = known.get("status") in BEGUN  # then who told so has only fallen silent
    heard = [view for view in ranked if has_begun or _counts(view, trusts)]
    chosen = told_beginning(chosen, heard) or chosen
    return told_end(chosen, ranked, known) or chosen


def _best(ranked: Sequence[SourceView], trusts: dict[str, float]) -> SourceView:
    """The first that is believed. Where none is, still the first: old news is better than none."""
    return next((view for view in ranked if _counts(view, trusts)), ranked[0])


def _not_taken_back(chosen: SourceView, ranked: Sequence[SourceView], known: State) -> SourceView:
    """A source no lighter that has fallen silent is told on for a while, where the one that is heard is behind it.

    Else whoever is late would take back what is known to have happened, and tell it again some seconds later.
    """
    if known and goes_backwards(known, chosen.state):
        newest = max(view.captured_at for view in ranked)
        for view in (one for one in ranked if one is not chosen and one.weight >= chosen.weight):
            behind = (newest - view.captured_at).total_seconds()
            if behind <= HELD_SECONDS and not goes_backwards(known, view.state):
                return view
    return chosen


def _counts(view: SourceView, trusts: dict[str, float]) -> bool:
    return trusts[view.source] >= REJECTED_BELOW


def _teller(field: str, chosen: SourceView, ranked: Sequence[SourceView]) -> SourceView:
    """The source of the play. What it leaves out is told by one that says the very same of status and score."""
    if not is_empty(chosen.state.get(field)):
        return chosen
    standing = [chosen.state.get(name) for name in ("status", "score")]
    alike = (view for view in ranked if [view.state.get(name) for name in ("status", "score")] == standing)
    return next((view for view in alike if not is_empty(view.state.get(field))), chosen)


def _first_with(field: str, ranked: Sequence[SourceView], known: State) -> SourceView:
    """The heaviest that has it; of equals whoever says what is known, else the newest: it must not alternate."""
    having = [view for view in ranked if not is_empty(view.state.get(field))] or list(ranked)
    believed = [view for view in having if view.confidence >= REJECTED_BELOW] or having
    equals = [view for view in believed if view.weight == believed[0].weight]
    return next((view for view in equals if view.state.get(field) == known.get(field)), equals[0])


def _merged(ranked: Sequence[SourceView]) -> tuple[dict[str, Any], Entry]:
    """Metadata, key by key; which source told which, where they are several."""
    merged: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for view in ranked:
        for key, value in (view.state.get("metadata") or {}).items():
            if key not in merged or (is_empty(merged[key]) and not is_empty(value)):
                merged[key], sources[key] = value, view.source
    first = next((view for view in ranked if view.source in sources.values()), ranked[0])
    entry = _entry(first, {first.source: first.confidence})
    return merged, entry | ({"keys": sources} if len(set(sources.values())) > 1 else {})


def _entry(view: SourceView, trust: dict[str, float]) -> Entry:
    return {"source": view.source, "confidence": trust[view.source], "timestamp": as_utc_iso(view.captured_at)}


def _others(
    field: str, value: Any, chosen: SourceView, ranked: Sequence[SourceView], trust: dict[str, float]
) -> dict[str, list[Entry]]:
    """What the other sources say, where that is something else."""
    found = [
        {**_entry(view, trust), "value": shortened(view.state.get(field))}
        for view in ranked
        if view is not chosen and not is_empty(view.state.get(field)) and view.state.get(field) != value
    ]
    return {"others": found} if found else {}


def shortened(value: Any) -> Any:
    """A number as it is, anything else in a few words."""
    if isinstance(value, int | float) or value is None:
        return value
    return disagreement.in_words(value)[:LONGEST_OTHER]
