"""Names that no match has: remembered for a minute, forgotten as soon as a match comes."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from pytest_django import DjangoAssertNumQueries

from scraping.api.readers import FromDatabase
from scraping.documents.absent import LIFETIME_SECONDS, VERSION_SECONDS, Absent, absent
from scraping.models import MatchRef
from tests.factories import NOW, make_match, make_ref

pytestmark = [
    pytest.mark.usefixtures("nothing_published"),
    pytest.mark.django_db,
    pytest.mark.both,
    pytest.mark.requirement("SO-11"),
]


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.parametrize("name", ["crex_13KM", "4711"])
class TestUnknownMatch:
    def test_is_looked_for_once(self, name: str, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        assert FromDatabase().match(name) is None
        with django_assert_num_queries(0):
            assert FromDatabase().match(name) is None

    def test_is_there_as_soon_as_it_comes(self, name: str) -> None:
        assert FromDatabase().match(name) is None
        match = make_match(id=4711)
        make_ref(match, source_event_id="13KM")
        known = FromDatabase().match(name)
        assert known is not None
        assert known.id == 4711

    def test_is_looked_for_again_after_a_minute(
        self, name: str, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        clock = Clock()
        names = Absent(clock=clock)
        names.remember(name, names.version())
        cache.clear()
        clock.seconds = LIFETIME_SECONDS - 1
        assert names.is_absent(name)
        clock.seconds = LIFETIME_SECONDS + 1
        assert not names.is_absent(name)


def test_a_match_that_another_process_writes_is_there_within_a_second() -> None:
    clock = Clock()
    names = Absent(clock=clock)
    ref = make_ref(make_match())
    names.remember("crex_new", names.version())
    MatchRef.objects.bulk_create(  # tells nobody, as if it were done elsewhere
        [MatchRef(source=ref.source, match=make_match(), source_event_id="new", url="https://x/new", created_at=NOW)]
    )
    clock.seconds += VERSION_SECONDS
    assert not names.is_absent("crex_new")


def test_a_match_that_comes_while_it_is_looked_for_is_not_hidden() -> None:
    names = Absent()
    version = names.version()
    make_ref(make_match())
    names.forget_version()
    names.remember("crex_new", version)
    assert not names.is_absent("crex_new")


def test_asks_how_things_stand_once_a_second(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    clock = Clock()
    names = Absent(clock=clock)
    names.remember("crex_none", names.version())
    clock.seconds += VERSION_SECONDS
    with django_assert_num_queries(2):
        assert all(names.is_absent("crex_none") for _ in range(100))


@pytest.mark.requirement("NFR-015")
def test_is_bounded() -> None:
    names = Absent(max_names=10)
    for number in range(100):
        names.remember(f"crex_{number}", b"1")
    names.remember("crex_" + "x" * 200, b"1")
    assert len(names) == 10


@pytest.mark.parametrize("name", ["crex_'; DROP TABLE", "crex_ä", "crex_" + "x" * 300])
def test_a_strange_name_is_no_more_than_unknown(name: str) -> None:
    assert [FromDatabase().match(name) for _ in range(2)] == [None, None]


def test_a_name_that_no_match_can_have_asks_nobody(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        assert [FromDatabase().match(name) for name in ("nonsense", "9" * 30, "a\n_b")] == [None] * 3


@pytest.mark.scaled
def test_is_shared_by_processes(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    assert FromDatabase().match("crex_none") is None
    assert cache.get("negative_cache:crex_none") == absent.version()
    assert 0 < cache._cache.get_client().ttl(cache.make_key("negative_cache:crex_none")) <= LIFETIME_SECONDS  # type: ignore[attr-defined]
    other = Absent()
    other.version()
    with django_assert_num_queries(0):
        assert other.is_absent("crex_none")
