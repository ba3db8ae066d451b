"""Values that no schema knows yet: the first sign that a source has changed."""

from __future__ import annotations

from django.contrib import admin

from scraping.models import UnknownValue
from victoryline.lib.admin import HistoryAdmin


@admin.register(UnknownValue)
class UnknownValueAdmin(HistoryAdmin):
    none_yet = "Every value that the sources sent is known. One that is in no table appears here and is counted."
    list_display = ("path", "value", "source", "payload_schema", "times_seen", "first_seen_at", "last_seen_at")
    list_filter = ("source", "payload_schema")
    list_select_related = ("source",)
    search_fields = ("path", "value", "payload_schema")
    ordering = ("-last_seen_at",)
