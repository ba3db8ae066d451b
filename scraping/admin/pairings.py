"""Admin of pairing reviews (pairs of matches that may be the same one) and of team aliases."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from scraping.matches import pairing
from scraping.models import Match, PairingReview, PairingState, TeamAlias
from victoryline.lib.admin import CAREFUL, GOOD, NEWS, ConsoleAdmin, HistoryAdmin, column
from victoryline.lib.operator_actions import OperatorAction, OperatorActionsMixin, for_each

COLOURS = {PairingState.OPEN.value: CAREFUL, PairingState.JOINED.value: GOOD, PairingState.APART.value: NEWS}
UNKNOWN = "unknown"


def _summary(match: Match) -> str:
    start = f"{match.start_time:%d %b %H:%M}" if match.start_time else "start unknown"
    return f"{match} ({start}; {', '.join(ref.source.key for ref in match.refs.all()) or 'no source'})"


def _facts(match: Match) -> dict[str, object]:
    """Returns the fields that an operator compares."""
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
    readonly_fields = ("side_by_side", "why")
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
class TeamAliasAdmin(ConsoleAdmin):
    list_display = ("alias", "name", "sport")
    list_filter = ("sport",)
    search_fields = ("alias", "name")
    fields = ("sport", "alias", "name")
