"""Matches, with pause and resume."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html_join
from unfold.decorators import display
from unfold.forms import BaseDialogForm

from scraping.admin.conflicts import ConflictInline, provenance_table
from scraping.admin.lineups import ending_block, lineups_block
from scraping.admin.match_watch import WatchColumns
from scraping.matches import lifecycle, watches
from scraping.models import Match, MatchLifecycle, MatchRef, Source
from victoryline.lib.admin import (
    BAD,
    CAREFUL,
    GOOD,
    NEWS,
    USUAL_MINUTES,
    HistoryAdmin,
    HistoryInline,
    LimitedForm,
    after_dialog,
    asks_first,
    json_block,
    tell,
    username,
)

LIFECYCLE_COLOURS = {
    MatchLifecycle.ACTIVE.value: GOOD,
    MatchLifecycle.PAUSED.value: CAREFUL,
    MatchLifecycle.DISCOVERED.value: NEWS,
}
OF_A_MATCH = (
    ("scraping_scrapetask", "ref__match__id__exact", "tasks"),
    ("scraping_scrapeerror", "match__id__exact", "errors"),
    ("monitoring_auditentry", "match__id__exact", "recoveries"),
    ("scraping_matchevent", "match__id__exact", "events"),
    ("scraping_snapshot", "match__id__exact", "snapshots"),
    ("scraping_conflict", "match__id__exact", "conflicts"),
)
SCRAPER_COLOURS = {"active": GOOD, "stale": CAREFUL, "error": BAD}


class RefInline(HistoryInline):
    model = MatchRef
    fields = (
        "source",
        "source_event_id",
        "url",
        "is_watched",
        "next_poll_at",
        "polling_interval_seconds",
        "pace_reason",
        "read_mode",
        "read_mode_reason",
        "read_mode_since",
        "captured_at",
    )
    readonly_fields = fields


@admin.register(Match)
class MatchAdmin(WatchColumns, HistoryAdmin):
    list_display = (
        "title",
        "key",
        "status",
        "phase",
        "shown_lifecycle",
        "shown_scraper",
        "age",
        "shown_silence",
        "shown_importance",
        "consecutive_failure_count",
        "start_time",
        "sport",
    )
    list_filter = ("status", "lifecycle", "scraper_status", "sport", "importance", "is_importance_fixed")
    search_fields = ("title", "team_a", "team_b", "series", "refs__source_event_id")
    ordering = ("-id",)
    date_hierarchy = "start_time"
    actions = (
        *("pause_selected", "resume_selected", "watch_selected", "end_watch_of_selected"),
        *WatchColumns.IMPORTANCE_ACTIONS,
    )
    actions_detail = ("pause_one", "resume_one", "set_importance_one")
    inlines = (RefInline, ConflictInline)
    readonly_fields = (
        *("shown_payload", "shown_provenance", "age", "key", "look_further", "shown_lineups", "shown_ending"),
        *("shown_provisional", "shown_importance", "shown_silence", "shown_pace"),
    )
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "title",
                    "key",
                    "look_further",
                    "sport",
                    "series",
                    "team_a",
                    "team_b",
                    "status",
                    "phase",
                    "start_time",
                    "merged_into",
                )
            },
        ),
        (
            "Watch",
            {
                "fields": (
                    "lifecycle",
                    "scraper_status",
                    "age",
                    "last_scraper_update",
                    "last_changed_at",
                    "completed_at",
                    "priority",
                    "shown_importance",
                    "shown_pace",
                    "shown_silence",
                    "frozen_at",
                    "pause_until",
                    "pause_reason",
                    "consecutive_failure_count",
                    "failing_since",
                    "total_scrapes",
                    "total_failures",
                )
            },
        ),
        ("Line-ups", {"fields": ("shown_lineups",)}),
        ("The end", {"fields": ("shown_ending",)}),
        ("Data", {"fields": ("sequence", "checksum", "shown_provisional", "shown_payload", "shown_provenance")}),
    )

    @display(description="lifecycle", label=LIFECYCLE_COLOURS, ordering="lifecycle")  # type: ignore[untyped-decorator]
    def shown_lifecycle(self, match: Match) -> str:
        return match.lifecycle

    @display(description="scraper", label=SCRAPER_COLOURS, ordering="scraper_status")  # type: ignore[untyped-decorator]
    def shown_scraper(self, match: Match) -> str:
        return match.scraper_status

    @admin.display(description="age", ordering="last_scraper_update")
    def age(self, match: Match) -> str:
        age = match.age_seconds(timezone.now())
        return "never read" if age is None else f"{age:,.0f} s"

    @admin.display(description="key")
    def key(self, match: Match) -> str:
        return ", ".join(ref.key for ref in match.refs.all()) or "-"

    @admin.display(description="see its")
    def look_further(self, match: Match) -> str:
        links = [(reverse(f"admin:{table}_changelist"), column, match.pk, name) for table, column, name in OF_A_MATCH]
        return format_html_join(" · ", '<a class="underline" href="{}?{}={}">{}</a>', links)

    @admin.display(description="who plays")
    def shown_lineups(self, match: Match) -> str:
        return lineups_block(match)

    @admin.display(description="what is there")
    def shown_ending(self, match: Match) -> str:
        return ending_block(match)

    @admin.display(description="payload")
    def shown_payload(self, match: Match) -> str:
        return json_block(match.payload)

    @admin.display(description="waits to be confirmed")
    def shown_provisional(self, match: Match) -> str:
        return json_block(match.provisional)

    @admin.display(description="where it is from")
    def shown_provenance(self, match: Match) -> str:
        return provenance_table(match)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Match]:
        rows: QuerySet[Match] = super().get_queryset(request)
        is_list = request.resolver_match and str(request.resolver_match.url_name).endswith("_changelist")
        refs = MatchRef.objects.select_related("source").defer("payload", "source__metadata")
        rows = rows.prefetch_related(Prefetch("refs", queryset=refs))
        return rows.defer("payload", "provenance") if is_list else rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Match], search_term: str
    ) -> tuple[QuerySet[Match], bool]:
        """A whole key (crex_V4KX) is its source and its name there."""
        key = search_term.strip()
        for source in Source.objects.values_list("key", flat=True):
            event_id = key.removeprefix(f"{source}_")
            if event_id and event_id != key:
                return queryset.filter(refs__source__key=source, refs__source_event_id=event_id), False
        found: tuple[QuerySet[Match], bool] = super().get_search_results(request, queryset, search_term)
        return found

    def has_operate_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(request.user.has_perm("scraping.change_match"))

    @admin.action(description=f"Pause for {USUAL_MINUTES} minutes", permissions=["operate"])
    def pause_selected(self, request: HttpRequest, matches: QuerySet[Match]) -> None:
        _pause(request, list(matches.values_list("pk", flat=True)), minutes=USUAL_MINUTES, reason="paused in the admin")

    @admin.action(description="Resume", permissions=["operate"])
    def resume_selected(self, request: HttpRequest, matches: QuerySet[Match]) -> None:
        _resume(request, list(matches.values_list("pk", flat=True)))

    @admin.action(description="Watch: read it from now on", permissions=["operate"])
    def watch_selected(self, request: HttpRequest, matches: QuerySet[Match]) -> None:
        _watch(request, list(matches.values_list("pk", flat=True)))

    @admin.action(description="End the watch: read it no more", permissions=["operate"])
    def end_watch_of_selected(self, request: HttpRequest, matches: QuerySet[Match]) -> None:
        _end_watch(request, list(matches.values_list("pk", flat=True)))

    @asks_first(
        "Pause",
        icon="pause",
        permission="operate",
        title="Pause this match",
        explanation="It is not read until the pause ends, by itself or when you resume it.",
        button="Pause",
        form=LimitedForm,
    )
    def pause_one(self, request: HttpRequest, form: LimitedForm, object_id: int) -> HttpResponse:
        _pause(request, [object_id], minutes=form.cleaned_data["minutes"], reason=form.cleaned_data["reason"])
        return after_dialog(request, reverse("admin:scraping_match_change", args=[object_id]))

    @asks_first(
        "Resume",
        icon="play_arrow",
        permission="operate",
        title="Resume this match",
        explanation="It is read again at once, and its failures are forgotten.",
        button="Resume",
    )
    def resume_one(self, request: HttpRequest, form: BaseDialogForm, object_id: int) -> HttpResponse:
        _resume(request, [object_id])
        return after_dialog(request, reverse("admin:scraping_match_change", args=[object_id]))


def _pause(request: HttpRequest, ids: list[int], *, minutes: int, reason: str) -> None:
    now, refusals = timezone.now(), []
    for pk in ids:
        try:
            lifecycle.pause(
                match_id=pk, until=now + timedelta(minutes=minutes), reason=reason, actor=username(request), now=now
            )
        except (lifecycle.NotAllowed, Match.DoesNotExist) as refusal:
            refusals.append(str(refusal))
    _tell(request, "Paused", len(ids) - len(refusals), refusals)


def _resume(request: HttpRequest, ids: list[int]) -> None:
    now, refusals = timezone.now(), []
    for pk in ids:
        try:
            lifecycle.resume(match_id=pk, actor=username(request), now=now)
        except (lifecycle.NotAllowed, Match.DoesNotExist) as refusal:
            refusals.append(str(refusal))
    _tell(request, "Resumed", len(ids) - len(refusals), refusals)


def _watch(request: HttpRequest, ids: list[int]) -> None:
    now, refusals = timezone.now(), []
    for pk in ids:
        try:
            watches.begin(match_id=pk, actor=username(request), now=now)
        except (lifecycle.NotAllowed, watches.PutOff, Match.DoesNotExist) as refusal:
            refusals.append(str(refusal))
    _tell(request, "Watching", len(ids) - len(refusals), refusals)


def _end_watch(request: HttpRequest, ids: list[int]) -> None:
    now, refusals = timezone.now(), []
    for pk in ids:
        try:
            watches.end(match_id=pk, reason="ended in the admin", actor=username(request), now=now)
        except (lifecycle.NotAllowed, Match.DoesNotExist) as refusal:
            refusals.append(str(refusal))
    _tell(request, "No longer watching", len(ids) - len(refusals), refusals)


def _tell(request: HttpRequest, verb: str, done: int, refusals: list[str]) -> None:
    tell(
        request,
        done=f"{verb} {done} {'match' if done == 1 else 'matches'}." if done else "",
        refused=f"Not done: {'; '.join(refusals[:5])}." if refusals else "",
    )
