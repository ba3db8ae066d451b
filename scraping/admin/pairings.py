"""Pairs of matches that may be one: both side by side, and two buttons."""

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
from scraping.models import Match, PairingReview, PairingState
from victoryline.lib.admin import CAREFUL, GOOD, NEWS, HistoryAdmin, after_dialog, asks_first, tell, username

COLOURS = {PairingState.OPEN.value: CAREFUL, PairingState.JOINED.value: GOOD, PairingState.APART.value: NEWS}
UNKNOWN = "not known"


@admin.register(PairingReview)
class PairingReviewAdmin(HistoryAdmin):
    none_yet = (
        "There is nothing to decide. Two matches of different sources appear here when their teams, start and series "
        "leave it open whether they are one."
    )
    list_display = ("first", "second", "score", "why", "shown_state", "decided_by", "created_at")
    list_filter = ("state", "match__sport")
    search_fields = ("match__title", "candidate__title")
    ordering = ("-created_at",)
    fields = ("side_by_side", "score", "why", "state", "decided_by", "decided_at", "created_at")
    readonly_fields = ("side_by_side", "why")
    actions_detail = ("join_them", "keep_them_apart")

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

    @admin.display(description="what speaks for and against it")
    def why(self, review: PairingReview) -> str:
        return "; ".join(str(reason) for reason in review.reasons)

    @display(description="state", label=COLOURS, ordering="state")  # type: ignore[untyped-decorator]
    def shown_state(self, review: PairingReview) -> str:
        return review.state

    @admin.display(description="both")
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
        "They are one match",
        icon="merge",
        permission="operate",
        title="They are one match",
        explanation=(
            "Everything that is known of the younger one becomes part of the other, its number answers with that one, "
            "and both sources are read for it from now on. This cannot be taken back."
        ),
        button="Join them",
    )
    def join_them(self, request: HttpRequest, form: BaseDialogForm, object_id: int) -> HttpResponse:
        try:
            match = pairing.unite(object_id, actor=username(request), now=timezone.now())
        except pairing.NotJoined as refusal:
            tell(request, refused=f"Not joined: {refusal}.")
            return after_dialog(request, reverse("admin:scraping_pairingreview_changelist"))
        tell(request, done=f"They are one match now: {match}.")
        return after_dialog(request, reverse("admin:scraping_match_change", args=[match.pk]))

    @asks_first(
        "They are two matches",
        icon="call_split",
        permission="operate",
        title="They are two matches",
        explanation="They stay apart, and you are not asked about them again.",
        button="Keep them apart",
    )
    def keep_them_apart(self, request: HttpRequest, form: BaseDialogForm, object_id: int) -> HttpResponse:
        try:
            pairing.keep_apart(object_id, actor=username(request), now=timezone.now())
            tell(request, done="They stay two matches.")
        except pairing.NotJoined as refusal:
            tell(request, refused=f"Not done: {refusal}.")
        return after_dialog(request, reverse("admin:scraping_pairingreview_changelist"))


def _summary(match: Match) -> str:
    start = f"{match.start_time:%d %b %H:%M}" if match.start_time else "start not known"
    return f"{match} ({start}; {', '.join(ref.source.key for ref in match.refs.all()) or 'no source'})"


def _facts(match: Match) -> list[tuple[str, object]]:
    """What a person compares."""
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
        ("sources", ", ".join(ref.key for ref in match.refs.all()) or "none any more"),
    ]
