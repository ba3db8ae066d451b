"""Archived matches, former ids and unknown names: read from the database, kept for seconds or a minute."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from scraping.documents import redis_store
from scraping.documents.cache import COMPARE_SECONDS, LIFETIME_SECONDS, DocumentCache
from scraping.documents.filters import MatchFilter, Place, Sort
from scraping.documents.publisher import Publisher
from scraping.documents.redis_store import ABSENT_SECONDS, AbsentNames
from scraping.matches import pairing
from scraping.models import Match, MatchLifecycle, MatchRef
from tests.factories import NOW, make_match, make_ref
from tests.scraping.documents.test_cache import Clock, cache, clock, redis_url  # noqa: F401 - fixtures
from tests.unreachable_database import known_to_be_away  # noqa: F401 - a fixture
from victoryline.lib import availability

pytestmark = [pytest.mark.usefixtures("nothing_published"), pytest.mark.django_db, pytest.mark.both]


def archived() -> Match:
    return make_ref(make_match(status="completed", lifecycle=MatchLifecycle.ARCHIVED)).match


class TestArchivedMatch:
    def test_is_read_once_in_a_while(
        self,
        cache: DocumentCache,  # noqa: F811
        clock: Clock,  # noqa: F811
        django_assert_num_queries: DjangoAssertNumQueries,
    ) -> None:
        match = archived()
        assert cache.find(str(match.pk)).id == match.pk
        with django_assert_num_queries(0):
            assert cache.find(str(match.pk)).id == match.pk
        Match.objects.filter(pk=match.pk).update(title="corrected")
        clock.now += LIFETIME_SECONDS
        assert cache.find(str(match.pk)).title == "corrected"

    def test_is_listed_with_all_filters(self, cache: DocumentCache) -> None:  # noqa: F811
        first, second = archived(), archived()
        Match.objects.filter(pk=first.pk).update(team_a="Österreich")
        make_ref()

        def ids(limit: int = 9, after: Place | None = None, **wanted: Any) -> list[int]:
            found = MatchFilter(lifecycle=MatchLifecycle.ARCHIVED, **wanted)
            return [each.id for each in cache.page(found, after=after, limit=limit).matches]

        assert (ids(), ids(1), ids(after=(0, -second.pk))) == ([second.pk, first.pk], [second.pk], [first.pk])
        assert ids(ids=(str(first.pk), "none_1")) == [first.pk]
        for sort in Sort:
            assert set(ids(sort=sort)) == {first.pk, second.pk}
            assert ids(1, sort=sort) == [second.pk]  # of equal times the newer match
        assert (ids(team="osterreich"), ids(source="none"), ids(source="crex")) == (
            [first.pk],
            [],
            [second.pk, first.pk],
        )

    def test_list_is_answered_as_before_while_the_database_is_away(
        self,
        cache: DocumentCache,  # noqa: F811
        clock: Clock,  # noqa: F811
        request: pytest.FixtureRequest,
    ) -> None:
        match, wanted = archived(), MatchFilter(lifecycle=MatchLifecycle.ARCHIVED)
        cache.page(wanted, limit=5)
        cache.find(str(match.pk))
        request.getfixturevalue("known_to_be_away")
        clock.now += COMPARE_SECONDS
        page = cache.page(wanted, limit=5)
        assert ([each.data_source for each in page.matches], page.is_last_known) == (["cache"], True)
        assert cache.find(str(match.pk)).data_source == "cache"


class TestFormerId:
    def test_leads_to_the_current_document(
        self,
        cache: DocumentCache,  # noqa: F811
        clock: Clock,  # noqa: F811
        django_assert_num_queries: DjangoAssertNumQueries,
    ) -> None:
        ref = make_ref()
        former = make_match(merged_into=ref.match)
        assert cache.find(str(former.pk)).id == ref.match_id
        with django_assert_num_queries(0):
            assert cache.find(str(former.pk)).id == ref.match_id
        Match.objects.filter(pk=ref.match_id).update(sequence=9)
        clock.now += COMPARE_SECONDS
        assert cache.find(str(former.pk)).sequence == 9

    @pytest.mark.scaled
    @pytest.mark.django_db(transaction=True)
    def test_is_followed_while_the_database_is_away(self, request: pytest.FixtureRequest) -> None:
        matches = [make_match() for _ in range(3)]
        keep, gone, last = (
            make_ref(match, source=source, payload=match.payload)
            for match, source in zip(matches, ("crex", "other", "third"), strict=True)
        )
        Publisher().sweep()
        pairing.merge(keep.match_id, gone.match_id, actor="ann", now=NOW)
        pairing.merge(last.match_id, keep.match_id, actor="ann", now=NOW)
        request.getfixturevalue("known_to_be_away")
        own = DocumentCache()
        assert own.find(str(gone.match_id)).id == last.match_id


@pytest.mark.requirement("SO-11")
class TestUnknownName:
    @pytest.mark.parametrize("name", ["crex_13KM", "4711"])
    def test_is_looked_up_once(
        self,
        name: str,
        cache: DocumentCache,  # noqa: F811
        django_assert_num_queries: DjangoAssertNumQueries,
    ) -> None:
        assert cache.find(name) is None
        with django_assert_num_queries(0):
            assert cache.find(name) is None

    @pytest.mark.parametrize("name", ["crex_13KM", "4711"])
    def test_is_found_within_a_second_after_it_appears(
        self,
        name: str,
        cache: DocumentCache,  # noqa: F811
        clock: Clock,  # noqa: F811
    ) -> None:
        assert cache.find(name) is None
        ref = make_ref()
        match = make_match(id=4711)
        MatchRef.objects.bulk_create(  # without signals, as in another process
            [MatchRef(source=ref.source, match=match, source_event_id="13KM", url="https://x/new", created_at=NOW)]
        )
        clock.now += COMPARE_SECONDS
        assert cache.find(name).id == 4711

    @pytest.mark.django_db(transaction=True)
    def test_is_found_at_once_by_the_process_that_writes_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        own = DocumentCache(lifetime_seconds=3600)
        monkeypatch.setattr("scraping.documents.publisher.documents", own)
        assert own.find("4711") is None
        make_ref(make_match(id=4711))
        assert own.find("4711").id == 4711

    def test_is_looked_up_again_after_a_minute(
        self,
        cache: DocumentCache,  # noqa: F811
        clock: Clock,  # noqa: F811
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(redis_store, "get_text", lambda _: None)  # its lifetime there is real time
        archived_later = make_match(id=4711)
        archived_later.delete()
        assert cache.find("4711") is None
        make_match(id=4711, lifecycle=MatchLifecycle.ARCHIVED)
        clock.now += ABSENT_SECONDS - 1
        assert cache.find("4711") is None
        clock.now += 2
        assert cache.find("4711").id == 4711

    @pytest.mark.requirement("NFR-015")
    def test_memory_is_bounded(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
        monkeypatch.setattr(redis_store, "MAX_ABSENT", 10)
        names = AbsentNames(clock=clock)
        for number in range(100):
            names.add(f"crex_{number}")
        names.add("crex_" + "x" * 200)
        assert len(names._names) == 10

    @pytest.mark.parametrize("name", ["crex_'; DROP TABLE", "crex_ä", "crex_" + "x" * 300])
    def test_may_be_any_text(self, name: str, cache: DocumentCache) -> None:  # noqa: F811
        assert [cache.find(name) for _ in range(2)] == [None, None]

    def test_that_no_match_can_have_needs_no_query(
        self,
        cache: DocumentCache,  # noqa: F811
        django_assert_num_queries: DjangoAssertNumQueries,
    ) -> None:
        cache.update()
        with django_assert_num_queries(0):
            assert [cache.find(name) for name in ("nonsense", "9" * 30, "a\n_b")] == [None] * 3

    @pytest.mark.scaled
    def test_is_shared_by_processes(self, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        assert DocumentCache().find("crex_none") is None
        client = availability.redis_client(redis_url())
        assert 0 < client.ttl(f"{redis_store.PREFIX}negative_cache:crex_none") <= ABSENT_SECONDS
        other = DocumentCache()
        other.update()
        with django_assert_num_queries(0):
            assert other.find("crex_none") is None
