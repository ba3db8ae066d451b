"""Admin of matches at several sources: pairs that may be one match, team aliases, conflicts and provenance."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from scraping.matches import pairing, teams
from scraping.matches.reconcile.disagreement import as_text
from scraping.models import Conflict, Match, PairingReview, PairingState, Source, Team, TeamAlias
from victoryline.lib.admin import (
    CAREFUL,
    GOOD,
    NEWS,
    ConsoleAdmin,
    HistoryAdmin,
    HistoryInline,
    ReasonForm,
    column,
    presence_filter,
)
from victoryline.lib.operator_actions import OperatorAction, OperatorActionsMixin, for_each

COLOURS = {PairingState.OPEN.value: CAREFUL, PairingState.JOINED.value: GOOD, PairingState.APART.value: NEWS}
UNKNOWN = "unknown"


def _summary(match: Match) -> str:
    start = f"{match.start_time:%d %b %H:%M}" if match.start_time else "start unknown"
    return f"{match} ({start}; {', '.join(ref.source.key for ref in match.refs.all()) or 'no source'})"


def _facts(match: Match) -> dict[str, object]:
    url = reverse("admin:scraping_match_change", args=[match.pk])
    return {
        "match": format_html('<a class="underline" href="{}">{}</a>', url, str(match)),
        "teams": " and ".join(filter(None, (match.team_a, match.team_b))) or UNKNOWN,
        "start": f"{match.start_time:%d %b %Y %H:%M} UTC" if match.start_time else UNKNOWN,
        "series": match.series or UNKNOWN,
        "status": f"{match.status}, {match.phase}",
        "sources": ", ".join(ref.key for ref in match.refs.all()) or "none",
    }


def _side_by_side(review: PairingReview) -> SafeString:
    first, second = _facts(review.match), _facts(review.candidate)
    return format_html(
        '<div class="console-scroll"><table class="console-table text-xs">{}</table></div>',
        format_html_join(
            "", "<tr><th>{}</th><td>{}</td><td>{}</td></tr>", ((name, first[name], second[name]) for name in first)
        ),
    )


@admin.register(PairingReview)
class PairingReviewAdmin(OperatorActionsMixin, HistoryAdmin):
    none_yet = (
        "No pair needs a decision. Two matches of different sources appear here when their teams, start and series "
        "do not decide whether they are the same match."
    )
    list_display = ("first", "second", "score", "why", "shown_state", "decided_by", "created_at")
    list_filter = ("state", "match__sport")
    joined = ("match", "candidate")
    search_fields = ("match__title", "candidate__title")
    ordering = ("-created_at",)
    fields = ("side_by_side", "score", "why", "state", "decided_by", "decided_at", "created_at")
    operate_permission = "scraping.change_match"
    operated_noun = ("pair", "pairs")
    operator_actions = (
        OperatorAction(
            name="join",
            label="Same match",
            applied="Joined",
            explanation="The data of the newer match becomes part of the older one, its id redirects there, and both "
            "sources are read for it from now on. This cannot be undone.",
            icon="merge",
            is_for_selection=False,
            run=for_each(lambda pk, call: pairing.merge_reviewed(pk, actor=call.actor, now=call.now)),
        ),
        OperatorAction(
            name="keep_apart",
            label="Different matches",
            applied="Kept apart",
            explanation="They stay two matches, and this pair is not listed for review again.",
            icon="call_split",
            is_for_selection=False,
            run=for_each(lambda pk, call: pairing.keep_apart(pk, actor=call.actor, now=call.now)),
        ),
    )
    first = column("match", lambda review: _summary(review.match))
    second = column("may be the same as", lambda review: _summary(review.candidate))
    why = column("reasons", lambda review: "; ".join(str(reason) for reason in review.reasons))
    shown_state = column("state", lambda review: review.state, label=COLOURS, ordering="state")
    side_by_side = column("comparison", _side_by_side)

    def get_queryset(self, request: HttpRequest) -> QuerySet[PairingReview]:
        return super().get_queryset(request).prefetch_related("match__refs__source", "candidate__refs__source")


@admin.register(TeamAlias)
class TeamAliasAdmin(OperatorActionsMixin, ConsoleAdmin):
    list_display = ("alias", "name", "sport")
    list_filter = ("sport",)
    search_fields = ("alias", "name")
    fields = ("sport", "alias", "name")
    operate_permission = "scraping.delete_teamalias"
    operated_noun = ("team name", "team names")
    operator_actions = (
        OperatorAction(
            name="delete",
            label="Delete",
            applied="Deleted",
            explanation="Its matches get the team of the name as it is written. Matches that were joined stay joined.",
            icon="delete",
            form=ReasonForm,
            is_for_selection=False,
            run=for_each(lambda pk, call: teams.delete_alias(pk, actor=call.actor, reason=call.reason, now=call.now)),
        ),
    )

    def save_model(self, request: HttpRequest, obj: TeamAlias, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        teams.assign_all(timezone.now())

    def has_delete_permission(self, request: HttpRequest, obj: TeamAlias | None = None) -> bool:
        """Deleted by the action, which asks for the reason."""
        return False


@admin.register(Team)
class TeamAdmin(HistoryAdmin):
    none_yet = "No teams yet. Each side of a match becomes one, known by its name and the team aliases."
    list_display = ("id", "name", "sport", "same_as", "created_at")
    list_filter = ("sport", presence_filter("state", "same_as", absent="own", present="another team"))
    search_fields = ("name", "key")


LONGEST_VALUE = 80
COLUMNS = ("field", "served", "not_served", "difference")


def _claim(value: object, source: str, source_id: int | None) -> str:
    """Returns a value with a link to its source, whose weight decides which one is served."""
    if source_id is None:
        return f"{as_text(value)[:LONGEST_VALUE]} ({source})"
    url = reverse("admin:scraping_source_change", args=[source_id])
    return format_html('{} (<a class="underline" href="{}">{}</a>)', as_text(value)[:LONGEST_VALUE], url, source)


def _difference(conflict: Conflict) -> str:
    percent = conflict.difference_percent
    return "-" if percent is None else f"{percent:g} %"


class ComparedValues:
    """The columns that compare the served value with the other one, each with its source."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conflict]:
        rows: QuerySet[Conflict] = super().get_queryset(request)  # type: ignore[misc]  # of the admin or inline beside it
        chosen, other = (Source.objects.filter(key=OuterRef(f"{name}_source")) for name in ("chosen", "other"))
        return rows.annotate(chosen_id=Subquery(chosen.values("pk")[:1]), other_id=Subquery(other.values("pk")[:1]))

    served = column(
        "served", lambda row: _claim(row.chosen_value, row.chosen_source, row.chosen_id), ordering="chosen_source"
    )
    not_served = column(
        "not served", lambda row: _claim(row.other_value, row.other_source, row.other_id), ordering="other_source"
    )
    difference = column("difference", _difference, ordering="difference_percent")


@admin.register(Conflict)
class ConflictAdmin(ComparedValues, HistoryAdmin):
    none_yet = (
        "No conflicts so far. A row appears when two sources of a match differ by more than 5 % in a score, or "
        "contradict each other in status, toss, teams or start."
    )
    list_display = ("match", "shown_state", *COLUMNS, "times_seen", "first_seen_at", "last_seen_at")
    list_filter = (
        presence_filter("state", "resolved_at", absent="open", present="agreed"),
        "chosen_source",
        "other_source",
        "field",
    )
    search_fields = ("field", "match__title", "chosen_source", "other_source")
    ordering = ("-last_seen_at",)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup == "match__id__exact" or bool(super().lookup_allowed(lookup, value, request))

    shown_state = column(
        "state", lambda row: "open" if row.resolved_at is None else "agreed", label={"open": CAREFUL, "agreed": GOOD}
    )


class ConflictInline(ComparedValues, HistoryInline):
    model = Conflict
    verbose_name_plural = "open conflicts between its sources"
    fields = (*COLUMNS, "times_seen", "first_seen_at", "last_seen_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conflict]:
        rows: QuerySet[Conflict] = super().get_queryset(request)
        return rows.filter(resolved_at__isnull=True)


def provenance_table(match: Match) -> SafeString:
    """Returns a table of the served fields: value, source, age, and the values of other sources."""
    if not match.provenance:
        return format_html("{}", "Not read yet.")
    now = timezone.now()
    lines = [
        (
            field,
            as_text(match.payload.get(field))[:LONGEST_VALUE],
            _source_of(entry),
            _age(entry, now),
            "; ".join(f"{_source_of(one)}: {one.get('value')}, {_age(one, now)}" for one in entry.get("others", ())),
        )
        for field, entry in sorted(match.provenance.items())
    ]
    return format_html(
        '<div class="console-scroll"><table class="console-table text-xs"><tr>{}</tr>{}</table></div>',
        format_html_join("", "<th>{}</th>", ((name,) for name in ("field", "value", "source", "age", "other sources"))),
        format_html_join("", "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>", lines),
    )


def _source_of(entry: dict[str, Any]) -> str:
    sure = entry.get("confidence", 1.0)
    return str(entry.get("source", "?")) if sure == 1.0 else f"{entry.get('source', '?')} (confidence {sure})"


def _age(entry: dict[str, Any], now: datetime) -> str:
    try:
        at = datetime.fromisoformat(str(entry.get("timestamp")))
    except ValueError:
        return "?"
    return f"{max(0.0, (now - at).total_seconds()):,.0f} s"
