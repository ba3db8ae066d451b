"""Reads over matches for the API and the status page: one or two queries each for any number of rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

import orjson
from django.db.models import Case, F, OuterRef, Prefetch, Q, QuerySet, Subquery, When

from scraping.documents.cached_match import COLUMNS, COMPARED, CachedMatch, CachedRef, Plan, number_in
from scraping.documents.filters import MatchFilter, Place, Sort
from scraping.models import (
    BreakerState,
    Conflict,
    Lineup,
    Match,
    MatchEvent,
    MatchLifecycle,
    MatchRef,
    Scraper,
    Snapshot,
    Team,
    TeamAlias,
)
from scraping.names import identity
from scraping.payloads import Sport

MAX_ID = 2**63 - 1
MILLISECOND = timedelta(milliseconds=1)
# From the writing of a state until every process serves it: the commit, the lifetime of the document cache (0.1 s), and
# the answer. More than the longest time that the bench `load` has measured (0.35 s).
SERVED_AFTER = timedelta(milliseconds=500)
MOST_CONFLICTS = 200
LISTED = [state for state in MatchLifecycle.values if state != MatchLifecycle.ARCHIVED]
SCANNED_AT_ONCE = 500
# The end of the open breaker of a reference's source: it is not polled before, however late it is.
HELD_UNTIL = Case(When(source__breaker__state=BreakerState.OPEN, then=F("source__breaker__open_until")))


def find_match(name: str) -> Match | None:
    """Returns a match by its id or its key at a source (crex_13KM), with references and scrapers."""
    if not is_valid_name(name):
        return None
    if (number := number_in(name)) is not None:
        match = _detailed().filter(pk=number).first()
        # A match that became part of another one is answered with that one.
        return _detailed().filter(pk=match.merged_into_id).first() if match and match.merged_into_id else match
    return _detailed().filter(_has_key(name)).first()


def is_valid_name(name: str) -> bool:
    """Returns False for names that no match can have, which need no query."""
    return number_in(name) is not None or ("_" in name and name.isprintable())


def compared_columns(*, limit: int) -> dict[int, tuple[Any, ...]]:
    """Returns COMPARED of the newest listed matches by id, without payloads."""
    rows = _listed().order_by("-pk").values_list("pk", *(COLUMNS.get(name, name) for name in COMPARED))
    return {row[0]: row[1:] for row in rows[:limit]}


def poll_plans() -> dict[int, set[Plan]]:
    """Returns the plans of all references of listed matches by match id."""
    planned_at = Case(When(is_watched=True, source__is_enabled=True, then=F("next_poll_at")))
    refs = MatchRef.objects.annotate(held_until=HELD_UNTIL, plan=planned_at).filter(match__in=_listed().values("pk"))
    planned: dict[int, set[Plan]] = {}
    columns = ("match_id", "source__key", "source_event_id", "held_until", "plan")
    for match_id, source, event_id, held_until, at in refs.values_list(*columns):
        planned.setdefault(match_id, set()).add((source, event_id, held_until, at))
    return planned


def cached_matches(*, ids: Sequence[int] | None = None, limit: int | None = None) -> list[CachedMatch]:
    """Returns documents, newest first: of these ids, or of all listed matches."""
    rows = _detailed().defer("provenance").order_by("-pk")
    rows = rows.filter(lifecycle__in=LISTED, merged_into=None) if ids is None else rows.filter(pk__in=ids)
    return list(map(CachedMatch.from_row, rows[:limit]))


def cached_refs(match_ids: Sequence[int]) -> dict[int, list[CachedRef]]:
    """Returns the references of these matches with their scrapers, the most trusted source first."""
    found: dict[int, list[CachedRef]] = {match_id: [] for match_id in match_ids}
    for ref in _refs_with_scrapers().filter(match__in=match_ids):
        found[ref.match_id].append(CachedRef.from_row(ref))
    return found


def accepted_ids(wanted: MatchFilter, *, after: Place | None, limit: int) -> list[int]:
    """Returns the ids of matches that the filter accepts, in its order: for those that no process holds in memory."""
    rows = _in_order(Match.objects.public().filter(merged_into=None), wanted.sort, after)
    rows = rows.filter(lifecycle=wanted.lifecycle) if wanted.lifecycle else rows.filter(lifecycle__in=LISTED)
    refs = Prefetch("refs", MatchRef.objects.select_related("source").defer("payload"))
    slim = rows.defer("payload", "provenance").prefetch_related(refs).iterator(chunk_size=SCANNED_AT_ONCE)
    found = wanted.page(map(CachedMatch.from_row, slim), after=after, limit=limit, is_sorted=True)
    return [match.id for match in found]


def _in_order(rows: QuerySet[Match], sort: Sort, after: Place | None) -> QuerySet[Match]:
    """Sorts the rows, and leaves out most of those before the place; the filter leaves out the rest."""
    if not sort.attribute:
        return rows.order_by("-pk") if after is None else rows.filter(pk__lt=-after[1]).order_by("-pk")
    column = COLUMNS.get(sort.attribute, sort.attribute)
    order = F(column).desc(nulls_last=True) if sort.is_descending else F(column).asc(nulls_last=True)
    if after is not None:
        moment, without = sort.moment(after), Q(**{column: None})
        later = Q(**{f"{column}__{'lte' if sort.is_descending else 'gte'}": moment})
        rows = rows.filter(without if moment is None else later | without)
    return rows.order_by(order, "-pk")


def page_of_events(match_id: int, *, since: int, limit: int, since_sequence: int = 0) -> tuple[list[MatchEvent], bool]:
    """Returns event rows (additions, corrections, retractions) after row `since` in order of writing, and has_more.

    If several sources report an event, only the served row. `since_sequence`: only rows written at a later sequence.
    """
    rows = MatchEvent.objects.filter(match=match_id, pk__gt=since, is_served=True).select_related("source")
    if since_sequence:
        # Sequences never decrease from row to row, so new rows are at the end: no need to read a long match.
        newest = list(rows.order_by("-pk")[: limit + 1])
        if len(newest) <= limit or newest[-1].sequence <= since_sequence:
            return [row for row in reversed(newest) if row.sequence > since_sequence], False
        rows = rows.filter(sequence__gt=since_sequence)
    found = list(rows.order_by("pk")[: limit + 1])
    return found[:limit], len(found) > limit


def last_event(match_id: int, **conditions: Any) -> int:
    """Returns the id of the last row that meets the conditions; 0 if there is none."""
    rows = MatchEvent.objects.filter(match=match_id, **conditions)
    return rows.order_by("-pk").values_list("pk", flat=True).first() or 0


def teams() -> list[dict[str, Any]]:
    """Returns all teams by id, each with its other names and with the former teams that lead to it."""
    known = {sport.value: TeamAlias.objects.names(sport.value) for sport in Sport}
    names: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for sport, alias, name in TeamAlias.objects.order_by("alias").values_list("sport", "alias", "name"):
        names[sport, identity(name, known.get(sport, {}))].append(alias)
    rows = list(Team.objects.order_by("pk"))
    former: defaultdict[int | None, list[Team]] = defaultdict(list)
    for row in rows:
        former[row.same_as_id].append(row)
    return [
        {
            "id": row.pk,
            "sport": row.sport,
            "name": row.name,
            "aliases": list(dict.fromkeys([*names[row.sport, row.key], *(one.name for one in former[row.pk])])),
            "former_ids": [one.pk for one in former[row.pk]],
        }
        for row in former[None]
    ]


def lineups_of(match_id: int) -> list[Lineup]:
    """Returns line-ups, pre-match first, the most trusted source first, with the players in the source's order."""
    rows = Lineup.objects.filter(match=match_id).select_related("source").prefetch_related("players")
    return list(rows.order_by("-snapshot_type", "-source__precedence_weight", "source__key", "side"))


def readings_of(match_id: int) -> list[MatchRef]:
    """Returns the references that were read, the most trusted source first."""
    rows = MatchRef.objects.filter(match=match_id, captured_at__isnull=False).select_related("source")
    return list(rows.order_by("-source__precedence_weight", "pk"))


def conflicts_of(match_id: int, *, is_open_only: bool) -> list[Conflict]:
    rows = Conflict.objects.filter(match=match_id)
    if is_open_only:
        rows = rows.filter(resolved_at__isnull=True)
    return list(rows.order_by("-last_seen_at", "-pk")[:MOST_CONFLICTS])


def column_of(match_id: int, name: str) -> dict[str, Any]:
    """Returns a JSON column that documents do not have: its provenance or its provisional score."""
    return Match.objects.filter(pk=match_id).values_list(name, flat=True).first() or {}


@dataclass(frozen=True)
class Difference:
    """Fields on the first level: changed ones with their new values, and removed ones."""

    changed: dict[str, Any]
    removed: list[str]


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    changed = {name: value for name, value in after.items() if name not in before or not _is_same(before[name], value)}
    return Difference(changed, [name for name in before if name not in after])


def _is_same(one: Any, other: Any) -> bool:
    """Compares as JSON: to Python 1, 1.0 and True are equal."""
    return one == other and orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        other, option=orjson.OPT_SORT_KEYS
    )


def at_sequence(match_id: int, sequence: int) -> Snapshot | None:
    """Returns the state that the match had at this sequence."""
    return Snapshot.objects.filter(match=match_id, sequence__lte=sequence).order_by("-sequence").first()


def at_time(match_id: int, moment: datetime) -> Snapshot | None:
    """Returns the state that every process served at this time: SERVED_AFTER its writing, whenever it was polled.

    To the millisecond, as in all answers. Workers' clocks differ a little: of two states in the wrong order of their
    times the earlier sequence counts.
    """
    try:
        after = moment.replace(microsecond=moment.microsecond // 1000 * 1000) + MILLISECOND - SERVED_AFTER
    except OverflowError:  # the first moment of the calendar
        return None
    rows = Snapshot.objects.filter(match=match_id)
    later = rows.filter(created_at__gte=after).order_by("sequence").values_list("sequence", flat=True).first()
    before = rows.filter(created_at__lt=after)
    return (before if later is None else before.filter(sequence__lt=later)).order_by("-sequence").first()


def served_at(snapshot: Snapshot) -> datetime:
    return snapshot.created_at + SERVED_AFTER


def oldest_kept(match_id: int) -> tuple[int, datetime] | None:
    """Returns the sequence of the oldest state that is kept, and from when on it was served."""
    oldest = Snapshot.objects.filter(match=match_id).only("sequence", "created_at").order_by("sequence").first()
    return None if oldest is None else (oldest.sequence, served_at(oldest))


def page_of_snapshots(match_id: int, *, before: int | None, limit: int) -> tuple[list[Snapshot], bool]:
    """Returns snapshots without payloads, newest first, and whether there are more."""
    rows = Snapshot.objects.filter(match=match_id).defer("payload", "provenance").order_by("-sequence")
    if before is not None:
        rows = rows.filter(sequence__lt=before)
    found = list(rows[: limit + 1])
    return found[:limit], len(found) > limit


def changed_fields(snapshot: Snapshot) -> list[str]:
    """Returns the names of the fields in which it differs from the snapshot before."""
    return sorted(name for name in snapshot.delta if not name.startswith("_"))


def _listed() -> QuerySet[Match]:
    return Match.objects.public().filter(lifecycle__in=LISTED, merged_into=None)


def _detailed() -> QuerySet[Match]:
    """Returns public matches with the data source of their latest snapshot and their references."""
    latest = Snapshot.objects.filter(match=OuterRef("pk"), sequence=OuterRef("sequence"))
    matches = Match.objects.public().annotate(data_source=Subquery(latest.values("data_source")[:1]))
    return matches.prefetch_related(Prefetch("refs", _refs_with_scrapers()))


def _refs_with_scrapers() -> QuerySet[MatchRef]:
    newest = Scraper.objects.filter(ref=OuterRef("pk")).order_by("-start_time").values("scraper_id")[:1]
    refs = MatchRef.objects.select_related("source").annotate(scraper_id=Subquery(newest), held_until=HELD_UNTIL)
    return refs.defer("payload").order_by("-source__precedence_weight", "pk")


def _has_key(name: str) -> Q:
    """Source keys and event ids may both contain underscores, so every split of the name is tried."""
    cuts = [place for place, char in enumerate(name) if char == "_"]
    parts = [Q(source__key=name[:cut], source_event_id=name[cut + 1 :]) for cut in cuts[:8]]
    return Q(pk__in=MatchRef.objects.filter(reduce(or_, parts)).values("match"))
