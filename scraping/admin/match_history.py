"""Admin of match references, snapshots, events, line-ups, player figures and the records of completed matches."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from scraping.admin.evidence import SAFE_HEADERS
from scraping.documents.queries import lineups_of
from scraping.matches import match_logs
from scraping.models import (
    Lineup,
    LineupPlayer,
    Match,
    MatchArchive,
    MatchEvent,
    MatchRef,
    PlayerFigure,
    Snapshot,
    SnapshotType,
)
from victoryline.lib.admin import CAREFUL, GOOD, NEWS, HistoryAdmin, HistoryInline, column

KINDS = {SnapshotType.PRE_MATCH.value: "Before the start", SnapshotType.POST_MATCH.value: "After the end"}
CHECKS = ("result", "score", "figures", "events")
CHECK_LABELS = {True: "present", False: "missing", None: "not expected"}
WHEN = "%d %b %H:%M:%S UTC"
GONE = "The file is missing or was changed. A match that is still read gets a new one."
CONFIRMED, EXPECTED, INCOMPLETE = "confirmed", "expected", "fewer than eleven"


@admin.register(MatchRef)
class MatchRefAdmin(HistoryAdmin):
    list_display = (
        "key", "match", "source", "is_watched", "next_poll_at", "polling_interval_seconds", "read_mode",
        "read_mode_reason", "events_through", "events_seen",
    )  # fmt: skip
    list_filter = ("source", "is_watched", "read_mode")
    search_fields = ("source_event_id", "url", "match__title")


@admin.register(Snapshot)
class SnapshotAdmin(HistoryAdmin):
    list_display = ("match", "sequence", "data_source", "update_latency_ms", "captured_at", "created_at")
    list_filter = ("data_source",)
    search_fields = ("match__title", "checksum")
    searched_rows = 50_000
    sortable_by = ("sequence",)
    fields = (
        "match", "sequence", "checksum", "data_source", "scraper_id", "update_latency_ms", "captured_at", "created_at",
        "delta", "payload", "provenance",
    )  # fmt: skip


@admin.register(MatchEvent)
class MatchEventAdmin(HistoryAdmin):
    list_display = (
        "event_id", "match", "kind", "action", "revision", "is_current", "innings", "over", "minute", "description",
        "created_at",
    )  # fmt: skip
    list_filter = ("action", "is_current", "is_critical", "source")
    joined = ("match", "source")
    search_fields = ("event_id", "kind", "description", "match__title")
    searched_rows = 50_000
    sortable_by = ()


class PlayerInline(HistoryInline):
    model = LineupPlayer
    fields = ("place", "shirt", "name", "position", "is_starter", "is_captain", "rating", "minutes")


def _team(match: Match, side: str) -> str:
    return getattr(match, side) or side.replace("_", " ")


def _lineup_state(row: Lineup) -> str:
    return INCOMPLETE if row.xi_missing else CONFIRMED if row.is_confirmed else EXPECTED


@admin.register(Lineup)
class LineupAdmin(HistoryAdmin):
    none_yet = "No line-ups yet. They are read automatically from 72 hours before the start of a match."
    list_display = ("match", "team", "kind", "source", "formation", "shown_state", "captured_at")
    list_filter = ("snapshot_type", "is_confirmed", "xi_missing", "source")
    search_fields = ("match__title", "formation", "players__name")
    inlines = (PlayerInline,)
    team = column("team", lambda row: _team(row.match, row.side), ordering="side")
    kind = column("type", lambda row: KINDS[row.snapshot_type].lower(), ordering="snapshot_type")
    shown_state = column("state", _lineup_state, label={CONFIRMED: GOOD, EXPECTED: NEWS, INCOMPLETE: CAREFUL})


@admin.register(PlayerFigure)
class PlayerFigureAdmin(HistoryAdmin):
    none_yet = "No figures yet. They are read when a match has ended."
    list_display = ("name", "match", "team", "role", "innings", "source", "captured_at")
    list_filter = ("role", "source")
    search_fields = ("name", "player_id_ext", "match__title")
    team = column("team", lambda row: _team(row.match, row.side), ordering="side")


def _size(row: MatchArchive) -> str:
    return f"{max(1, round(row.size_bytes / 1024)):,} kB"


def _download_link(row: MatchArchive) -> SafeString:
    url = reverse("admin:scraping_matcharchive_download", args=[row.pk])
    return format_html('<a class="underline" href="{}">download</a> ({})', url, _size(row))


@admin.register(MatchArchive)
class MatchArchiveAdmin(HistoryAdmin):
    none_yet = "No match has ended yet. The record of a completed match is stored as a file and listed here."
    list_display = ("match", "file", "size", "created_at")
    search_fields = ("match__title", "file", "sha256")
    fields = ("match", "file", "size", "sha256", "created_at", "link")
    size = column("size", _size, ordering="size_bytes")
    link = column("record", _download_link)

    def get_urls(self) -> list[URLPattern]:
        download = self.admin_site.admin_view(self.download)
        return [path("<int:pk>/download/", download, name="scraping_matcharchive_download"), *super().get_urls()]

    def download(self, request: HttpRequest, pk: int) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = get_object_or_404(MatchArchive, pk=pk)
        content = match_logs.content_of(row)
        if content is None:
            raise Http404(GONE)
        disposition = f'attachment; filename="match-{row.match_id}.json.gz"'
        return HttpResponse(
            content, content_type="application/gzip", headers={**SAFE_HEADERS, "Content-Disposition": disposition}
        )


def lineups_block(match: Match) -> SafeString:
    """Renders the line-ups of both sides, per source and type."""
    groups = [
        {"kind": KINDS[kind], "source": source, **_sides(match, list(rows))}
        for (kind, source), rows in groupby(lineups_of(match.pk), key=lambda row: (row.snapshot_type, row.source.name))
    ]
    return render_to_string("admin/scraping/lineups.html", {"groups": groups})


def _sides(match: Match, rows: list[Lineup]) -> dict[str, Any]:
    sides = []
    for row in rows:
        note = "confirmed" if row.is_confirmed else "expected, not confirmed"
        players = list(row.players.all())
        lists = {
            "Starters": [one for one in players if one.is_starter],
            "Bench": [one for one in players if not one.is_starter],
        }
        sides.append(
            {
                "team": _team(match, row.side),
                "formation": row.formation,
                "note": f"{note}; fewer than eleven starters are known" if row.xi_missing else note,
                "lists": [{"title": f"{name} ({len(one)})", "players": one} for name, one in lists.items() if one],
            }
        )
    return {"read": f"{max(row.captured_at for row in rows):{WHEN}}", "sides": sides}


def ending_block(match: Match) -> SafeString:
    """Returns the completeness checks after the end of the match, with the link to its record."""
    checks = match.final_checks
    if not checks:
        return format_html("{}", "Not ended, or not checked since the end.")
    lines = [f"{name}: {CHECK_LABELS.get(checks[name], '-')}" for name in CHECKS if name in checks]
    reads = checks.get("reads", 0)
    lines.append(f"read completely {'once' if reads == 1 else f'{reads} times'} since the end")
    if checks.get("again_at"):
        lines.append(f"read again at {checks['again_at']}")
    if checks.get("given_up"):
        lines.append("missing parts are not requested any more")
    if match.final_sync_at:
        lines.append(f"complete at {match.final_sync_at:{WHEN}}")
    items = format_html_join("", "<li>{}</li>", ((line,) for line in lines))
    archive = MatchArchive.objects.filter(match=match).first()
    return format_html('<ul class="ending-list">{}</ul>{}', items, _download_link(archive) if archive else "")
