"""The filters of match lists, alone and together, in memory and in the scan of the database."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from itertools import combinations
from typing import Any

import pytest

from scraping.documents import queries
from scraping.documents.cached_match import CachedMatch
from scraping.documents.filters import MatchFilter, Sort
from scraping.matches.teams import assign_new
from scraping.models import Match, MatchLifecycle
from scraping.names import plain
from scraping.payloads import MatchState, Team, Teams
from tests.factories import NOW, cricket_state, make_match, make_ref, make_unread_match

pytestmark = [pytest.mark.django_db, pytest.mark.both]
SERIES_LENGTH = 200  # of the column
NAMES = {
    "Atlético Madrid": "atletico madrid",
    "GRÊMIO": "gremio",
    "São Paulo": "sao paulo",
    "Beşiktaş": "besiktas",
    "Đà Nẵng": "đa nang",  # a letter of its own, not one with a mark
    "Łódź": "łodz",
    "o\u0308sterreich": "osterreich",
    "\uff26\uff23 Tokyo": "fc tokyo",
    "Динамо": "динамо",
    "100% _Nepal_ \\": "100% _nepal_ \\",
    "": "",
}
LONG = "The " + "very " * 50 + "long series"
VALUES: dict[str, tuple[Any, ...]] = {
    "status": ("live", "upcoming,live", "completed,abandoned"),
    "sport": ("cricket", "football"),
    "team_id": (1, 2),
    "source": ("crex", "sofascore", "nowhere"),
    "lifecycle": ("COMPLETED", "PAUSED", "ARCHIVED"),
    "series": ("india TOUR", "Série", "SERIE a", "very very", "long series", "%", "_", "\\"),
    "team": ("aust", "Österreich", "OSTERREICH", "o\u0308sterreich", "ﬁ", "100% n", "l"),
    "start_from": (NOW - timedelta(hours=2), NOW),
    "start_to": (NOW - timedelta(hours=2), NOW - timedelta(hours=1), NOW + timedelta(days=9)),
    "updated_since": (NOW, NOW + timedelta(seconds=1)),
    "ids": (("crex_F1",), ("crex_F1", "espn_F2"), ("1", "2", "3", "4", "5", "6"), ("nowhere_1", "99999999")),
    "sort": tuple(Sort),
}


@pytest.fixture
def known() -> list[CachedMatch]:
    make_ref(_read(cricket_state(), "India tour of Australia"), source_event_id="F1")
    late = _read(cricket_state(), "Série A_1", status="upcoming", start_time=NOW)
    make_ref(late, source="espn", source_event_id="F2")
    make_ref(make_match(sport="football", status="completed", lifecycle=MatchLifecycle.COMPLETED), source="sofascore")
    names = Teams(team_a=Team(name="Österreich"), team_b=Team(name="100% Nepal"))
    _read(cricket_state(teams=names), LONG, last_changed_at=NOW + timedelta(seconds=1))
    _read(cricket_state(), "Old days", lifecycle=MatchLifecycle.ARCHIVED, status="completed")
    _read(cricket_state(), "", lifecycle=MatchLifecycle.PAUSED, pause_until=NOW, start_time=None)
    make_ref(make_unread_match(series="India tour of Kenya", team_a="Australia", start_time=NOW))
    make_match(status="abandoned", payload={})
    assign_new(NOW)
    return queries.cached_matches(ids=list(Match.objects.values_list("pk", flat=True)))


def _read(state: MatchState, series: str, **columns: Any) -> Match:
    """A match whose column is filled as by ingest."""
    state = state.model_copy(update={"metadata": {"series": series}})
    return make_match(state=state, series=series[:SERIES_LENGTH], **columns)


def _every_filter_alone_and_in_pairs() -> list[MatchFilter]:
    alone = [{name: value} for name, values in VALUES.items() for value in values]
    some = [{name: value} for name, values in VALUES.items() for value in values[:2]]
    pairs = [one | other for one, other in combinations(some, 2) if one.keys() != other.keys()]
    return [MatchFilter(**chosen) for chosen in ({}, *alone, *pairs)]


@pytest.mark.parametrize(("name", "expected"), NAMES.items())
def test_names_are_compared_without_accents_and_capitals(name: str, expected: str) -> None:
    assert plain(name) == expected


def test_every_filter_is_tested() -> None:
    assert VALUES.keys() == {field.name for field in fields(MatchFilter)}


def test_memory_and_scan_accept_the_same_matches(known: list[CachedMatch]) -> None:
    found_something = 0
    for wanted in _every_filter_alone_and_in_pairs():
        expected = queries.accepted_ids(wanted, after=None, limit=100)
        found = wanted.page(known, after=None, limit=100, is_sorted=wanted.sort is Sort.NEWEST)
        assert [each.id for each in found] == expected, wanted
        found_something += bool(expected)
    assert found_something > 70  # otherwise nothing would be compared


@pytest.mark.parametrize("sort", Sort)
def test_pages_of_every_order_have_no_gaps_or_duplicates(known: list[CachedMatch], sort: Sort) -> None:
    """Also where several matches have the same time or none; in memory and in the scan of the database."""
    wanted = MatchFilter(sort=sort)
    whole = queries.accepted_ids(wanted, after=None, limit=100)
    assert len(whole) == 7
    scanned: list[int] = []
    listed: list[int] = []
    after = None
    for _ in range(4):
        scanned += queries.accepted_ids(wanted, after=after, limit=2)
        page = wanted.page(known, after=after, limit=2, is_sorted=sort is Sort.NEWEST)
        listed += [each.id for each in page]
        after = sort.place(page[-1])
    assert scanned == listed == whole


def test_a_match_without_a_time_is_last_in_every_order(known: list[CachedMatch]) -> None:
    for sort in (Sort.START, Sort.START_LATEST):
        *timed, last = MatchFilter(sort=sort).page(known, after=None, limit=100, is_sorted=False)
        starts = [each.start_time for each in timed if each.start_time]
        assert (len(starts), last.start_time) == (len(timed), None)
        assert starts == sorted(starts, reverse=sort is Sort.START_LATEST)


@pytest.mark.parametrize(
    ("wanted", "number"),
    [
        (MatchFilter(series="very very"), 1),
        (MatchFilter(series="long series"), 0),  # beyond the end of the column
        (MatchFilter(series="India tour"), 1),  # an unread match shows no series
        (MatchFilter(series="Série"), 1),
        (MatchFilter(series="serie"), 1),
        (MatchFilter(team="osterreich"), 1),
        (MatchFilter(team="ÖSTERREICH"), 1),
        (MatchFilter(series="%"), 0),
        (MatchFilter(status="completed,abandoned"), 2),
        (MatchFilter(start_from=NOW, start_to=NOW + timedelta(seconds=1)), 2),
    ],
)
def test_accepts(known: list[CachedMatch], wanted: MatchFilter, number: int) -> None:
    assert sum(wanted.accepts(each) for each in known) == number
