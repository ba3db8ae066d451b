"""The search box of the console: matches, tasks, jobs, error groups, consumers and workers, by what stands in logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from django.db.models import Model, Q
from django.http import HttpRequest
from django.urls import reverse
from unfold.dataclasses import SearchResult

from apiauth.models import Consumer
from scraping.admin.search import as_id, groups_by, refs_by
from scraping.models import ErrorGroup, Match, ScrapeJob, ScrapeTask, Worker

SHOWN = 5  # of each table
SHORTEST = 2


def find(request: HttpRequest, _: str) -> list[SearchResult]:
    """Called by unfold (COMMAND in its settings), which hands over the text in small letters."""
    term = request.GET.get("s", "").strip().replace("\x00", "")
    if not (term.isdigit() or len(term) >= SHORTEST):
        return []
    found = []
    for model, icon, rows in FINDERS:
        table = model._meta  # noqa: SLF001 - documented under this name
        if not request.user.has_perm(f"{table.app_label}.view_{table.model_name}"):
            continue
        for row in list(rows(term))[:SHOWN]:
            link = reverse(f"admin:{table.app_label}_{table.model_name}_change", args=[row.pk])
            found.append(SearchResult(str(row), _described(row), link, icon))
    return found


def _described(row: Model) -> str:
    if isinstance(row, Match):
        return ", ".join(["match", *(ref.key for ref in row.refs.all())])
    if isinstance(row, ErrorGroup):
        return f"error group, seen {row.count:,} times"
    return str(row._meta.verbose_name)  # noqa: SLF001 - documented under this name


def _matches(term: str) -> Iterable[Match]:
    refs = list(refs_by(term).order_by("-pk").values_list("match", flat=True)[: 2 * SHOWN])
    return Match.objects.filter(pk__in=refs).prefetch_related("refs__source").defer("payload", "provenance")


def _tasks(term: str) -> Iterable[ScrapeTask]:
    try:
        return ScrapeTask.objects.filter(request_id=UUID(term))
    except ValueError:
        pk = as_id(term)
        return () if pk is None else ScrapeTask.objects.filter(pk=pk)


def _jobs(term: str) -> Iterable[ScrapeJob]:
    pk = as_id(term)
    wanted = Q(name__icontains=term) if pk is None else Q(pk=pk)
    return ScrapeJob.objects.filter(wanted).order_by("-pk")[:SHOWN]


def _consumers(term: str) -> Iterable[Consumer]:
    return Consumer.objects.filter(Q(name__icontains=term) | Q(keys__prefix=term.lower())).distinct()[:SHOWN]


def _workers(term: str) -> Iterable[Worker]:
    return Worker.objects.filter(worker_id__icontains=term).order_by("-heartbeat_at")[:SHOWN]


FINDERS: tuple[tuple[type[Model], str, Callable[[str], Iterable[Model]]], ...] = (
    (Match, "sports_score", _matches),
    (ScrapeTask, "checklist", _tasks),
    (ScrapeJob, "work", _jobs),
    (ErrorGroup, "bug_report", lambda term: groups_by(term)[:SHOWN]),
    (Consumer, "group", _consumers),
    (Worker, "memory", _workers),
)
