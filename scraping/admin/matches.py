"""Admin of matches: state, watch, importance, and the operator actions on them."""

from __future__ import annotations

from django import forms
from django.contrib import admin
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html_join
from unfold.widgets import UnfoldAdminSelectWidget

from scraping.admin import search
from scraping.admin.match_history import ending_block, lineups_block
from scraping.admin.pairings import ConflictInline, provenance_table
from scraping.documents.watch_records import silence_text
from scraping.matches import importance, lifecycle, watches
from scraping.models import Importance, Match, MatchLifecycle, MatchRef
from victoryline.lib.admin import (
    BAD,
    CAREFUL,
    GOOD,
    NEWS,
    DialogForm,
    HistoryAdmin,
    HistoryInline,
    LimitedForm,
    ReasonForm,
    column,
)
from victoryline.lib.operator_actions import OperatorAction, OperatorActionsMixin, OperatorCall, for_each

LIFECYCLE_COLOURS = {
    MatchLifecycle.ACTIVE.value: GOOD,
    MatchLifecycle.PAUSED.value: CAREFUL,
    MatchLifecycle.DISCOVERED.value: NEWS,
}
RELATED_TABLES = (
    ("scraping_scrapetask", "ref__match__id__exact", "tasks"),
    ("scraping_scrapeerror", "match__id__exact", "errors"),
    ("monitoring_auditentry", "match__id__exact", "recoveries"),
    ("scraping_matchevent", "match__id__exact", "events"),
    ("scraping_snapshot", "match__id__exact", "snapshots"),
    ("scraping_conflict", "match__id__exact", "conflicts"),
)
IMPORTANCE_COLOURS = {Importance.HIGH.label: NEWS, Importance.NORMAL.label: "", Importance.LOW.label: CAREFUL}


class ImportanceForm(DialogForm):
    importance = forms.ChoiceField(
        choices=[*((str(level.value), level.label) for level in Importance), ("", "By the rules")],
        required=False,
        widget=UnfoldAdminSelectWidget,
    )


def _set_importance(pk: int, call: OperatorCall) -> None:
    chosen = call.values["importance"]
    importance.set_by_hand(pk, Importance(int(chosen)) if chosen else None, actor=call.actor)


def _importance(match: Match) -> tuple[str, str]:
    level = Importance(match.importance).label
    return level, f"{level}, set by hand" if match.is_importance_fixed else level


def _is_watched(match: Match) -> bool:
    return any(ref.is_watched for ref in match.refs.all())


def _silence(match: Match) -> str:
    return silence_text(match, timezone.now()) or "-"


def _pace(match: Match) -> str:
    watched = [ref for ref in match.refs.all() if ref.is_watched and ref.next_poll_at]
    paces = [(ref.source.name, f"{ref.polling_interval_seconds:g}", ref.pace_reason or "-") for ref in watched]
    return format_html_join(" · ", "{}: every {} s ({})", paces) or "-"


def _age(match: Match) -> str:
    age = match.age_seconds(timezone.now())
    return "never read" if age is None else f"{age:,.0f} s"


def _related_rows(match: Match) -> str:
    links = [(reverse("incident", args=["match", match.pk]), "what happened")]
    for table, by, name in RELATED_TABLES:
        links.append((f"{reverse(f'admin:{table}_changelist')}?{by}={match.pk}", name))
    return format_html_join(" · ", '<a class="underline" href="{}">{}</a>', links)


class RefInline(HistoryInline):
    model = MatchRef
    fields = (
        "source", "source_event_id", "url", "is_watched", "next_poll_at", "polling_interval_seconds", "pace_reason",
        "read_mode", "read_mode_reason", "read_mode_since", "captured_at",
    )  # fmt: skip


@admin.register(Match)
class MatchAdmin(OperatorActionsMixin, HistoryAdmin):
    list_display = (
        "title", "key", "status", "phase", "shown_lifecycle", "shown_scraper", "age", "shown_silence",
        "shown_importance", "consecutive_failure_count", "start_time", "sport",
    )  # fmt: skip
    list_filter = ("status", "lifecycle", "scraper_status", "sport", "importance", "is_importance_fixed")
    search_fields = ("title", "team_a", "team_b", "series", "refs__source_event_id")
    date_hierarchy = "start_time"
    operate_permission = "scraping.change_match"
    operated_noun = ("match", "matches")
    operator_actions = (
        OperatorAction(
            name="pause",
            label="Pause",
            applied="Paused",
            explanation="The match is not read until the pause ends, automatically or when you resume it. "
            "Its last state stays served, with its age.",
            icon="pause",
            form=LimitedForm,
            undo="resume",
            is_offered=lambda match: MatchLifecycle.PAUSED in lifecycle.ALLOWED_TRANSITIONS[match.lifecycle],
            run=for_each(
                lambda pk, call: lifecycle.pause(
                    match_id=pk, until=call.until, reason=call.reason, actor=call.actor, now=call.now
                )
            ),
        ),
        OperatorAction(
            name="resume",
            label="Resume",
            applied="Resumed",
            explanation="The match is read again at once, and its failure count starts from zero.",
            is_offered=lambda match: match.lifecycle == MatchLifecycle.PAUSED,
            run=for_each(lambda pk, call: lifecycle.resume(match_id=pk, actor=call.actor, now=call.now)),
        ),
        OperatorAction(
            name="watch",
            label="Watch",
            applied="Watching",
            explanation="The match is polled from now on.",
            icon="visibility",
            undo="end_watch",
            is_offered=lambda match: not _is_watched(match),
            run=for_each(lambda pk, call: watches.begin(match_id=pk, actor=call.actor, now=call.now)),
        ),
        OperatorAction(
            name="end_watch",
            label="Stop watching",
            applied="No longer watching",
            explanation="The match is not polled any more. Its last state stays served, with its age.",
            icon="visibility_off",
            form=ReasonForm,
            undo="watch",
            is_offered=_is_watched,
            run=for_each(lambda pk, call: watches.end(match_id=pk, reason=call.reason, actor=call.actor, now=call.now)),
        ),
        OperatorAction(
            name="read_now",
            label="Read now",
            applied="Due at once:",
            explanation="The match is read at once, also if it is not watched. A paused one stays paused afterwards.",
            icon="bolt",
            is_offered=lambda match: match.lifecycle != MatchLifecycle.ARCHIVED,
            run=for_each(lambda pk, call: watches.read_now(match_id=pk, actor=call.actor, now=call.now)),
        ),
        OperatorAction(
            name="set_importance",
            label="Set importance",
            applied="Importance set:",
            explanation="More important matches are read more often, and first under overload. The limits of the "
            "source still apply.",
            icon="priority_high",
            form=ImportanceForm,
            run=for_each(_set_importance),
        ),
    )
    inlines = (RefInline, ConflictInline)
    game = (
        "title", "key", "related_rows", "sport", "series", "team_a", "team_b", "status", "phase", "start_time",
        "merged_into",
    )  # fmt: skip
    watch = (
        "lifecycle", "scraper_status", "age", "last_scraper_update", "last_changed_at", "completed_at", "priority",
        "shown_importance", "shown_pace", "shown_silence", "frozen_at", "pause_until", "pause_reason",
        "consecutive_failure_count", "failing_since", "total_scrapes", "total_failures",
    )  # fmt: skip
    fieldsets = (
        (None, {"fields": game}),
        ("Watch", {"fields": watch}),
        ("Line-ups", {"fields": ("shown_lineups",)}),
        ("Final record", {"fields": ("shown_ending",)}),
        ("Data", {"fields": ("sequence", "checksum", "provisional", "payload", "shown_provenance")}),
    )
    shown_lifecycle = column("lifecycle", lambda match: match.lifecycle, label=LIFECYCLE_COLOURS, ordering="lifecycle")
    shown_scraper = column(
        "scraper",
        lambda match: match.scraper_status,
        label={"active": GOOD, "stale": CAREFUL, "error": BAD},
        ordering="scraper_status",
    )
    shown_importance = column("importance", _importance, label=IMPORTANCE_COLOURS, ordering="importance")
    shown_silence = column("silence", _silence, ordering="silence_rung")
    shown_pace = column("polling", _pace)
    age = column("age", _age, ordering="last_scraper_update")
    key = column("key", lambda match: ", ".join(ref.key for ref in match.refs.all()) or "-")
    related_rows = column("related rows", _related_rows)
    shown_lineups = column("line-ups", lineups_block)
    shown_ending = column("final record", ending_block)
    shown_provenance = column("provenance", provenance_table)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Match]:
        is_list = request.resolver_match and str(request.resolver_match.url_name).endswith("_changelist")
        refs = MatchRef.objects.select_related("source").defer("payload", "source__metadata")
        rows = super().get_queryset(request).prefetch_related(Prefetch("refs", queryset=refs))
        return rows.defer("payload", "provenance") if is_list else rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Match], search_term: str
    ) -> tuple[QuerySet[Match], bool]:
        """Finds a match by its full key (crex_V4KX) too: the source and the id there."""
        refs = search.refs_by(search_term) if search_term.strip() else MatchRef.objects.none()
        if refs.exists():
            return queryset.filter(pk__in=refs.values("match")), False
        found: tuple[QuerySet[Match], bool] = super().get_search_results(request, queryset, search_term)
        return found
