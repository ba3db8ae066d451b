"""Admin of line-ups, player figures and the archived records of completed matches."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import display

from scraping.admin.evidence import SAFE_HEADERS
from scraping.documents.queries import lineups_of
from scraping.matches import match_logs
from scraping.models import Lineup, LineupPlayer, Match, MatchArchive, PlayerFigure, SnapshotType
from victoryline.lib.admin import CAREFUL, GOOD, NEWS, HistoryAdmin, HistoryInline, json_block

KINDS = {SnapshotType.PRE_MATCH.value: "Before the start", SnapshotType.POST_MATCH.value: "After the end"}
CHECKS = ("result", "score", "figures", "events")
CHECK_LABELS = {True: "present", False: "missing", None: "not expected"}
WHEN = "%d %b %H:%M:%S UTC"
GONE = "The file is missing or was changed. A match that is still read gets a new one."


CONFIRMED, EXPECTED, INCOMPLETE = "confirmed", "expected", "fewer than eleven"
STATE_COLOURS = {CONFIRMED: GOOD, EXPECTED: NEWS, INCOMPLETE: CAREFUL}


class PlayerInline(HistoryInline):
    model = LineupPlayer
    fields = ("place", "shirt", "name", "position", "is_starter", "is_captain", "rating", "minutes")
    readonly_fields = fields


@admin.register(Lineup)
class LineupAdmin(HistoryAdmin):
    none_yet = "No line-ups yet. They are read automatically from 72 hours before the start of a match."
    list_display = ("match", "team", "kind", "source", "formation", "shown_state", "captured_at")
    list_filter = ("snapshot_type", "is_confirmed", "xi_missing", "source")
    list_select_related = ("match", "source")
    search_fields = ("match__title", "formation", "players__name")
    ordering = ("-id",)
    inlines = (PlayerInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Lineup]:
        rows: QuerySet[Lineup] = super().get_queryset(request)
        return rows.defer("match__payload", "match__provenance")

    @admin.display(description="team", ordering="side")
    def team(self, row: Lineup) -> str:
        return _team(row.match, row.side)

    @admin.display(description="type", ordering="snapshot_type")
    def kind(self, row: Lineup) -> str:
        return KINDS.get(row.snapshot_type, row.snapshot_type).lower()

    @display(description="state", label=STATE_COLOURS)  # type: ignore[untyped-decorator]
    def shown_state(self, row: Lineup) -> str:
        if row.xi_missing:
            return INCOMPLETE
        return CONFIRMED if row.is_confirmed else EXPECTED


@admin.register(LineupPlayer)
class LineupPlayerAdmin(HistoryAdmin):
    list_display = ("name", "lineup", "position", "shirt", "is_starter", "is_captain", "rating", "minutes")
    list_filter = ("is_starter", "is_captain", "lineup__snapshot_type")
    list_select_related = ("lineup",)
    search_fields = ("name", "player_id_ext")
    ordering = ("-id",)


@admin.register(PlayerFigure)
class PlayerFigureAdmin(HistoryAdmin):
    none_yet = "No figures yet. They are read when a match has ended."
    list_display = ("name", "match", "team", "role", "innings", "source", "captured_at")
    list_filter = ("role", "source")
    list_select_related = ("match", "source")
    search_fields = ("name", "player_id_ext", "match__title")
    ordering = ("-id",)
    exclude = ("values",)
    readonly_fields = ("shown_values",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[PlayerFigure]:
        rows: QuerySet[PlayerFigure] = super().get_queryset(request)
        return rows.defer("match__payload", "match__provenance")

    @admin.display(description="team", ordering="side")
    def team(self, figure: PlayerFigure) -> str:
        return _team(figure.match, figure.side)

    @admin.display(description="figures")
    def shown_values(self, figure: PlayerFigure) -> SafeString:
        return json_block(figure.values)


@admin.register(MatchArchive)
class MatchArchiveAdmin(HistoryAdmin):
    none_yet = "No match has ended yet. The record of a completed match is stored as a file and listed here."
    list_display = ("match", "file", "size", "created_at")
    search_fields = ("match__title", "file", "sha256")
    ordering = ("-id",)
    fields = ("match", "file", "size", "sha256", "created_at", "link")
    readonly_fields = ("size", "link")

    def get_queryset(self, request: HttpRequest) -> QuerySet[MatchArchive]:
        rows: QuerySet[MatchArchive] = super().get_queryset(request)
        return rows.select_related("match").defer("match__payload", "match__provenance")

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
        name = f"match-{row.match_id}.json.gz"
        return HttpResponse(
            content,
            content_type="application/gzip",
            headers={**SAFE_HEADERS, "Content-Disposition": f'attachment; filename="{name}"'},
        )

    @admin.display(description="size", ordering="size_bytes")
    def size(self, row: MatchArchive) -> str:
        return size_of(row)

    @admin.display(description="record")
    def link(self, row: MatchArchive) -> SafeString:
        return download_link(row)


def size_of(row: MatchArchive) -> str:
    return f"{max(1, round(row.size_bytes / 1024)):,} kB"


def download_link(row: MatchArchive) -> SafeString:
    url = reverse("admin:scraping_matcharchive_download", args=[row.pk])
    return format_html('<a class="underline" href="{}">download</a> ({})', url, size_of(row))


def lineups_block(match: Match) -> SafeString:
    """Renders the line-ups of both sides, per source and type."""
    rows = groupby(lineups_of(match.pk), key=lambda row: (row.snapshot_type, row.source.name))
    groups = [_group(match, kind, source, list(sides)) for (kind, source), sides in rows]
    return render_to_string("admin/scraping/lineups.html", {"groups": groups})


def _group(match: Match, kind: str, source: str, sides: list[Lineup]) -> dict[str, Any]:
    newest = max(row.captured_at for row in sides)
    return {
        "kind": KINDS.get(kind, kind),
        "source": source,
        "read": f"{newest:{WHEN}}",
        "sides": [
            {
                "team": _team(match, row.side),
                "formation": row.formation,
                "note": _note(row),
                "lists": _lists(row.players.all()),
            }
            for row in sides
        ],
    }


def _team(match: Match, side: str) -> str:
    return getattr(match, side) or side.replace("_", " ")


def _note(row: Lineup) -> str:
    confirmed = "confirmed" if row.is_confirmed else "expected, not confirmed"
    return f"{confirmed}; fewer than eleven starters are known" if row.xi_missing else confirmed


def _lists(players: Iterable[LineupPlayer]) -> list[dict[str, Any]]:
    known = list(players)
    lists = (("Starters", [one for one in known if one.is_starter]), ("Bench", [o for o in known if not o.is_starter]))
    return [{"title": f"{title} ({len(one)})", "players": one} for title, one in lists if one]


def ending_block(match: Match) -> SafeString:
    """Returns the completeness checks after the end of the match, with the link to its record."""
    checks = match.final_checks
    if not checks:
        return format_html("{}", "Not ended, or not checked since the end.")
    lines = [(f"{name}: {CHECK_LABELS.get(checks[name], '-')}",) for name in CHECKS if name in checks]
    reads = checks.get("reads", 0)
    lines.append((f"read completely {'once' if reads == 1 else f'{reads} times'} since the end",))
    if checks.get("again_at"):
        lines.append((f"read again at {checks['again_at']}",))
    if checks.get("given_up"):
        lines.append(("missing parts are not requested any more",))
    if match.final_sync_at:
        lines.append((f"complete at {match.final_sync_at:{WHEN}}",))
    listed = format_html('<ul class="ending-list">{}</ul>', format_html_join("", "<li>{}</li>", lines))
    archive = MatchArchive.objects.filter(match=match).first()
    return format_html("{}{}", listed, download_link(archive)) if archive else listed
