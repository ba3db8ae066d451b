"""Lists are answered from memory or by the database: both understand every filter alike, alone and together."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from itertools import combinations
from typing import Any

import pytest

from scraping.documents import queries, recall
from scraping.documents.known import Known
from scraping.documents.queries import SERIES_LENGTH, MatchFilter
from scraping.models import Match, MatchLifecycle
from scraping.payloads import MatchState, Team, Teams
from tests.factories import NOW, cricket_state, make_match, make_ref, make_unread_match

pytestmark = [pytest.mark.django_db, pytest.mark.both]
LONG = "The " + "very " * 50 + "long series"
WORDS: dict[str, tuple[Any, ...]] = {
    "status": ("live", "upcoming,live", "completed,abandoned"),
    "sport": ("cricket", "football"),
    "source": ("crex", "sofascore", "nowhere"),
    "lifecycle": ("COMPLETED", "PAUSED", "ARCHIVED"),
    "series": ("india TOUR", "Série", "SERIE a", "very very", "long series", "%", "_", "\\"),
    "team": ("aust", "Österreich", "OSTERREICH", "o\u0308sterreich", "ﬁ", "100% n", "l"),
    "start_from": (NOW - timedelta(hours=2), NOW),
    "start_to": (NOW - timedelta(hours=2), NOW - timedelta(hours=1), NOW + timedelta(days=9)),
    "updated_since": (NOW, NOW + timedelta(seconds=1)),
}


@pytest.fixture
def known() -> list[Known]:
    make_ref(_told(cricket_state(), "India tour of Australia"))
    make_ref(_told(cricket_state(), "Série A_1", status="upcoming", start_time=NOW), source="espn")
    make_ref(make_match(sport="football", status="completed", lifecycle=MatchLifecycle.COMPLETED), source="sofascore")
    names = Teams(team_a=Team(name="Österreich"), team_b=Team(name="100% Nepal"))
    _told(cricket_state(teams=names), LONG, last_changed_at=NOW + timedelta(seconds=1))
    _told(cricket_state(), "Old days", lifecycle=MatchLifecycle.ARCHIVED, status="completed")
    _told(cricket_state(), "", lifecycle=MatchLifecycle.PAUSED, pause_until=NOW, start_time=None)
    make_ref(make_unread_match(series="India tour of Kenya", team_a="Australia", start_time=NOW))
    make_match(status="abandoned", payload={})
    return [Known.of(each) for each in queries.known_matches(ids=list(Match.objects.values_list("pk", flat=True)))]


def _told(state: MatchState, series: str, **columns: Any) -> Match:
    """The column as ingest fills it."""
    told = state.model_copy(update={"metadata": {"series": series}})
    return make_match(state=told, series=series[:SERIES_LENGTH], **columns)


def _every_filter_alone_and_in_pairs() -> list[MatchFilter]:
    alone = [{name: word} for name, words in WORDS.items() for word in words]
    some = [{name: word} for name, words in WORDS.items() for word in words[:2]]
    pairs = [one | other for one, other in combinations(some, 2) if one.keys() != other.keys()]
    return [MatchFilter(**chosen) for chosen in ({}, *alone, *pairs)]


def test_the_table_has_every_filter() -> None:
    assert WORDS.keys() == {field.name for field in fields(MatchFilter)}


def test_memory_finds_what_the_database_finds(known: list[Known]) -> None:
    found_something = 0
    for wanted in _every_filter_alone_and_in_pairs():
        rows, _ = queries.page_of_matches(wanted, before_id=None, limit=100)
        expected = [row.pk for row in rows]
        assert [each.id for each in known if recall.is_wanted(each, wanted)] == expected, wanted
        found_something += bool(expected)
    assert found_something > 70  # else the table would agree about nothing


@pytest.mark.parametrize(
    ("wanted", "number"),
    [
        (MatchFilter(series="very very"), 1),
        (MatchFilter(series="long series"), 0),  # beyond the column's end, in memory as well
        (MatchFilter(series="India tour"), 1),  # of what nobody has read yet no series is shown
        (MatchFilter(series="Série"), 1),
        (MatchFilter(series="serie"), 1),
        (MatchFilter(team="osterreich"), 1),
        (MatchFilter(team="ÖSTERREICH"), 1),
        (MatchFilter(series="%"), 0),
        (MatchFilter(status="completed,abandoned"), 2),
        (MatchFilter(start_from=NOW, start_to=NOW + timedelta(seconds=1)), 2),
    ],
)
def test_what_they_find_is_right(known: list[Known], wanted: MatchFilter, number: int) -> None:
    assert sum(recall.is_wanted(each, wanted) for each in known) == number
