"""The incident page: one time line of what happened to a match, a source or the failures of an error group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone

from monitoring.admin.incident_entries import MAX_READS, Kind, Scope, audit_of_source, entries
from monitoring.alerts.alert_keys import kind_of
from monitoring.models import Alert
from scraping.models import ErrorGroup, Match, MatchRef, ScrapeError, ScrapeTask, Source
from victoryline.lib.operator_actions import find_table
from victoryline.lib.shown import ago, duration

WINDOWS = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "24h": timedelta(hours=24)}
PERMISSIONS = ("scraping.view_scrapetask", "scraping.view_scrapeerror", "monitoring.view_auditentry")
MAX_SHOWN = 300
MAX_ALERTS = 8


@dataclass(frozen=True)
class Subject:
    title: str
    state: str  # in a sentence: how it is now
    scope: Scope
    pages: tuple[tuple[str, str], ...]  # text and address
    rows: tuple[tuple[str, int], ...]  # table and key of the rows that operators act on


def _match(name: str, since: datetime) -> Subject:
    pk = _id(name)
    refs = MatchRef.objects.select_related("source").defer("payload", "source__metadata")
    match = get_object_or_404(Match.objects.defer("payload", "provenance"), pk=pk)
    of_match = list(refs.filter(match=match))
    keys = [ref.key for ref in of_match]
    # By reference, because the index is: of all references at once they would have to be sorted.
    newest = [ScrapeTask.objects.filter(ref=ref).order_by("-pk").values_list("pk", flat=True) for ref in of_match]
    tasks = Q(pk__in=[task for rows in newest for task in rows[:MAX_READS]])
    age = match.age_seconds(timezone.now())
    read = "never read" if age is None else f"read {duration(age)} ago"
    state = f"{', '.join(keys)}: {match.status}, {match.lifecycle.lower()}, scraper {match.scraper_status}, {read}."
    breakers = Q(target__in=[f"{key}_scraper" for key in keys])
    return Subject(
        str(match),
        state,
        Scope(Q(match=pk), tasks, Q(match=pk) | breakers, Q(detail__match_id=pk), tasks, since=since),
        (
            ("match", reverse("admin:scraping_match_change", args=[pk])),
            ("tasks", f"{reverse('admin:scraping_scrapetask_changelist')}?ref__match__id__exact={pk}"),
            ("errors", f"{reverse('admin:scraping_scrapeerror_changelist')}?match__id__exact={pk}"),
        ),
        (("scraping.match", pk),),
    )


def _source(key: str, since: datetime) -> Subject:
    source = get_object_or_404(Source.objects.select_related("breaker"), key=key)
    pk = source.pk
    breaker = getattr(source, "breaker", None)
    matches = MatchRef.objects.filter(source=pk).values("match")
    is_named = Q(key__endswith=f":{source.key}") | Q(key__contains=f":{source.key}:")
    state = f"{source.key}: {'enabled' if source.is_enabled else 'disabled'}"
    state += f", breaker {breaker.shown_state(timezone.now())}." if breaker else "."
    return Subject(
        source.name,
        state,
        Scope(
            Q(group__source=pk),
            Q(source=pk) & ~Q(state="SUCCESS"),
            Q(match__in=matches) | audit_of_source(source.key, breaker.name if breaker else ""),
            is_named | Q(key=f"breaker:{breaker.name if breaker else source.key}"),
            since=since,
        ),
        (
            ("source", reverse("admin:scraping_source_change", args=[pk])),
            ("error groups", f"{reverse('admin:scraping_errorgroup_changelist')}?source__id__exact={pk}"),
            ("scrapers", f"{reverse('admin:scraping_scraper_changelist')}?ref__source__id__exact={pk}"),
        ),
        (("scraping.source", pk),),
    )


def _group(name: str, since: datetime) -> Subject:
    pk = _id(name)
    group = get_object_or_404(ErrorGroup.objects.select_related("source"), pk=pk)
    recent = ScrapeError.objects.filter(group=pk, timestamp__gte=since)
    matches = {each for each in recent.values_list("match_id", flat=True)[:MAX_SHOWN] if each}
    state = f"{group.count:,} failures at {group.source}, first {group.first_seen_at:%d %b %H:%M}, last "
    state += f"{group.last_seen_at:%d %b %H:%M:%S} UTC; {len(matches)} matches in this time."
    table = reverse("admin:scraping_scrapetask_changelist")
    return Subject(
        str(group),
        state,
        Scope(
            Q(group=pk),
            Q(pk__in=recent.values("task")),
            Q(match__in=matches) | audit_of_source(group.source.key, ""),
            Q(detail__match_id__in=list(matches)) if matches else Q(pk=None),
            since=since,
        ),
        (
            ("error group", reverse("admin:scraping_errorgroup_change", args=[pk])),
            ("dead letters", f"{table}?errors__group__id__exact={pk}&state__exact=DEAD"),
        ),
        (("scraping.errorgroup", pk),),
    )


SUBJECTS: dict[str, Callable[[str, datetime], Subject]] = {"match": _match, "source": _source, "group": _group}


def _id(name: str) -> int:
    if not name.isdecimal():
        raise Http404
    return int(name)


def incident(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """GET /admin/incident/{match|source|group}/{id, or key of a source}/, with `window` and `kind`."""
    if not request.user.has_perms(PERMISSIONS):
        raise PermissionDenied
    if kind not in SUBJECTS:
        raise Http404
    now, window = timezone.now(), request.GET.get("window", "")
    window = window if window in WINDOWS else "1h"
    subject = SUBJECTS[kind](name, now - WINDOWS[window])
    found, is_cut = entries(subject.scope)
    counted = Counter(entry.kind.name.lower() for entry in found)
    chosen = request.GET.get("kind", "")
    shown = [entry for entry in found if chosen not in counted or entry.kind.name.lower() == chosen][:MAX_SHOWN]
    opened = Alert.objects.filter(subject.scope.alerts, closed_at__isnull=True).order_by("severity", "-opened_at")
    context = {
        **admin.site.each_context(request),
        "title": f"What happened: {subject.title}",
        "subject": subject,
        "actions_detail": [one for table, pk in subject.rows for one in find_table(table).buttons(request, str(pk))],
        "alerts": [(alert, kind_of(alert.key), ago(alert.opened_at, now)) for alert in opened[:MAX_ALERTS]],
        "entries": shown,
        "is_cut": is_cut or len(shown) == MAX_SHOWN,
        "window": window,
        "windows": list(WINDOWS),
        "chosen": chosen if chosen in counted else "",
        "kinds": [(each.name.lower(), each.value, counted[each.name.lower()]) for each in Kind],
    }
    return render(request, "admin/monitoring/incident.html", context)
