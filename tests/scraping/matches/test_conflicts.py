"""Conflicts as rows: opened and logged once, counted, closed when the sources agree again."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from scraping.matches import conflicts
from scraping.matches.reconcile.states import FieldConflict
from scraping.models import Conflict, Match
from tests.factories import make_match
from tests.scraping.builders import later

pytestmark = [pytest.mark.both, pytest.mark.django_db, pytest.mark.requirement("BX-5")]


def runs(chosen: str = "crex", other: str = "espn", value: int = 150, field: str = "innings.1.runs") -> FieldConflict:
    return FieldConflict(field, chosen, 187, other, value, 19.8)


@pytest.fixture
def match() -> Match:
    return make_match()


def open_rows(match: Match) -> list[tuple[str, str, str, int]]:
    rows = Conflict.objects.filter(match_id=match.pk, resolved_at=None).order_by("pk")
    return list(rows.values_list("field", "chosen_source", "other_source", "times_seen"))


def test_opens_counts_and_closes(match: Match) -> None:
    for second in (0, 1, 2):
        assert conflicts.note(match.pk, [runs()], now=later(second)) == 1
    assert open_rows(match) == [("innings.1.runs", "crex", "espn", 3)]
    assert conflicts.note(match.pk, [], now=later(3)) == 0
    row = Conflict.objects.get()
    assert (row.first_seen_at, row.last_seen_at, row.resolved_at) == (later(0), later(2), later(3))


def test_a_later_difference_is_a_new_row(match: Match) -> None:
    for found in ([runs()], [], [runs()]):
        conflicts.note(match.pk, found, now=later(0))
    assert (Conflict.objects.count(), len(open_rows(match))) == (2, 1)


def test_keeps_the_latest_values(match: Match) -> None:
    conflicts.note(match.pk, [runs(value=150)], now=later(0))
    conflicts.note(match.pk, [runs(value=160)], now=later(1))
    assert Conflict.objects.get().other_value == 160


def test_stays_the_same_conflict_when_the_other_source_is_chosen(match: Match) -> None:
    conflicts.note(match.pk, [runs("crex", "espn"), runs("crex", "sofascore")], now=later(0))
    conflicts.note(match.pk, [runs("espn", "crex"), runs("espn", "sofascore")], now=later(1))
    assert open_rows(match) == [("innings.1.runs", "espn", "crex", 2), ("innings.1.runs", "espn", "sofascore", 1)]


def test_agreement_costs_one_query_where_no_conflict_was_open(match: Match, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        assert conflicts.note(match.pk, [], now=later(0)) == 0


@pytest.mark.requirement("SO-13")
def test_is_logged_once_when_it_lasts_and_once_when_it_closes(
    match: Match, caplog: pytest.LogCaptureFixture, django_capture_on_commit_callbacks: Any
) -> None:
    with caplog.at_level(logging.INFO, "scraping.reconciliation"), django_capture_on_commit_callbacks(execute=True):
        for second, found in ((0, [runs()]), (14, [runs()]), (15, [runs()]), (16, [runs()]), (17, []), (18, [])):
            conflicts.note(match.pk, found, now=later(second))
    actions = [record.__dict__["action"] for record in caplog.records]
    assert actions == ["reconciliation_conflict", "reconciliation_agreement"]
    text = caplog.records[0].getMessage()
    assert all(word in text for word in ("innings.1.runs", str(match.pk), "crex says 187", "espn says 150"))


@pytest.mark.requirement("SO-13")
def test_a_delay_of_some_seconds_is_listed_and_not_logged(
    match: Match, caplog: pytest.LogCaptureFixture, django_capture_on_commit_callbacks: Any
) -> None:
    with caplog.at_level(logging.INFO, "scraping.reconciliation"), django_capture_on_commit_callbacks(execute=True):
        for second in range(0, 60, 6):
            conflicts.note(match.pk, [runs()], now=later(second))
            conflicts.note(match.pk, [runs()], now=later(second + 2))
            conflicts.note(match.pk, [], now=later(second + 4))
    assert Conflict.objects.filter(resolved_at__isnull=False).count() == 10
    assert not caplog.records
