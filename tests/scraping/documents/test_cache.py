"""The document cache: contents, replacement, updates from the database and Redis."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import timedelta

import pytest
from django.db import OperationalError
from pytest_django import DjangoAssertNumQueries

from scraping.documents import cache as cache_module
from scraping.documents import queries, redis_store
from scraping.documents.cache import COMPARE_SECONDS, LIFETIME_SECONDS, DocumentCache
from scraping.documents.cached_match import COMPARED, CachedMatch, NotCachedError, decode, encode
from scraping.documents.filters import MatchFilter
from scraping.documents.publisher import Publisher
from scraping.matches import lifecycle
from scraping.models import Breaker, BreakerState, Match, MatchLifecycle, MatchRef, Source
from tests.factories import NOW, make_match, make_ref, make_scraper, make_snapshot
from tests.patience import wait_for
from tests.servers import RedisServer
from tests.unreachable_database import known_to_be_away  # noqa: F401 - a fixture
from victoryline.lib import availability

pytestmark = [pytest.mark.usefixtures("nothing_published"), pytest.mark.django_db]
LATER = NOW + timedelta(seconds=3)


def read(match: Match) -> CachedMatch:
    (found,) = queries.cached_matches(ids=[match.pk])
    return found


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> DocumentCache:
    return DocumentCache(clock=clock)


@pytest.mark.both
class TestCachedMatch:
    def test_survives_encoding(self) -> None:
        ref = make_ref(make_match(pause_until=NOW, series="Ashes"))
        make_ref(ref.match, source="other", is_watched=False)
        make_scraper(ref)
        make_snapshot(ref.match, data_source="manual")
        match = read(ref.match)
        assert match.plans  # computed values are not stored
        assert decode(encode(match)) == match
        assert (match.data_source, len(match.refs)) == ("manual", 2)
        assert match.refs[0].scraper_id is not None
        assert match.refs[1].planned_at is None

    def test_computes_its_age_on_access(self) -> None:
        match = read(make_ref().match)
        ages = [match.freshness(NOW + timedelta(seconds=later)) for later in (3, 30, 301)]
        assert [each.whole_age_seconds for each in ages] == [3, 30, 301]
        assert [each.state for each in ages] == ["fresh", "aging", "stale"]

    @pytest.mark.parametrize(
        "text", [b"", b"[]", b"nonsense", b'{"format": 0, "match": {}}', b'{"format": 3, "match": {}}']
    )
    def test_ignores_documents_of_other_formats(self, text: bytes) -> None:
        assert decode(text) is None

    def test_every_field_is_compared_or_changes_with_the_sequence(self) -> None:
        with_sequence = {"sport", "team_a", "team_b", "series", "data_source", "payload"}
        elsewhere = {"id", "refs", "merged_into", "_rendered"}  # refs are compared as plans; merged ones are dropped
        assert {each.name for each in fields(CachedMatch)} == {*COMPARED, *with_sequence, *elsewhere}


class TestUpdatedBy:
    """A document updated with a published one."""

    @pytest.fixture
    def match(self) -> CachedMatch:
        return read(make_ref().match)

    def test_takes_all_of_a_later_sequence(self, match: CachedMatch) -> None:
        assert match.updated_by(replace(match, sequence=5, title="a wicket")).title == "a wicket"

    def test_takes_only_times_of_the_same_sequence(self, match: CachedMatch) -> None:
        """The worker may have read the row before a pause."""
        paused = replace(match, lifecycle=MatchLifecycle.PAUSED, pause_until=LATER)
        found = paused.updated_by(replace(match, scraped_at=LATER))
        assert (found.lifecycle, found.pause_until, found.scraped_at) == (MatchLifecycle.PAUSED, LATER, LATER)

    def test_keeps_rendered_parts_of_the_same_sequence(self, match: CachedMatch) -> None:
        match.rendered("part", lambda: b"rendered")
        again, changed = (match.updated_by(replace(match, sequence=each, scraped_at=LATER)) for each in (1, 2))
        assert again.rendered("part", lambda: b"anew") == b"rendered"
        assert changed.rendered("part", lambda: b"anew") == b"anew"

    @pytest.mark.parametrize("sequence", [1, 5])
    def test_keeps_plans_that_the_worker_knows_from_earlier(self, match: CachedMatch, sequence: int) -> None:
        other = replace(match.refs[0], source="other", planned_at=LATER + timedelta(seconds=9))
        held = replace(match, refs=(*match.refs, other))
        mine = replace(match.refs[0], planned_at=LATER + timedelta(seconds=1))
        published = replace(match, sequence=sequence, scraped_at=LATER, refs=(mine, replace(other, planned_at=NOW)))
        assert held.updated_by(published).refs == (mine, other)
        assert held.updated_by(replace(published, refs=(mine,))).refs == (mine, other)


@pytest.mark.both
class TestReads:
    def test_finds_by_id_and_by_key(self, cache: DocumentCache) -> None:
        ref = make_ref()
        assert cache.find(str(ref.match_id)) == cache.find(ref.key) == read(ref.match)

    def test_make_no_query_within_the_lifetime(
        self, cache: DocumentCache, clock: Clock, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        ref = make_ref()
        cache.update()
        clock.now += LIFETIME_SECONDS * 0.9
        with django_assert_num_queries(0):
            assert cache.find(ref.key) is not None
            assert len(cache.page(MatchFilter(), limit=9).matches) == 1

    def test_compare_columns_without_payloads(
        self, cache: DocumentCache, clock: Clock, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        refs = [make_ref() for _ in range(20)]
        cache.update()
        clock.now += COMPARE_SECONDS
        with django_assert_num_queries(2) as asked:
            assert cache.find(str(refs[0].match_id)) is not None
        assert not any("payload" in each["sql"] for each in asked.captured_queries)

    @pytest.mark.parametrize(
        "change",
        [
            {"sequence": 9, "title": "A new title"},
            {"lifecycle": MatchLifecycle.PAUSED, "pause_until": LATER},
            {"frozen_at": LATER},
            {"status": "completed"},
            {"phase": "tea"},
            {"start_time": LATER},
            {"last_changed_at": LATER},
            {"last_scraper_update": LATER},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_show_every_change_of_a_match(self, cache: DocumentCache, clock: Clock, change: dict[str, object]) -> None:
        ref = make_ref()
        cache.update()
        Match.objects.filter(pk=ref.match_id).update(**change)
        clock.now += COMPARE_SECONDS
        assert cache.find(ref.key) == read(ref.match)

    @pytest.mark.parametrize("change", [{"next_poll_at": LATER}, {"is_watched": False}])
    def test_show_changed_plans(self, cache: DocumentCache, clock: Clock, change: dict[str, object]) -> None:
        ref = make_ref()
        cache.update()
        MatchRef.objects.filter(pk=ref.pk).update(**change)
        clock.now += COMPARE_SECONDS
        assert cache.find(ref.key) == read(ref.match)

    def test_show_that_a_breaker_opens_and_closes(self, cache: DocumentCache, clock: Clock) -> None:
        ref, until = make_ref(), NOW + timedelta(minutes=15)
        cache.update()
        breaker = Breaker.objects.create(
            name="crex", source=ref.source, state=BreakerState.OPEN, open_until=until, last_state_change=NOW
        )
        clock.now += COMPARE_SECONDS
        held = cache.find(ref.key)
        assert (held.next_read_at, held.planned_at) == (until, ref.next_poll_at)
        Breaker.objects.filter(pk=breaker.pk).update(state=BreakerState.HALF_OPEN)
        clock.now += COMPARE_SECONDS
        assert cache.find(ref.key).next_read_at == ref.next_poll_at

    @pytest.mark.requirement("BX-2")
    def test_show_that_a_source_is_disabled(self, cache: DocumentCache, clock: Clock) -> None:
        ref = make_ref()
        assert cache.find(ref.key).freshness(NOW).next_update_in == 2.5
        Source.objects.update(is_enabled=False)
        clock.now += COMPARE_SECONDS
        assert cache.find(ref.key).freshness(NOW).next_update_in is None

    def test_show_another_key_of_a_match(self, cache: DocumentCache, clock: Clock) -> None:
        ref = make_ref(is_watched=False, next_poll_at=None)
        cache.update()
        other = make_ref(ref.match, is_watched=False, next_poll_at=None)
        clock.now += COMPARE_SECONDS
        assert cache.find(other.key).keys == [ref.key, other.key]
        MatchRef.objects.filter(pk=other.pk).update(source_event_id="elsewhere")
        clock.now += COMPARE_SECONDS
        assert (cache.find(other.key), cache.find(f"{other.source.key}_elsewhere").id) == (None, ref.match_id)

    def test_no_longer_list_archived_merged_and_deleted_matches(self, cache: DocumentCache, clock: Clock) -> None:
        ids = [make_ref().match_id for _ in range(4)]
        assert _listed(cache) == ids[::-1]
        Match.objects.filter(pk=ids[0]).update(lifecycle=MatchLifecycle.ARCHIVED)
        Match.objects.filter(pk=ids[1]).update(merged_into=ids[3])
        Match.objects.filter(pk=ids[2]).delete()
        clock.now += COMPARE_SECONDS
        assert _listed(cache) == ids[3:]
        assert cache.find(str(ids[1])).id == ids[3]

    def test_show_what_this_process_has_done(self, cache: DocumentCache) -> None:
        ref = make_ref()
        cache.update()
        Match.objects.filter(pk=ref.match_id).update(lifecycle=MatchLifecycle.PAUSED, pause_until=LATER)
        assert cache.find(ref.key).lifecycle == MatchLifecycle.ACTIVE
        cache.invalidate([ref.match_id])
        assert cache.find(ref.key).lifecycle == MatchLifecycle.PAUSED

    def test_of_many_matches_hold_the_newest(
        self, cache: DocumentCache, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cache_module, "MAX_MATCHES", 3)
        ids = sorted(make_ref().match_id for _ in range(5))
        assert _listed(cache) == ids[::-1]
        assert cache._table.ids() == set(ids[2:])
        older = str(ids[0])
        assert cache.find(older).sequence == 1
        Match.objects.filter(pk=ids[0]).update(sequence=2)
        clock.now += LIFETIME_SECONDS
        assert cache.find(older).sequence == 2  # no answer is seconds late
        Match.objects.filter(pk__in=ids[3:]).update(lifecycle=MatchLifecycle.ARCHIVED)
        clock.now += COMPARE_SECONDS
        assert _listed(cache) == ids[2::-1]
        assert cache._table.ids() == set(ids[:3])

    def test_forget_results_after_a_restore(
        self, cache: DocumentCache, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A restored database assigns the same sequences to other states."""
        ref = make_ref(make_match(sequence=9))
        cache.update()
        assert cache.derived("question", 9, lambda: ["before"], what="x") == ["before"]
        Match.objects.update(sequence=10)
        clock.now += COMPARE_SECONDS
        cache.update()
        assert cache.derived("question", 9, lambda: ["after"], what="x") == ["before"]
        Match.objects.update(sequence=8)
        clock.now += COMPARE_SECONDS
        assert cache.find(ref.key).sequence == 8
        assert cache.derived("question", 9, lambda: ["after"], what="x") == ["after"]
        assert [line.action for line in caplog.records if hasattr(line, "action")] == ["store_went_back"]

    def test_pause_longer_after_a_slow_update(self, cache: DocumentCache, clock: Clock, monkeypatch) -> None:
        """Comparisons with a slow database take at most a fifth of the time, and happen at least once a second."""
        monkeypatch.setattr(redis_store, "latest_position", lambda: None)  # as without Redis
        for took, pause in ((0.001, LIFETIME_SECONDS), (0.05, 0.2), (3.0, COMPARE_SECONDS)):
            cache.expire()

            def slow(took: float = took, **_: object) -> dict[int, object]:
                clock.now += took
                return {}

            monkeypatch.setattr(queries, "compared_columns", slow)
            cache.update()
            assert cache._update_at == pytest.approx(clock.now + pause)

    @pytest.mark.django_db(transaction=True)
    def test_from_many_threads_see_whole_lists(self) -> None:
        refs, errors = [make_ref() for _ in range(5)], list[BaseException]()
        own = DocumentCache(lifetime_seconds=0.001, compare_seconds=0.001)
        own.update()

        def ask() -> None:
            from django.db import connection

            try:
                for number in range(40):
                    assert own.find(refs[number % 5].key) is not None
                    assert len(own.page(MatchFilter(), limit=9).matches) == 5
            except BaseException as error:  # noqa: BLE001 - shown by the assertion below
                errors.append(error)
            finally:
                connection.close()

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for each in threads:
            each.start()
        for number in range(20):
            own.invalidate([refs[number % 5].match_id])
        for each in threads:
            each.join()
        assert not errors


def _listed(cache: DocumentCache) -> list[int]:
    return [each.id for each in cache.page(MatchFilter(), limit=9).matches]


class TestDerived:
    def test_is_read_once_per_version(self, cache: DocumentCache) -> None:
        loads = iter([["one"], ["two"]])
        found = [cache.derived("q", version, lambda: next(loads), what="x") for version in (1, 1, 2, 2)]
        assert found == [["one"], ["one"], ["two"], ["two"]]

    @pytest.mark.requirement("NFR-015")
    def test_is_bounded_by_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cache_module, "MAX_DERIVED_BYTES", 10_000)
        own = DocumentCache()
        for number in range(100):
            own.derived(number, 1, lambda number=number: "x" * number * 10, what="x")
        assert own._derived.currsize <= 10_000
        assert own.derived("large", 1, lambda: "x" * 20_000, what="x") == "x" * 20_000
        assert "large" not in own._derived

    def test_is_not_kept_if_json_cannot_hold_it(self, cache: DocumentCache) -> None:
        for odd in ({"title": "\ud800"}, {"number": 2**80}):
            assert cache.derived("q", 1, lambda odd=odd: odd, what="x") == odd
        assert len(cache._derived) == 0

    def test_keeps_the_last_result_for_an_outage(self, cache: DocumentCache) -> None:
        def fail() -> None:
            raise OperationalError("gone")

        assert cache.derived("q", 1, lambda: ["known"], what="x") == ["known"]
        assert cache.derived("q", 2, fail, what="x") == ["known"]
        with pytest.raises(NotCachedError, match="these events"):
            cache.derived("other", 1, fail, what="these events")


@pytest.mark.fault
class TestDatabaseAway:
    @pytest.fixture
    def away(self, request: pytest.FixtureRequest) -> availability.Availability:
        found: availability.Availability = request.getfixturevalue("known_to_be_away")
        return found

    def test_serves_the_last_known_documents(
        self, cache: DocumentCache, clock: Clock, request: pytest.FixtureRequest
    ) -> None:
        ref = make_ref()
        cache.update()
        cache.invalidate([ref.match_id])  # cannot be read before the outage
        away: availability.Availability = request.getfixturevalue("known_to_be_away")
        clock.now += 3600
        assert cache.find(ref.key) == replace(read(ref.match), data_source="cache")
        page = cache.page(MatchFilter(team="unknown"), limit=5)
        assert (page.matches, page.is_last_known) == ([], True)  # all matches are in memory
        Match.objects.filter(pk=ref.match_id).update(lifecycle=MatchLifecycle.PAUSED, pause_until=LATER)
        away.forget()
        clock.now += COMPARE_SECONDS
        assert cache.find(ref.key).lifecycle == MatchLifecycle.PAUSED

    def test_refuses_what_no_cache_holds(self, cache: DocumentCache, away: availability.Availability) -> None:
        for name in ("7", "crex_1"):
            with pytest.raises(NotCachedError):
                cache.find(name)
        for wanted in (MatchFilter(), MatchFilter(lifecycle=MatchLifecycle.ARCHIVED)):
            with pytest.raises(NotCachedError):
                cache.page(wanted, limit=50)

    def test_does_not_list_a_part_of_the_matches(
        self, cache: DocumentCache, clock: Clock, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
    ) -> None:
        monkeypatch.setattr(cache_module, "MAX_MATCHES", 1)
        for _ in range(2):
            make_ref()
        assert len(_listed(cache)) == 2
        request.getfixturevalue("known_to_be_away")
        clock.now += COMPARE_SECONDS
        assert len(_listed(cache)) == 2  # as answered before
        with pytest.raises(NotCachedError):
            cache.page(MatchFilter(status="live"), limit=9)

    def test_loses_nothing_if_the_first_read_is_interrupted(
        self, cache: DocumentCache, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_ref()
        with monkeypatch.context() as patch:

            def fail(**_: object) -> None:
                raise OperationalError("gone")

            patch.setattr(queries, "cached_matches", fail)
            with pytest.raises(NotCachedError):
                _listed(cache)
        clock.now += COMPARE_SECONDS
        assert len(_listed(cache)) == 1


@pytest.fixture
def own_redis(redis_server: RedisServer, settings) -> Iterator[RedisServer]:
    """A private Redis instead of the shared one."""
    settings.CONFIG = settings.CONFIG.model_copy(update={"redis_url": redis_server.url})
    yield redis_server
    redis_server.resume()
    wait_for(availability.redis(redis_server.url).probe_once, seconds=5, what="Redis answers")


@pytest.mark.scaled
@pytest.mark.django_db(transaction=True)
class TestPublished:
    def test_documents_are_read_within_the_lifetime(
        self, cache: DocumentCache, clock: Clock, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        ref = make_ref()
        make_snapshot(ref.match)
        cache.update()
        Match.objects.filter(pk=ref.match_id).update(sequence=2, title="a wicket")
        own = Publisher()
        fresh = MatchRef.objects.select_related("match", "source").get(pk=ref.pk)
        fresh.match.data_source = "scraper"  # as ingest sets it
        own.note(ref.match_id, fresh)
        assert own.publish() == 1
        clock.now += LIFETIME_SECONDS
        with django_assert_num_queries(0):
            assert cache.find(ref.key).title == "a wicket"

    def test_a_pause_by_another_process_is_read_within_the_lifetime(self, cache: DocumentCache, clock: Clock) -> None:
        ref = make_ref()
        cache.update()
        lifecycle.pause(match_id=ref.match_id, until=NOW + timedelta(days=9999), reason="x", actor="y", now=NOW)
        clock.now += LIFETIME_SECONDS
        assert cache.find(ref.key).lifecycle == MatchLifecycle.PAUSED

    def test_new_matches_are_listed(self, cache: DocumentCache, clock: Clock) -> None:
        cache.update()
        ref = make_ref()
        redis_store.put([read(ref.match)])
        clock.now += LIFETIME_SECONDS
        assert _listed(cache) == [ref.match_id]
        redis_store.put([replace(read(ref.match), lifecycle=MatchLifecycle.ARCHIVED, sequence=2)])
        Match.objects.update(lifecycle=MatchLifecycle.ARCHIVED)
        clock.now += LIFETIME_SECONDS
        assert _listed(cache) == []

    def test_older_documents_replace_nothing(self, cache: DocumentCache, clock: Clock) -> None:
        ref = make_ref(make_match(sequence=3))
        cache.update()
        redis_store.put([replace(read(ref.match), sequence=2, scraped_at=LATER, title="older")])
        clock.now += LIFETIME_SECONDS
        assert cache.find(ref.key).sequence == 3

    def test_a_process_that_starts_without_the_database_serves_them(
        self, clock: Clock, request: pytest.FixtureRequest
    ) -> None:
        refs = [make_ref(make_match(sport=sport)) for sport in ("cricket", "football", "cricket")]
        Publisher().sweep()
        request.getfixturevalue("known_to_be_away")
        own = DocumentCache(clock=clock)
        page = own.page(MatchFilter(sport="cricket"), limit=1)
        assert ([each.id for each in page.matches], page.has_more) == ([refs[2].match_id], True)
        page = own.page(MatchFilter(sport="cricket"), after=(0, -refs[2].match_id), limit=1)
        assert ([each.id for each in page.matches], page.has_more) == ([refs[0].match_id], False)
        assert own.find(refs[1].key).id == refs[1].match_id

    def test_a_list_with_a_missing_document_is_refused(self, clock: Clock, request: pytest.FixtureRequest) -> None:
        ref = make_ref()
        Publisher().sweep()
        availability.redis_client(redis_url()).delete(f"{redis_store.LATEST}{ref.match_id}")
        request.getfixturevalue("known_to_be_away")
        with pytest.raises(NotCachedError):
            DocumentCache(clock=clock).page(MatchFilter(), limit=50)

    @pytest.mark.fault
    def test_without_redis_the_database_is_compared_at_every_update(self, own_redis: RedisServer, clock: Clock) -> None:
        ref, own = make_ref(), DocumentCache(clock=clock)
        for _ in range(2):
            clock.now += LIFETIME_SECONDS
            own.update()
        own_redis.pause()
        for sequence in (2, 3):
            Match.objects.filter(pk=ref.match_id).update(sequence=sequence)
            clock.now += LIFETIME_SECONDS
            assert own.find(ref.key).sequence == sequence
        own_redis.resume()
        wait_for(availability.redis(own_redis.url).probe_once, seconds=5, what="Redis answers")
        Match.objects.filter(pk=ref.match_id).update(sequence=4)
        clock.now += LIFETIME_SECONDS
        assert own.find(ref.key).sequence == 4  # changes that Redis missed are compared once


def redis_url() -> str:
    from django.conf import settings

    return str(settings.CONFIG.redis_url)
