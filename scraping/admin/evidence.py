"""Admin of evidence: the documents and screenshots of failed attempts, shown as text or picture only.

The files come from foreign sites. They are served here and nowhere else, as plain text with `nosniff` and inside a
sandbox, so that no browser renders them as HTML.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from scraping.journal import evidence
from scraping.models import Evidence, EvidenceKind
from victoryline.lib.admin import HistoryAdmin, block

SHOWN_BYTES = 64 * 1024  # the rest is in the download
GONE = "The file was deleted: evidence is kept for a few days, and the oldest is deleted first."
SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-store",
}


@admin.register(Evidence)
class EvidenceAdmin(HistoryAdmin):
    list_display = ("created_at", "kind", "match", "error_message", "size", "is_truncated")
    list_filter = ("kind", "is_truncated")
    search_fields = ("path", "error__error_message", "error__match__title")
    ordering = ("-created_at",)
    fields = ("error", "match", "kind", "path", "size", "is_truncated", "created_at", "files", "content")
    readonly_fields = ("match", "size", "files", "content")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Evidence]:
        rows: QuerySet[Evidence] = super().get_queryset(request)
        return rows.select_related("error__match").defer(
            "error__evidence", "error__stack_trace", "error__match__payload", "error__match__provenance"
        )

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        ours = [
            path("<int:pk>/file/", view(self.show), name="scraping_evidence_file"),
            path("<int:pk>/download/", view(self.download), name="scraping_evidence_download"),
        ]
        return [*ours, *super().get_urls()]

    def show(self, request: HttpRequest, pk: int) -> HttpResponse:
        return self._served(request, pk, disposition="inline")

    def download(self, request: HttpRequest, pk: int) -> HttpResponse:
        return self._served(request, pk, disposition="attachment")

    def _served(self, request: HttpRequest, pk: int, *, disposition: str) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = get_object_or_404(Evidence, pk=pk)
        content = evidence.content_of(row)
        if content is None:
            raise Http404(GONE)
        is_picture = row.kind == EvidenceKind.SCREENSHOT
        name = row.path.rpartition("/")[2]
        return HttpResponse(
            content,
            content_type="image/jpeg" if is_picture else "text/plain; charset=utf-8",
            headers={**SAFE_HEADERS, "Content-Disposition": f'{disposition}; filename="{name}"'},
        )

    @admin.display(description="match")
    def match(self, row: Evidence) -> str:
        return str(row.error.match or "-")

    @admin.display(description="error")
    def error_message(self, row: Evidence) -> str:
        return row.error.error_message[:120] or "-"

    @admin.display(description="size", ordering="size_bytes")
    def size(self, row: Evidence) -> str:
        return size_of(row)

    @admin.display(description="file")
    def files(self, row: Evidence) -> SafeString:
        return links([row])

    @admin.display(description="content")
    def content(self, row: Evidence) -> SafeString:
        return preview(row)


def size_of(row: Evidence) -> str:
    cut = ", truncated" if row.is_truncated else ""
    return f"{max(1, round(row.size_bytes / 1024)):,} kB{cut}"


def links(rows: Iterable[Evidence]) -> SafeString:
    """Returns one line per file: kind, size, links to open and download it."""
    lines: list[tuple[Any, ...]] = [
        (
            row.get_kind_display(),
            size_of(row),
            reverse("admin:scraping_evidence_file", args=[row.pk]),
            reverse("admin:scraping_evidence_download", args=[row.pk]),
        )
        for row in rows
    ]
    if not lines:
        return format_html("{}", "-")
    return format_html_join(
        "",
        '<div>{} ({}): <a class="underline" href="{}" target="_blank" rel="noopener">open</a>'
        ' · <a class="underline" href="{}">download</a></div>',
        lines,
    )


def preview(row: Evidence) -> SafeString:
    """Returns the picture, or the beginning of the text, escaped."""
    if row.kind == EvidenceKind.SCREENSHOT:
        return format_html(
            '<img class="console-picture" src="{}" alt="{}">',
            reverse("admin:scraping_evidence_file", args=[row.pk]),
            row.get_kind_display(),
        )
    content = evidence.content_of(row)
    if content is None:
        return format_html("{}", GONE)
    text = block(content[:SHOWN_BYTES].decode("utf-8", errors="replace"))
    if len(content) <= SHOWN_BYTES:
        return text
    return format_html("<div>The first {} kB of {}:</div>{}", SHOWN_BYTES // 1024, size_of(row), text)
