"""What is known last of a match: as a value, in bounded memory, in the shared cache, and as an answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.cache import cache

from scraping.documents import publisher as publisher_module
from scraping.documents import queries, recall, shared
from scraping.documents.channel import Word
from scraping.documents.known import Known, NotKnown, decode, encode
from scraping.documents.memory import OVERHEAD_BYTES, MatchMemory, Memory, memory
from scraping.documents.publisher import Publisher, publisher
from scraping.documents.queries import MatchFilter
from scraping.matches import lifecycle, pairing
from scraping.models import Match, MatchLifecycle, MatchRef
from scraping.signals import match_updated
from scraping.worker import unchanged
from tests.factories import NOW, make_match, make_ref, make_scraper, make_snapshot, make_unread_match
from tests.servers import RedisServer
from tests.system import wait_for
from victoryline.lib import availability

pytestmark = pytest.mark.usefixtures("nothing_published")


def read(match: Match) -> Known:
    (row,) = queries.known_matches(ids=[match.pk])
    return Known.of(row)


@pytest.mark.django_db
@pytest.mark.both
class TestKnown:
    def test_is_the_same_after_a_way_through_the_cache(self) -> None:
        ref = make_ref(make_match(pause_until=NOW))
        make_ref(ref.match, source="other", is_watched=False)
        make_scraper(ref)
        make_snapshot(ref.match, data_source="manual")
        known = read(ref.match)
        assert decode(encode(known)) == known
        assert (known.data_source, len(known.refs)) == ("manual", 2)
        assert known.refs[0].scraper_id is not None
        assert known.refs[1].next_poll_at is None

    def test_grows_old_by_itself(self) -> None:
        known = read(make_ref().match)
        ages = [known.freshness(NOW + timedelta(seconds=later)) for later in (3, 30, 301)]
        assert [each.whole_age_seconds for each in ages] == [3, 30, 301]
        assert [each.state for each in ages] == ["fresh", "aging", "stale"]

    @pytest.mark.parametrize(
        "text", [b"", b"[]", b"nonsense", b'{"format": 0, "match": {}}', b'{"format": 1, "match": {}}']
    )
    def test_what_is_not_ours_is_not_read(self, text: bytes) -> None:
        assert decode(text) is None


@pytest.mark.requirement("NFR-015")
class TestMemory:
    def test_drops_the_least_recently_used_beyond_its_entries(self) -> None:
        held = Memory(max_entries=3)
        for name in "abc":
            held.put(name, b"x")
        assert held.get("a") == b"x"
        held.put("d", b"x")
        assert [held.get(name) for name in "abcd"] == [b"x", None, b"x", b"x"]

    def test_never_holds_more_bytes_than_it_may(self) -> None:
        held = Memory(max_bytes=10_000)
        for number in range(1000):
            held.put(number % 70, b"x" * (number % 900))
            assert held.size_bytes <= 10_000
        assert held.size_bytes == sum(
            len(held.get(each) or b"") + OVERHEAD_BYTES for each in range(70) if held.get(each) is not None
        )

    def test_what_is_larger_than_all_of_it_is_not_kept(self) -> None:
        held = Memory(max_bytes=100)
        held.put("a", b"x" * 200)
        assert (len(held), held.size_bytes) == (0, 0)

    def test_counts_right_under_many_threads(self) -> None:
        held = Memory(max_entries=50)

        def use(seed: int) -> None:
            for number in range(500):
                held.put((seed * number) % 97, b"x" * (number % 50))
                held.get(number % 97)

        threads = [threading.Thread(target=use, args=(seed,)) for seed in range(1, 9)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(held) == 50
        held.clear()
        assert held.size_bytes == 0


@pytest.mark.django_db
class TestMatchMemory:
    def test_keeps_the_newest_and_writes_no_more_than_it_must(self) -> None:
        held, known = MatchMemory(), read(make_ref().match)
        held.remember(known)
        held.remember(replace(known, title="a second later", scraped_at=NOW + timedelta(seconds=1)))
        assert held.match(known.id) == known
        held.remember(replace(known, title="changed", sequence=2))
        assert held.match(known.id).title == "changed"
        held.remember(replace(known, sequence=2, title="read again", scraped_at=NOW + timedelta(seconds=5)))
        assert held.match(known.id).title == "read again"
        assert held.id_of(known.keys[0]) == known.id

    def test_what_had_to_go_is_remembered_when_it_is_read_again(self) -> None:
        held, known = MatchMemory(Memory(max_entries=2)), read(make_ref().match)
        for each in (known, replace(known, id=known.id + 1, refs=()), replace(known, id=known.id + 2, refs=())):
            held.remember(each)
        assert held.match(known.id) is None
        held.remember(known)
        assert held.match(known.id) == known

    def test_what_json_cannot_hold_is_not_remembered_and_hurts_nobody(self) -> None:
        held, known = MatchMemory(), read(make_ref().match)
        held.remember(replace(known, payload={"title": "\ud800", "number": 2**80}))
        assert held.match(known.id) is None


@pytest.mark.django_db
@pytest.mark.both
class TestFilter:
    """The database and the memory understand every filter alike."""

    @pytest.fixture
    def known(self) -> list[Known]:
        make_ref(make_match(now=NOW))
        make_ref(make_match(sport="football", status="upcoming"), source="sofascore")
        make_ref(make_match(status="completed", lifecycle=MatchLifecycle.COMPLETED))
        make_ref(make_match(lifecycle=MatchLifecycle.ARCHIVED))
        make_ref(make_unread_match(team_a="Österreich", team_b="ÉIRE"))
        return [Known.of(each) for each in queries.known_matches(ids=list(Match.objects.values_list("pk", flat=True)))]

    @pytest.mark.parametrize(
        "wanted",
        [
            MatchFilter(),
            MatchFilter(status="live"),
            MatchFilter(sport="football"),
            MatchFilter(source="sofascore"),
            MatchFilter(source="nowhere"),
            MatchFilter(lifecycle="ARCHIVED"),
            MatchFilter(lifecycle="COMPLETED", status="completed"),
            MatchFilter(team="aust"),
            MatchFilter(team="CHEL"),
            MatchFilter(updated_since=NOW),
            MatchFilter(updated_since=NOW + timedelta(seconds=1)),
        ],
        ids=str,
    )
    def test_finds_what_the_database_finds(self, known: list[Known], wanted: MatchFilter) -> None:
        rows, _ = queries.page_of_matches(wanted, before_id=None, limit=100)
        assert [each.id for each in known if recall.is_wanted(each, wanted)] == [row.pk for row in rows]


@pytest.mark.django_db
class TestRecall:
    def test_says_so_when_it_does_not_know(self) -> None:
        for ask in (lambda: recall.match("7"), lambda: recall.match("crex_1"), lambda: recall.match("9" * 400)):
            with pytest.raises(NotKnown):
                ask()
        with pytest.raises(NotKnown):
            recall.page(MatchFilter(), before_id=None, limit=50)

    def test_knows_what_was_remembered_and_names_the_cache_as_its_source(self) -> None:
        known = read(make_ref(source_event_id="13KM").match)
        memory.remember(known)
        assert recall.match("crex_13KM") == recall.match(str(known.id)) == replace(known, data_source="cache")

    def test_a_list_is_only_answered_as_it_was_answered_before(self) -> None:
        known = read(make_ref().match)
        memory.remember(known)
        memory.remember_page(recall.list_question(MatchFilter(), None, 50), [[known.id], False])
        matches, has_more = recall.page(MatchFilter(), before_id=None, limit=50)
        assert ([each.id for each in matches], has_more) == ([known.id], False)
        with pytest.raises(NotKnown):  # knowing one match is not knowing the live ones
            recall.page(MatchFilter(status="live"), before_id=None, limit=50)


@pytest.mark.scaled
@pytest.mark.django_db(transaction=True)
class TestPublished:
    def test_a_committed_reading_is_in_the_cache_as_the_database_has_it(self) -> None:
        ref = make_ref()
        make_scraper(ref)
        other = make_ref(ref.match, source="other")
        own = Publisher()
        own.sweep()
        fresh = MatchRef.objects.select_related("source", "match").get(pk=ref.pk)
        fresh.match.sequence, fresh.next_poll_at = 2, NOW + timedelta(seconds=9)
        fresh.match.data_source = "scraper"  # as ingest tells it
        own.note(ref.match_id, fresh)
        assert own.publish() == 1
        found = shared.match(ref.match_id)
        fresh.match.save()
        fresh.save()
        assert found == read(ref.match)
        assert {each.key for each in found.refs} == {ref.key, other.key}

    def test_costs_two_questions_for_matches_never_seen_and_then_none(self, django_assert_num_queries) -> None:
        refs = [MatchRef.objects.select_related("source", "match").get(pk=make_ref().pk) for _ in range(20)]
        for ref in refs:
            ref.match.data_source = "scraper"  # as ingest tells it
        own = Publisher()
        with django_assert_num_queries(1):
            for ref in refs:
                own.note(ref.match_id, ref)
            assert own.publish() == 20
        with django_assert_num_queries(0):
            for ref in refs:
                own.note(ref.match_id, ref)
            assert own.publish() == 20

    def test_the_signals_reach_it_when_it_runs(self) -> None:
        ref = make_ref()
        publisher.start()
        try:
            match_updated.send_robust(sender=Match, match_id=ref.match_id, sequence=1, is_changed=True, ref=ref)
            wait_for(lambda: shared.match(ref.match_id), seconds=10, what="the reading is published")
            lifecycle.pause(match_id=ref.match_id, until=NOW + timedelta(days=4000), reason="x", actor="y", now=NOW)
            wait_for(
                lambda: shared.match(ref.match_id).lifecycle == "PAUSED", seconds=10, what="the pause is published"
            )
        finally:
            publisher.stop()
        assert not publisher.is_running

    def test_nothing_is_noted_where_it_does_not_run(self) -> None:
        match_updated.send_robust(sender=Match, match_id=1, sequence=1, is_changed=True)
        assert publisher._noted == {}

    def test_lists_come_from_the_index_and_hold_every_match(self) -> None:
        refs = [make_ref(make_match(sport=sport)) for sport in ("cricket", "football", "cricket")]
        Publisher().sweep()
        matches, has_more = recall.page(MatchFilter(sport="cricket"), before_id=None, limit=1)
        assert ([each.id for each in matches], has_more) == ([refs[2].match_id], True)
        matches, has_more = recall.page(MatchFilter(sport="cricket"), before_id=refs[2].match_id, limit=1)
        assert ([each.id for each in matches], has_more) == ([refs[0].match_id], False)
        assert recall.match(refs[1].key).id == refs[1].match_id

    def test_what_became_another_match_leads_there(self) -> None:
        matches = [make_match() for _ in range(3)]
        keep, gone, last = (
            make_ref(match, source=source, payload=match.payload)
            for match, source in zip(matches, ("crex", "other", "third"), strict=True)
        )
        Publisher().sweep()
        memory.remember(read(gone.match))  # as it was
        pairing.merge(keep.match_id, gone.match_id, actor="ann", now=NOW)
        assert recall.match(str(gone.match_id)).id == recall.match(gone.key).id == keep.match_id
        pairing.merge(last.match_id, keep.match_id, actor="ann", now=NOW)
        assert recall.match(str(gone.match_id)).id == last.match_id

    def test_a_list_with_a_hole_is_no_list(self) -> None:
        ref = make_ref()
        Publisher().sweep()
        cache.delete(f"{shared.PREFIX}{ref.match_id}")
        with pytest.raises(NotKnown):
            recall.page(MatchFilter(), before_id=None, limit=50)

    def test_the_newer_of_cache_and_memory_is_told(self) -> None:
        known = read(make_ref().match)
        shared.put([known])
        memory.remember(replace(known, sequence=2, title="newer"))
        assert recall.match(str(known.id)).title == "newer"
        shared.put([replace(known, sequence=3, title="newest")])
        assert recall.match(str(known.id)).title == "newest"

    def test_only_one_process_takes_a_turn(self) -> None:
        assert [shared.take_turn("x", 60) for _ in range(3)] == [True, False, False]

    def test_the_cache_takes_nothing_but_bytes(self) -> None:
        with pytest.raises(TypeError):
            cache.set("known:x", {"a": 1})


@pytest.mark.fault
@pytest.mark.scaled
@pytest.mark.django_db(transaction=True)
class TestRedisAway:
    @pytest.fixture
    def own_redis(self, redis_server: RedisServer, settings) -> Iterator[RedisServer]:
        """Ours instead of the one that all tests share."""
        settings.CONFIG = settings.CONFIG.model_copy(update={"redis_url": redis_server.url})
        settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": redis_server.url}}
        yield redis_server
        redis_server.resume()
        wait_for(availability.redis(redis_server.url).probe_once, seconds=5, what="Redis answers")

    def test_frozen_costs_one_short_wait_and_then_none(self, own_redis: RedisServer) -> None:
        known = read(make_ref().match)
        assert shared.put([known]) == 1
        own_redis.pause()
        began = time.monotonic()
        assert shared.match(known.id) is None
        assert time.monotonic() - began < 5
        began = time.monotonic()
        for _ in range(100):
            assert shared.put([known]) == 0
            assert shared.match(known.id) is None
            assert shared.index() is None
            assert not shared.take_turn("x", 1)
        assert time.monotonic() - began < 400 * availability.REDIS_TIMEOUT_SECONDS / 10
        own_redis.resume()
        wait_for(lambda: shared.match(known.id), seconds=10, what="what was stored is there again")

    def test_full_drops_what_it_cannot_take(self, own_redis: RedisServer) -> None:
        known = read(make_ref().match)
        with availability.Redis.from_url(own_redis.url) as client:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", "1")
            try:
                assert shared.put([known]) == 0
            finally:
                client.config_set("maxmemory", "0")


@pytest.mark.django_db
def test_what_is_rendered_is_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher_module, "MAX_RENDERED", 2)
    one, own = read(make_ref().match), Publisher()
    for number in (1, 2, 1, 3):
        own._keep([replace(one, id=number)])
    assert list(own._rendered) == [1, 3]


@pytest.mark.django_db
class TestTwoWordsOnOneMatch:
    """Noted at almost the same time, so that they go out together."""

    @pytest.fixture
    def told(self, monkeypatch: pytest.MonkeyPatch) -> list[Word]:
        words: list[Word] = []
        monkeypatch.setattr(publisher_module.channel, "tell", words.extend)
        monkeypatch.setattr(publisher_module.shared, "put", len)
        return words

    def test_news_are_not_lost_to_a_reading_that_had_none(self, told: list[Word]) -> None:
        """Of another source, begun before the news were written, and written after them."""
        ref, own = make_ref(), Publisher()
        own._keep([read(ref.match)])
        again = unchanged.for_polling([make_ref(ref.match, source="other").pk]).get()
        Match.objects.filter(pk=ref.match_id).update(sequence=2, title="a wicket")
        news = MatchRef.objects.select_related("source", "match").get(pk=ref.pk)
        news.match.data_source = "scraper"  # as ingest tells it
        own.note(ref.match_id, news)
        own.note(ref.match_id, again)
        own.publish()
        assert [(word.whole.sequence, word.whole.title) for word in told if word.whole] == [(2, "a wicket")]

    def test_what_is_to_be_looked_up_is_looked_up(self, told: list[Word]) -> None:
        ref, own = make_ref(), Publisher()
        own._keep([read(ref.match)])
        before = unchanged.for_polling([ref.pk]).get()
        until = NOW + timedelta(hours=1)
        Match.objects.filter(pk=ref.match_id).update(lifecycle=MatchLifecycle.PAUSED, pause_until=until)
        own.note(ref.match_id)
        own.note(ref.match_id, before)
        own.publish()
        assert [word.whole.lifecycle for word in told if word.whole] == [MatchLifecycle.PAUSED]


def test_a_note_costs_next_to_nothing_and_is_bounded() -> None:
    own = Publisher()
    for match_id in range(20_000):
        own.note(match_id)
    assert len(own._noted) == 10_000
