"""The publisher and the documents in Redis."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import transaction

from scraping.documents import publisher as publisher_module
from scraping.documents import queries, redis_store
from scraping.documents.cache import DocumentCache
from scraping.documents.cached_match import CachedMatch
from scraping.documents.publisher import Publisher, publisher
from scraping.matches import lifecycle
from scraping.models import Match, MatchLifecycle, MatchRef
from scraping.signals import match_updated
from scraping.worker import unchanged
from tests.factories import NOW, make_match, make_ref, make_scraper
from tests.patience import stretched, wait_for
from tests.scraping.documents.test_cache import own_redis, read  # noqa: F401 - a fixture
from tests.servers import RedisServer
from victoryline.lib import availability

pytestmark = pytest.mark.usefixtures("nothing_published")


def stored(match_id: int) -> CachedMatch | None:
    return redis_store.get([match_id]).get(match_id)


def ingested(ref: MatchRef) -> MatchRef:
    """The reference as ingest has it after a poll with news."""
    fresh = MatchRef.objects.select_related("source", "match").get(pk=ref.pk)
    fresh.match.data_source = "scraper"
    return fresh


@pytest.mark.scaled
@pytest.mark.django_db(transaction=True)
class TestPublish:
    def test_stores_a_match_as_the_database_has_it(self) -> None:
        ref = make_ref()
        make_scraper(ref)
        other = make_ref(ref.match, source="other")
        own = Publisher()
        own.sweep()
        fresh = ingested(ref)
        fresh.match.sequence, fresh.next_poll_at = 2, NOW + timedelta(seconds=9)
        own.note(ref.match_id, fresh)
        assert own.publish() == 1
        found = stored(ref.match_id)
        fresh.match.save()
        fresh.save()
        assert found == read(ref.match)
        assert {each.key for each in found.refs} == {ref.key, other.key}

    def test_costs_one_query_for_new_matches_and_then_none(self, django_assert_num_queries) -> None:
        refs = [ingested(make_ref()) for _ in range(20)]
        own = Publisher()
        for expected in (1, 0):
            with django_assert_num_queries(expected):
                for ref in refs:
                    own.note(ref.match_id, ref)
                assert own.publish() == 20

    def test_runs_after_signals(self) -> None:
        ref = make_ref()
        publisher.start()
        try:
            match_updated.send_robust(sender=Match, match_id=ref.match_id, sequence=1, is_changed=True, ref=ref)
            wait_for(lambda: stored(ref.match_id), seconds=10, what="the poll is published")
            lifecycle.pause(match_id=ref.match_id, until=NOW + timedelta(days=4000), reason="x", actor="y", now=NOW)
            wait_for(lambda: stored(ref.match_id).lifecycle == "PAUSED", seconds=10, what="the pause is published")
        finally:
            publisher.stop()
        assert not publisher.is_running

    def test_notes_nothing_in_a_process_without_a_publisher(self) -> None:
        ref = make_ref()
        match_updated.send_robust(sender=Match, match_id=ref.match_id, sequence=1, is_changed=True, ref=ref)
        assert publisher._noted == {}

    def test_stores_operator_actions_of_a_process_without_a_publisher(self) -> None:
        ref, position = make_ref(), redis_store.latest_position()
        lifecycle.pause(match_id=ref.match_id, until=NOW + timedelta(days=4000), reason="x", actor="y", now=NOW)
        assert stored(ref.match_id).lifecycle == "PAUSED"
        assert redis_store.changes_after(position).reload == {ref.match_id}

    @pytest.mark.requirement("SO-11")
    def test_keys_have_the_specified_names_and_lifetimes(self) -> None:
        ref = make_ref()
        assert Publisher().sweep() == 1
        redis_store.AbsentNames(clock=time.monotonic).add("crex_1")
        client = availability.redis_client(settings.CONFIG.redis_url)
        assert 86_300 < client.ttl(f"victoryline:match_latest:{ref.match_id}") <= 86_400
        assert 0 < client.ttl("victoryline:negative_cache:crex_1") <= 60

    @pytest.mark.requirement("SO-11")
    def test_an_old_document_is_used_only_while_the_database_is_away(self, monkeypatch: pytest.MonkeyPatch) -> None:
        match = make_ref(make_match(title="before")).match
        Publisher().sweep()
        Match.objects.filter(pk=match.pk).update(title="now", sequence=2)
        found = DocumentCache().find(str(match.pk))
        assert found is not None
        assert (found.title, found.data_source) == ("now", "scraper")
        monkeypatch.setattr(availability.database, "is_away", lambda: True)
        found = DocumentCache().find(str(match.pk))
        assert found is not None
        assert (found.title, found.data_source) == ("before", "cache")

    def test_one_process_takes_a_turn(self) -> None:
        assert [redis_store.take_turn("x", 60) for _ in range(3)] == [True, False, False]

    def test_splits_large_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(redis_store, "AT_ONCE", 2)
        match, position = read(make_ref().match), redis_store.latest_position()
        assert redis_store.put([replace(match, id=number) for number in range(1, 6)], reload=[4]) == 5
        changes = redis_store.changes_after(position)
        assert (changes.published, changes.reload) == ({1, 2, 3, 5}, {4})
        assert redis_store.get(range(1, 7)).keys() == {1, 2, 3, 4, 5}

    def test_leaves_out_what_json_cannot_hold(self) -> None:
        match = read(make_ref().match)
        odd = replace(match, id=match.id + 1, payload={"title": "\ud800"})
        assert redis_store.put([odd, match]) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.both
def test_changes_are_published_after_their_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine pauses a match inside the transaction of the last allowed failure."""
    ref, noted = make_ref(), list[int]()
    monkeypatch.setattr(publisher, "_thread", threading.current_thread())
    monkeypatch.setattr(publisher, "note", lambda match_id, _: noted.append(match_id))
    with transaction.atomic():
        assert lifecycle.after_failed_attempt(
            ref.match_id, reason="502", is_dead=True, pause_after=1, pause_seconds=60, now=NOW
        )
        assert noted == []
    assert noted == [ref.match_id]


@pytest.mark.fault
@pytest.mark.scaled
@pytest.mark.django_db(transaction=True)
class TestRedisAway:
    def test_a_frozen_redis_costs_one_short_wait(self, own_redis: RedisServer) -> None:  # noqa: F811
        match = read(make_ref().match)
        assert redis_store.put([match]) == 1
        own_redis.pause()
        began = time.monotonic()
        assert stored(match.id) is None
        assert time.monotonic() - began < stretched(5)
        began = time.monotonic()
        for _ in range(100):
            assert redis_store.put([match]) == 0
            assert stored(match.id) is None
            assert redis_store.index() is None
            assert not redis_store.take_turn("x", 1)
        assert time.monotonic() - began < 400 * availability.REDIS_TIMEOUT_SECONDS / 10
        own_redis.resume()
        wait_for(lambda: stored(match.id), seconds=10, what="the stored document is there again")

    def test_a_full_redis_stores_nothing(self, own_redis: RedisServer) -> None:  # noqa: F811
        match = read(make_ref().match)
        with availability.Redis.from_url(own_redis.url) as client:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", "1")
            try:
                assert redis_store.put([match]) == 0
            finally:
                client.config_set("maxmemory", "0")


@pytest.mark.django_db
class TestTwoNotesOnOneMatch:
    """Two notes at almost the same time, which are published together."""

    @pytest.fixture
    def published(self, monkeypatch: pytest.MonkeyPatch) -> list[CachedMatch]:
        found: list[CachedMatch] = []

        def put(matches: list[CachedMatch], **_: object) -> int:
            found.extend(matches)
            return len(matches)

        monkeypatch.setattr(publisher_module.redis_store, "put", put)
        return found

    def test_news_win_over_a_poll_without_news(self, published: list[CachedMatch]) -> None:
        """The poll of another source began before the changed one was written and is committed after it."""
        ref, own = make_ref(), Publisher()
        own._rendered[ref.match_id] = read(ref.match)
        again = unchanged.for_polling([make_ref(ref.match, source="other").pk]).get()
        Match.objects.filter(pk=ref.match_id).update(sequence=2, title="a wicket")
        own.note(ref.match_id, ingested(ref))
        own.note(ref.match_id, again)
        own.publish()
        assert [(match.sequence, match.title) for match in published] == [(2, "a wicket")]

    def test_an_operator_action_is_read_from_the_database(self, published: list[CachedMatch]) -> None:
        ref, own = make_ref(), Publisher()
        own._rendered[ref.match_id] = read(ref.match)
        before = unchanged.for_polling([ref.pk]).get()
        until = NOW + timedelta(hours=1)
        Match.objects.filter(pk=ref.match_id).update(lifecycle=MatchLifecycle.PAUSED, pause_until=until)
        own.note(ref.match_id)
        own.note(ref.match_id, before)
        own.publish()
        assert [match.lifecycle for match in published] == [MatchLifecycle.PAUSED]


@pytest.mark.django_db
def test_rendered_documents_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher_module, "MAX_RENDERED", 2)
    own, ids = Publisher(), [make_ref(make_match()).match_id for _ in range(3)]
    monkeypatch.setattr(publisher_module.redis_store, "put", lambda matches, **_: len(matches))
    for match_id in ids:
        own.note(match_id)
        own.publish()
    assert list(own._rendered) == ids[1:]


def test_notes_are_bounded() -> None:
    own = Publisher()
    for match_id in range(20_000):
        own.note(match_id)
    assert len(own._noted) == 10_000


def test_sweeps_all_listed_matches(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    make_ref()
    make_ref(make_match(lifecycle=MatchLifecycle.ARCHIVED))
    assert [match.lifecycle for match in queries.cached_matches()] == [MatchLifecycle.ACTIVE]
