"""How much a match matters and how it is watched, on its pages in the admin: columns, and what a person may say."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html_join
from unfold.decorators import display
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminSelectWidget

from scraping.documents.watch_records import silence_words
from scraping.matches import importance
from scraping.models import Importance, Match
from victoryline.lib.admin import CAREFUL, NEWS, after_dialog, asks_first, tell, username

BY_HAND = ", set by hand"
COLOURS = {
    level.label + suffix: colour
    for level, colour in ((Importance.HIGH, NEWS), (Importance.LOW, CAREFUL))
    for suffix in ("", BY_HAND)
}


class ImportanceForm(BaseDialogForm):  # type: ignore[misc]  # unfold publishes no types
    importance = forms.ChoiceField(
        choices=[*((str(level.value), level.label) for level in Importance), ("", "As the rules say")],
        required=False,
        widget=UnfoldAdminSelectWidget,
    )


class WatchColumns:
    """A part of the admin of matches."""

    IMPORTANCE_ACTIONS = ("make_high", "make_normal", "make_low", "leave_to_rules")

    @display(description="matters", label=COLOURS, ordering="importance")  # type: ignore[untyped-decorator]
    def shown_importance(self, match: Match) -> str:
        return Importance(match.importance).label + (BY_HAND if match.is_importance_fixed else "")

    @admin.display(description="silence", ordering="silence_rung")
    def shown_silence(self, match: Match) -> str:
        return silence_words(match.silence_rung, match.silence_rung_at, match.frozen_at, timezone.now()) or "-"

    @admin.display(description="read")
    def shown_pace(self, match: Match) -> str:
        watched = [ref for ref in match.refs.all() if ref.is_watched and ref.next_poll_at]
        paces = [(ref.source.name, f"{ref.polling_interval_seconds:g}", ref.pace_reason or "-") for ref in watched]
        return format_html_join(" · ", "{}: every {} s ({})", paces) or "-"

    @admin.action(description="Importance: high", permissions=["operate"])
    def make_high(self, request: HttpRequest, matches: QuerySet[Match]) -> None:
        _set(request, _ids(matches), Importance.HIGH)

    @admin.action(description="Importance: normal", permissions=["operate"])
    def make_normal(self, request: HttpRequest, matches: QuerySet[Match]) -> None:
        _set(request, _ids(matches), Importance.NORMAL)

    @admin.action(description="Importance: low", permissions=["operate"])
    def make_low(self, request: HttpRequest, matches: QuerySet[Match]) -> None:
        _set(request, _ids(matches), Importance.LOW)

    @admin.action(description="Importance: leave it to the rules", permissions=["operate"])
    def leave_to_rules(self, request: HttpRequest, matches: QuerySet[Match]) -> None:
        _set(request, _ids(matches), None)

    @asks_first(
        "Set importance",
        icon="priority_high",
        permission="operate",
        title="How much does this match matter?",
        explanation="What matters more is read more often, and first when there is too much to do. The limits of its "
        "source hold all the same.",
        button="Set",
        form=ImportanceForm,
    )
    def set_importance_one(self, request: HttpRequest, form: ImportanceForm, object_id: Any) -> HttpResponse:
        said = form.cleaned_data["importance"]
        _set(request, [object_id], Importance(int(said)) if said else None)
        return after_dialog(request, reverse("admin:scraping_match_change", args=[object_id]))


def _ids(matches: QuerySet[Match]) -> list[int]:
    return list(matches.values_list("pk", flat=True))


def _set(request: HttpRequest, ids: list[int], level: Importance | None) -> None:
    done = 0
    for pk in ids:
        with suppress(Match.DoesNotExist):
            importance.set_by_hand(pk, level, actor=username(request))
            done += 1
    said = level.label.lower() if level is not None else "as the rules say"
    tell(request, done=f"Importance of {done} {'match' if done == 1 else 'matches'}: {said}.")
