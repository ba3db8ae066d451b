"""Admin of pairing reviews (pairs of matches that may be the same one) and of team aliases."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.forms import BaseDialogForm

from scraping.matches import pairing
from scraping.models import Match, PairingReview, PairingState, TeamAlias
from victoryline.lib.admin import (
    CAREFUL,
    GOOD,
    NEWS,
    ConsoleAdmin,
    HistoryAdmin,
    after_dialog,
    asks_first,
    report_outcome,
    username,
)

COLOURS = {PairingState.OPEN.value: CAREFUL, PairingState.JOINED.value: GOOD, PairingState.APART.value: NEWS}
UNKNOWN = "unknown"


@admin.register(PairingReview)
class PairingReviewAdmin(HistoryAdmin):
    none_yet = (
        "No pair needs a decision. Two matches of different sources appear here when their teams, start and series "
        "do not decide whether they are the same match."
    )
    list_display = ("first", "second", "score", "why", "shown_state", "decided_by", "created_at")
    list_filter = ("state", "match__sport")
    search_fields = ("match__title", "candidate__title")
    ordering = ("-created_at",)
    fields = ("side_by_side", "score", "why", "state", "decided_by", "decided_at", "created_at")
    readonly_fields = ("side_by_side", "why")
    actions_detail = ("join_one", "keep_apart_one")

    def get_queryset(self, request: HttpRequest) -> QuerySet[PairingReview]:
        rows: QuerySet[PairingReview] = super().get_queryset(request)
        return rows.select_related("match", "candidate").prefetch_related(
            "match__refs__source", "candidate__refs__source"
        )

    @admin.display(description="match")
    def first(self, review: PairingReview) -> str:
        return _summary(review.match)

    @admin.display(description="may be the same as")
    def second(self, review: PairingReview) -> str:
        return _summary(review.candidate)

    @admin.display(description="reasons")
    def why(self, review: PairingReview) -> str:
        return "; ".join(str(reason) for reason in review.reasons)

    @display(description="state", label=COLOURS, ordering="state")  # type: ignore[untyped-decorator]
    def shown_state(self, review: PairingReview) -> str:
        return review.state

    @admin.display(description="comparison")
    def side_by_side(self, review: PairingReview) -> SafeString:
        pairs = zip(_facts(review.match), _facts(review.candidate), strict=True)
        lines = ((name, first, second) for (name, first), (_, second) in pairs)
        return format_html(
            '<div class="console-scroll"><table class="console-table text-xs">{}</table></div>',
            format_html_join("", "<tr><th>{}</th><td>{}</td><td>{}</td></tr>", lines),
        )

    def has_operate_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(request.user.has_perm("scraping.change_match"))

    @asks_first(
        "Same match",
        icon="merge",
        permission="operate",
        title="Same match",
        explanation=(
            "The data of the newer match becomes part of the older one, its id redirects there, and both sources are "
            "read for it from now on. This cannot be undone."
        ),
        button="Join",
    )
    def join_one(self, request: HttpRequest, form: BaseDialogForm, object_id: int) -> HttpResponse:
        try:
            match = pairing.merge_reviewed(object_id, actor=username(request), now=timezone.now())
        except pairing.MergeRefused as refusal:
            report_outcome(request, refused=f"Not joined: {refusal}.")
            return after_dialog(request, reverse("admin:scraping_pairingreview_changelist"))
        report_outcome(request, done=f"Joined: {match}.")
        return after_dialog(request, reverse("admin:scraping_match_change", args=[match.pk]))

    @asks_first(
        "Different matches",
        icon="call_split",
        permission="operate",
        title="Different matches",
        explanation="They stay two matches, and this pair is not listed for review again.",
        button="Keep apart",
    )
    def keep_apart_one(self, request: HttpRequest, form: BaseDialogForm, object_id: int) -> HttpResponse:
        try:
            pairing.keep_apart(object_id, actor=username(request), now=timezone.now())
            report_outcome(request, done="Kept apart.")
        except pairing.MergeRefused as refusal:
            report_outcome(request, refused=f"Not done: {refusal}.")
        return after_dialog(request, reverse("admin:scraping_pairingreview_changelist"))


def _summary(match: Match) -> str:
    start = f"{match.start_time:%d %b %H:%M}" if match.start_time else "start unknown"
    return f"{match} ({start}; {', '.join(ref.source.key for ref in match.refs.all()) or 'no source'})"


def _facts(match: Match) -> list[tuple[str, object]]:
    """Returns the fields that an operator compares."""
    link = format_html(
        '<a class="underline" href="{}">{}</a>', reverse("admin:scraping_match_change", args=[match.pk]), str(match)
    )
    teams = " and ".join(filter(None, (match.team_a, match.team_b)))
    return [
        ("match", link),
        ("teams", teams or UNKNOWN),
        ("start", f"{match.start_time:%d %b %Y %H:%M} UTC" if match.start_time else UNKNOWN),
        ("series", match.series or UNKNOWN),
        ("status", f"{match.status}, {match.phase}"),
        ("sources", ", ".join(ref.key for ref in match.refs.all()) or "none"),
    ]


@admin.register(TeamAlias)
class TeamAliasAdmin(ConsoleAdmin):
    list_display = ("alias", "name", "sport")
    list_filter = ("sport",)
    search_fields = ("alias", "name")
    fields = ("sport", "alias", "name")
