"""Admin of evidence: the documents and screenshots of failed attempts, shown as text or picture only.

The files come from foreign sites. They are served here and nowhere else, as plain text with `nosniff` and inside a
sandbox, so that no browser renders them as HTML.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from scraping.journal import evidence
from scraping.models import Evidence, EvidenceKind
from victoryline.lib.admin import HistoryAdmin, block, column

SHOWN_BYTES = 64 * 1024  # the rest is in the download
GONE = "The file was deleted: evidence is kept for a few days, and the oldest is deleted first."
SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-store",
}


def _url(name: str, row: Evidence) -> str:
    return reverse(f"admin:scraping_evidence_{name}", args=[row.pk])


def size_of(row: Evidence) -> str:
    cut = ", truncated" if row.is_truncated else ""
    return f"{max(1, round(row.size_bytes / 1024)):,} kB{cut}"


def links(rows: Iterable[Evidence]) -> SafeString:
    """Returns one line per file: kind, size, links to open and download it."""
    lines = ((row.get_kind_display(), size_of(row), _url("file", row), _url("download", row)) for row in rows)
    listed = format_html_join(
        "",
        '<div>{} ({}): <a class="underline" href="{}" target="_blank" rel="noopener">open</a>'
        ' · <a class="underline" href="{}">download</a></div>',
        lines,
    )
    return listed or format_html("{}", "-")


def preview(row: Evidence) -> SafeString:
    """Returns the picture, or the beginning of the text, escaped."""
    if row.kind == EvidenceKind.SCREENSHOT:
        return format_html(
            '<img class="console-picture" src="{}" alt="{}">',
            _url("file", row),
            row.get_kind_display(),
        )
    content = evidence.content_of(row)
    if content is None:
        return format_html("{}", GONE)
    text = block(content[:SHOWN_BYTES].decode("utf-8", errors="replace"))
    if len(content) <= SHOWN_BYTES:
        return text
    return format_html("<div>The first {} kB of {}:</div>{}", SHOWN_BYTES // 1024, size_of(row), text)


@admin.register(Evidence)
class EvidenceAdmin(HistoryAdmin):
    list_display = ("created_at", "kind", "match", "error_message", "size", "is_truncated")
    list_filter = ("kind", "is_truncated")
    joined = ("error__match",)
    search_fields = ("path", "error__error_message", "error__match__title")
    ordering = ("-created_at",)
    fields = ("error", "match", "kind", "path", "size", "is_truncated", "created_at", "files", "content")
    match = column("match", lambda row: row.error.match or "-")
    error_message = column("error", lambda row: row.error.error_message[:120] or "-")
    size = column("size", size_of, ordering="size_bytes")
    files = column("file", lambda row: links([row]))
    content = column("content", preview)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.serve)
        ours = [
            path(f"<int:pk>/{name}/", view, {"disposition": disposition}, name=f"scraping_evidence_{name}")
            for name, disposition in (("file", "inline"), ("download", "attachment"))
        ]
        return [*ours, *super().get_urls()]

    def serve(self, request: HttpRequest, pk: int, disposition: str) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = get_object_or_404(Evidence, pk=pk)
        content = evidence.content_of(row)
        if content is None:
            raise Http404(GONE)
        is_picture = row.kind == EvidenceKind.SCREENSHOT
        name = row.path.rpartition("/")[2]
        if not is_picture:
            name = f"{name.removesuffix('.txt')}.txt"  # a page that is opened from a disk would run its scripts
        return HttpResponse(
            content,
            content_type="image/png" if is_picture else "text/plain; charset=utf-8",
            headers={**SAFE_HEADERS, "Content-Disposition": f'{disposition}; filename="{name}"'},
        )
