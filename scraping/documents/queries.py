"""Reads over matches for the API and the status page: one or two queries each, whatever the number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, Literal

from django.conf import settings
from django.db.models import Case, Count, F, Max, OuterRef, Prefetch, Q, QuerySet, Subquery, When

from scraping.documents.freshness import Freshness, measure
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
)
from scraping.models.plain_text import Plain, plain
from scraping.payloads import Status

MAX_ID = 2**63 - 1
MOST_CONFLICTS = 200
SERIES_LENGTH = 200  # of the column
# Of a reference: nobody reads it before, however late it is, for the breaker of its source is open.
HELD_UNTIL = Case(When(source__breaker__state=BreakerState.OPEN, then=F("source__breaker__open_until")))


@dataclass(frozen=True, kw_only=True)
class MatchFilter:
    """Which matches to list. Archived ones only when asked for by their lifecycle.

    Asked of the database here and of what is in memory by `rendered.recall.is_wanted`: a new one belongs into both.
    """

    status: str = ""  # one, or several separated by commas
    sport: str = ""
    source: str = ""
    lifecycle: str = ""
    series: str = ""  # a part of its name
    team: str = ""  # a part of one's name
    start_from: datetime | None = None  # then or later
    start_to: datetime | None = None  # before then
    updated_since: datetime | None = None

    @property
    def statuses(self) -> tuple[str, ...]:
        return tuple(self.status.split(",")) if self.status else ()


def find_match(name: str) -> Match | None:
    """A match by its number or by its key at a source (crex_13KM), with references and scrapers."""
    if not may_be_a_name(name):
        return None
    if name.isdigit():
        match = _detailed().filter(pk=int(name)).first()
        # A match that turned out to be another one answers with that one, under whose number it is known from now on.
        return _detailed().filter(pk=match.merged_into_id).first() if match and match.merged_into_id else match
    return _detailed().filter(_has_key(name)).first()


def may_be_a_name(name: str) -> bool:
    """False: no match could ever have it, so nobody need be asked."""
    if name.isascii() and name.isdigit():
        return len(name) <= 19 and int(name) <= MAX_ID
    return "_" in name and name.isprintable()


def version_of_matches() -> str:
    """Another whenever a match or a reference has come, even one whose number is lower than the newest."""
    refs = MatchRef.objects.aggregate(newest=Max("pk"), number=Count("pk"))
    newest = Match.objects.aggregate(newest=Max("pk"))["newest"]
    return f"{refs['newest'] or 0}.{refs['number']}.{newest or 0}"


def page_of_matches(wanted: MatchFilter, *, before_id: int | None, limit: int) -> tuple[list[Match], bool]:
    """Newest first, at most `limit` of them, and whether there are more."""
    rows = _with_details(_filtered(wanted)).order_by("-pk").defer("provenance")
    if before_id is not None:
        rows = rows.filter(pk__lt=before_id)
    found = list(rows[: limit + 1])
    return found[:limit], len(found) > limit


def page_of_events(match_id: int, *, since: int, limit: int, since_sequence: int = 0) -> tuple[list[MatchEvent], bool]:
    """The match's event rows (additions, corrections, retractions) after row `since`, in the order of writing.

    Of several sources' words on one happening only the one that is believed. `since_sequence`: only what was written
    when the match had a higher number.
    """
    rows = MatchEvent.objects.filter(match=match_id, pk__gt=since, is_served=True).select_related("source")
    if since_sequence:
        # Numbers never go down from row to row, so what is new is at the end: no need to go through a long match.
        newest = list(rows.order_by("-pk")[: limit + 1])
        if len(newest) <= limit or newest[-1].sequence <= since_sequence:
            return [row for row in reversed(newest) if row.sequence > since_sequence], False
        rows = rows.filter(sequence__gt=since_sequence)
    found = list(rows.order_by("pk")[: limit + 1])
    return found[:limit], len(found) > limit


def newest_event(match_id: int) -> int:
    """Its last row, served or not: whoever has a higher number has it from elsewhere. 0 if there is none."""
    return _last_of(MatchEvent.objects.filter(match=match_id))


def last_event_until(match_id: int, sequence: int) -> int:
    """The last row that was written when the match had this number or a lower one; 0 if there is none."""
    if not sequence:
        return 0
    return _last_of(MatchEvent.objects.filter(match=match_id, is_served=True, sequence__lte=sequence))


def _last_of(rows: QuerySet[MatchEvent]) -> int:
    return rows.order_by("-pk").values_list("pk", flat=True).first() or 0


def lineups_of(match_id: int) -> list[Lineup]:
    """Before the start first, the most trusted source first, with the players in the source's order."""
    rows = Lineup.objects.filter(match=match_id).select_related("source").prefetch_related("players")
    return list(rows.order_by("-snapshot_type", "-source__precedence_weight", "source__key", "side"))


def conflicts_of(match_id: int, *, is_open_only: bool, limit: int = MOST_CONFLICTS) -> list[Conflict]:
    """What the match's sources disagree about, or did; the latest first."""
    rows = Conflict.objects.filter(match=match_id)
    if is_open_only:
        rows = rows.filter(resolved_at__isnull=True)
    return list(rows.order_by("-last_seen_at", "-pk")[:limit])


def provenance_of(match_id: int) -> dict[str, Any]:
    found = Match.objects.filter(pk=match_id).values_list("provenance", flat=True).first()
    return found or {}


def provisional_of(match_id: int) -> dict[str, Any]:
    """A score that went down and is not believed yet; empty where there is none."""
    found = Match.objects.filter(pk=match_id).values_list("provisional", flat=True).first()
    return found or {}


def known_matches(*, ids: Sequence[int] | None = None, limit: int | None = None) -> list[Match]:
    """Matches with all that an answer shows of them, newest first: these, or all that aren't archived."""
    rows = _detailed().defer("provenance").order_by("-pk")
    rows = rows.exclude(lifecycle=MatchLifecycle.ARCHIVED) if ids is None else rows.filter(pk__in=ids)
    return list(rows if limit is None else rows[:limit])


def refs_of(match_ids: Sequence[int]) -> list[MatchRef]:
    """The references of these matches with their scrapers, the most trusted source first."""
    return list(_refs_with_scrapers().filter(match__in=match_ids))


def freshness_of(match: Match, now: datetime) -> Freshness:
    """Of a match read by one of the functions above, which bring its references along."""
    due = [ref.planned_at for ref in match.refs.all() if ref.planned_at is not None]
    return measure(
        status=Status(match.status),
        scraped_at=match.last_scraper_update,
        paused_until=match.pause_until if match.lifecycle == MatchLifecycle.PAUSED else None,
        next_poll_at=min(due, default=None),
        now=now,
        stale_after=settings.CONFIG.staleness_threshold_seconds,
        frozen_at=match.frozen_at,
    )


def keys_of(match: Match) -> list[str]:
    """The match's names at its sources, the most trusted source first."""
    return [ref.key for ref in match.refs.all()]


def _detailed() -> QuerySet[Match]:
    return _with_details(Match.objects.all())


def _with_details(matches: QuerySet[Match]) -> QuerySet[Match]:
    """With all that an answer tells of them: by which way their state came in, and their references."""
    latest = Snapshot.objects.filter(match=OuterRef("pk"), sequence=OuterRef("sequence"))
    return matches.annotate(data_source=Subquery(latest.values("data_source")[:1])).prefetch_related(_refs())


def _refs() -> Prefetch[Literal["refs"]]:
    return Prefetch("refs", _refs_with_scrapers())


def _refs_with_scrapers() -> QuerySet[MatchRef]:
    newest = Scraper.objects.filter(ref=OuterRef("pk")).order_by("-start_time").values("scraper_id")[:1]
    refs = MatchRef.objects.select_related("source").annotate(scraper_id=Subquery(newest), held_until=HELD_UNTIL)
    return refs.defer("payload").order_by("-source__precedence_weight", "pk")


def _filtered(wanted: MatchFilter) -> QuerySet[Match]:
    rows: QuerySet[Match] = Match.objects.all() if wanted.lifecycle else Match.objects.watched()
    exact = {name: getattr(wanted, name) for name in ("sport", "lifecycle") if getattr(wanted, name)}
    rows = rows.filter(merged_into=None, **exact)  # a match that became part of another one is listed as that one
    if wanted.statuses:
        rows = rows.filter(status__in=wanted.statuses)
    if wanted.source:
        rows = rows.filter(pk__in=MatchRef.objects.filter(source__key=wanted.source).values("match"))
    if wanted.team:
        named, part = rows.alias(plain_a=Plain("team_a"), plain_b=Plain("team_b")), plain(wanted.team)
        rows = named.filter(Q(plain_a__contains=part) | Q(plain_b__contains=part))
    if wanted.series:  # as it was read: what a list of matches told of one that nobody has read yet is not shown either
        rows = rows.alias(plain_series=Plain("series")).filter(
            plain_series__contains=plain(wanted.series), sequence__gt=0
        )
    times = {
        "start_time__gte": wanted.start_from,
        "start_time__lt": wanted.start_to,
        "last_changed_at__gte": wanted.updated_since,
    }
    return rows.filter(**{name: moment for name, moment in times.items() if moment is not None})


def _has_key(name: str) -> Q:
    """Both a source's key and an id there may hold underscores, so every place where the name could be cut is tried."""
    cuts = [place for place, char in enumerate(name) if char == "_"]
    parts = [Q(source__key=name[:cut], source_event_id=name[cut + 1 :]) for cut in cuts[:8]]
    return Q(pk__in=MatchRef.objects.filter(reduce(or_, parts)).values("match"))
