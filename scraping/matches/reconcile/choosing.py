"""Chooses the source of each field: the heaviest, among equals the newest.

Fields that must be consistent with each other (score, innings, status ...) come from one source, or a document would
have the score of one and the overs of another. For them a source that has fallen behind a live match is rejected,
however heavy it is, and so is one that has missed the start or the end of the match.

That guards against a match that is live for ever because one site never got its result, and against one that is
upcoming for ever. An end at a lighter source is accepted when the heavier one has not changed for longer than its phase
explains: ten minutes of play, a night at stumps. It stays accepted until the heavier one changes again; then that one
counts. A start is accepted ten minutes after the start time of the heavier source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from scraping.matches.reconcile import disagreement
from scraping.matches.reconcile.states import (
    PLAY,
    Reconciled,
    SourceView,
    State,
    goes_backwards,
    is_empty,
    only_source,
    oriented,
    provenance_entry,
)
from scraping.names import NO_ALIASES, Aliases
from scraping.payloads import Phase, Status

FRESH_SECONDS, OUTDATED_SECONDS = 10.0, 40.0  # behind the newest source: full confidence, and the lowest
OUTDATED_CONFIDENCE = 0.4
REJECTED_BELOW = 0.5
HELD_SECONDS = 120.0
RUNNING = ("live", "upcoming")  # states that become outdated; the end of a match does not
LONGEST_OTHER = 80  # characters of another source's value that provenance keeps
MINUTE = 60.0
STUCK_SECONDS = 10 * MINUTE
# A phase that announces more play explains a longer silence. In rain or after an interruption matches are called off.
EXPLAINED_SECONDS = {
    Phase.DRINKS: 15 * MINUTE,
    Phase.HALFTIME: 25 * MINUTE,
    Phase.TEA: 45 * MINUTE,
    Phase.INNINGS_BREAK: 60 * MINUTE,
    Phase.LUNCH: 60 * MINUTE,
    Phase.STUMPS: 24 * 60 * MINUTE,
}
# For an end at a lower score than the heavier source's: the lighter one has missed something, or invented the end.
LOWER_SCORE_FACTOR = 6
ENDED = (Status.COMPLETED, Status.ABANDONED)
BEGUN = (Status.LIVE, *ENDED)

Entry = dict[str, Any]


def reconcile(
    views: Sequence[SourceView],
    *,
    known: State | None = None,
    aliases: Aliases = NO_ALIASES,
) -> Reconciled:
    """Returns one state out of all sources' states, its provenance, and the conflicts.

    `known`: the match as it was before. Sources are compared with each other and not with the present time, so that an
    outage of ours makes none of them worse.
    """
    if len(views) == 1:
        return only_source(views[0])
    crossed = {view.source for view in views if view.is_crossed}  # their titles name the other side first
    ranked = sorted(
        (replace(view, state=oriented(view.state, is_crossed=view.is_crossed), is_crossed=False) for view in views),
        key=lambda view: (view.weight, view.captured_at, view.source),
        reverse=True,
    )
    # Without the time of reading: values that do not change during play would alternate with every reading.
    steady = sorted(ranked, key=lambda view: (-view.weight, view.source))
    trusts = _trusts(ranked)
    with_status = [view for view in ranked if view.state.get("status")] or ranked
    chosen = _chosen(with_status, trusts, known or {})
    state: dict[str, Any] = {}
    provenance: dict[str, Entry] = {}
    for field in dict.fromkeys(name for view in ranked for name in view.state):
        if field == "metadata":
            state[field], provenance[field] = _merged(steady)
            continue
        is_play = field in PLAY
        view = _source_of_play(field, chosen, ranked) if is_play else _first_with(field, ranked, known or {})
        state[field] = view.state.get(field)
        if field == "title" and view.source in crossed:
            state[field] = (known or {}).get(field) or state[field]
        provenance[field] = _entry(field, state[field], view, ranked, trusts if is_play else {})
    found = disagreement.find_conflicts(
        state, chosen, [one for one in ranked if _counts(one, trusts)], provenance, aliases
    )
    return Reconciled(state, provenance, found)


def _trusts(views: Sequence[SourceView]) -> dict[str, float]:
    """Returns the confidence in each source's state of play, by source: the older that of a running match, the less."""
    newest, trusts = max(view.captured_at for view in views), {}
    for view in views:
        lost = ((newest - view.captured_at).total_seconds() - FRESH_SECONDS) / (OUTDATED_SECONDS - FRESH_SECONDS)
        decay = (1.0 - OUTDATED_CONFIDENCE) * min(1.0, max(0.0, lost)) if view.state.get("status") in RUNNING else 0.0
        trusts[view.source] = round(1.0 - decay, 3)
    return trusts


def _chosen(ranked: Sequence[SourceView], trusts: dict[str, float], known: State) -> SourceView:
    """Returns the source of the play: the first with enough confidence, unless it is behind or stuck."""
    best = next((view for view in ranked if _counts(view, trusts)), ranked[0])  # old data is better than none
    chosen = _not_taken_back(best, ranked, known)
    has_begun = known.get("status") in BEGUN  # then the source that said so has only become silent
    counted = [view for view in ranked if has_begun or _counts(view, trusts)]
    chosen = _accepted_start(chosen, counted) or chosen
    return _accepted_end(chosen, ranked, known) or chosen


def _accepted_end(chosen: SourceView, ranked: Sequence[SourceView], known: State) -> SourceView | None:
    """Returns the source whose end of the match counts more than the chosen source's play, or None."""
    if chosen.state.get("status") != Status.LIVE or chosen.unmoved_seconds is None:
        return None
    ended = next((view for view in ranked if view.state.get("status") in ENDED), None)
    if ended is None:
        return None
    ahead = [view for view in ranked if goes_backwards(view.state, ended.state)]
    if known.get("status") in ENDED:
        is_doubted = any(view.unmoved_seconds is None for view in ahead)
    else:
        explained = EXPLAINED_SECONDS.get(chosen.state.get("phase") or Phase.PLAY, STUCK_SECONDS)
        is_doubted = chosen.unmoved_seconds < explained * (LOWER_SCORE_FACTOR if ahead else 1)
    return None if is_doubted else ended


def _accepted_start(chosen: SourceView, ranked: Sequence[SourceView]) -> SourceView | None:
    """Returns a source that has the match as begun, if the chosen one has missed its own start time; else None."""
    start = chosen.state.get("start_time")
    is_postponed = chosen.state.get("phase") == Phase.POSTPONED
    if chosen.state.get("status") != Status.UPCOMING or is_postponed or not start:
        return None
    late = (chosen.captured_at - datetime.fromisoformat(str(start))).total_seconds()
    begun = (view for view in ranked if view.state.get("status") in BEGUN)
    return next(begun, None) if late >= STUCK_SECONDS else None


def _not_taken_back(chosen: SourceView, ranked: Sequence[SourceView], known: State) -> SourceView:
    """Keeps another source for a while, if the chosen one is behind the known state: a silent one of at least the same
    weight, or one that was read after it. Else a late source would take back known events for some seconds.
    """
    if known and goes_backwards(known, chosen.state):
        newest = max(view.captured_at for view in ranked)
        for view in ranked:
            if view is chosen or (view.weight < chosen.weight and view.captured_at <= chosen.captured_at):
                continue
            behind = (newest - view.captured_at).total_seconds()
            if behind <= HELD_SECONDS and not goes_backwards(known, view.state):
                return view
    return chosen


def _counts(view: SourceView, trusts: dict[str, float]) -> bool:
    return trusts[view.source] >= REJECTED_BELOW


def _source_of_play(field: str, chosen: SourceView, ranked: Sequence[SourceView]) -> SourceView:
    """Returns the source of the play, or for a field it lacks one with the same status and score."""
    if not is_empty(chosen.state.get(field)):
        return chosen
    score = [chosen.state.get(name) for name in ("status", "score")]
    equal = (view for view in ranked if [view.state.get(name) for name in ("status", "score")] == score)
    return next((view for view in equal if not is_empty(view.state.get(field))), chosen)


def _first_with(field: str, ranked: Sequence[SourceView], known: State) -> SourceView:
    """Returns the heaviest source that has the field; among equals the one with the known value, else the newest."""
    having = [view for view in ranked if not is_empty(view.state.get(field))] or list(ranked)
    equals = [view for view in having if view.weight == having[0].weight]
    return next((view for view in equals if view.state.get(field) == known.get(field)), equals[0])


def _merged(ranked: Sequence[SourceView]) -> tuple[dict[str, Any], Entry]:
    """Merges metadata key by key; provenance has the source of each key if they are several."""
    merged: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for view in ranked:
        for key, value in (view.state.get("metadata") or {}).items():
            if key not in merged or (is_empty(merged[key]) and not is_empty(value)):
                merged[key], sources[key] = value, view.source
    first = next((view for view in ranked if view.source in sources.values()), ranked[0])
    return merged, provenance_entry(first) | ({"keys": sources} if len(set(sources.values())) > 1 else {})


def _entry(field: str, value: Any, chosen: SourceView, ranked: Sequence[SourceView], trusts: dict[str, float]) -> Entry:
    """Returns the provenance of a field, with the other sources' values where they differ."""
    found = []
    for view in ranked:
        other = view.state.get(field)
        if view is not chosen and not is_empty(other) and other != value:
            shown = other if isinstance(other, int | float) else disagreement.as_text(other)[:LONGEST_OTHER]
            found.append({**provenance_entry(view, trusts.get(view.source, 1.0)), "value": shown})
    own = provenance_entry(chosen, trusts.get(chosen.source, 1.0))
    return own | {"others": found} if found else own
