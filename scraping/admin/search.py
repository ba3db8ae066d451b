"""Search of the console by what stands in logs and alerts, through indexes and small tables only.

A task is found by its id or request id; by its match (key, id at the source, URL, teams); by the group of its error
(text, code, fingerprint); by the worker that holds it. Errors likewise. Nothing reads a table of millions of rows.
"""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q, QuerySet

from scraping.models import ErrorGroup, Match, MatchRef, ScrapeError, Source, TaskState

MOST_REFS, MOST_GROUPS, MOST_TASKS = 200, 50, 2000
LONGEST_ID = 18  # digits; a longer number is no id
SHORTEST_FINGERPRINT = 8


def as_id(term: str) -> int | None:
    return int(term) if term.isascii() and term.isdigit() and len(term) <= LONGEST_ID else None


def refs_by(term: str) -> QuerySet[MatchRef]:
    """Returns references by key (crex_V4KX), id at the source, or URL; else those of matches by teams and title."""
    term = term.strip()
    if "://" in term:
        return MatchRef.objects.filter(url__in=(term, term.rstrip("/"), f"{term}/"))
    known = Q(source_event_id__in=_spellings(term))
    for source in Source.objects.values_list("key", flat=True):
        if term.lower().startswith(f"{source}_"):
            known |= Q(source__key=source, source_event_id__in=_spellings(term[len(source) + 1 :]))
    found = MatchRef.objects.filter(known)
    return found if found.exists() else MatchRef.objects.filter(match__in=_matches_named(term))


def _matches_named(term: str) -> QuerySet[Match]:
    named = Match.objects.all()
    for word in term.split():
        named = named.filter(
            Q(title__icontains=word) | Q(team_a__icontains=word) | Q(team_b__icontains=word) | Q(series__icontains=word)
        )
    return named


def groups_by(term: str) -> QuerySet[ErrorGroup]:
    """Returns error groups by text, code, or the beginning of the fingerprint."""
    wanted = Q(sample_message__icontains=term) | Q(error_code__iexact=term)
    if len(term) >= SHORTEST_FINGERPRINT:
        wanted |= Q(fingerprint__startswith=term)
    return ErrorGroup.objects.filter(wanted).order_by("-last_seen_at")


def tasks_by(term: str) -> Q:
    """Returns the condition on tasks."""
    term = term.strip()
    if (request_id := _uuid(term)) is not None:
        return Q(request_id=request_id)
    refs = list(refs_by(term).values_list("pk", flat=True)[:MOST_REFS])
    if (pk := as_id(term)) is not None:
        return Q(pk=pk) | Q(ref__in=refs)
    if refs:
        return Q(ref__in=refs)
    groups = list(groups_by(term).values_list("pk", flat=True)[:MOST_GROUPS])
    failed = ScrapeError.objects.filter(group__in=groups, task__isnull=False).order_by("-pk")
    tasks = list(failed.values_list("task", flat=True)[:MOST_TASKS]) if groups else []
    return Q(pk__in=tasks) | Q(state=TaskState.EXECUTING, worker_id=term)


def errors_by(term: str) -> Q:
    """Returns the condition on failed attempts."""
    term = term.strip()
    matches = list(refs_by(term).values_list("match", flat=True)[:MOST_REFS])
    if matches:
        return Q(match__in=matches)
    if (pk := as_id(term)) is not None:
        return Q(pk=pk) | Q(task=pk)
    return Q(group__in=list(groups_by(term).values_list("pk", flat=True)[:MOST_GROUPS]))


def _spellings(event_id: str) -> set[str]:
    return {event_id, event_id.upper(), event_id.lower()}


def _uuid(term: str) -> UUID | None:
    try:
        return UUID(term)
    except ValueError:
        return None
