"""The board: what is held, what replaces what, and how it is kept in step with the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.db import connection, transaction
from redis import Redis
from redis.exceptions import OutOfMemoryError

from scraping.documents import channel, looking, pages, queries
from scraping.documents.board import IN_STEP_SECONDS, Board
from scraping.documents.channel import Word
from scraping.documents.follower import LOOK_SECONDS, QUICK_SECONDS, Follower, Hearing
from scraping.documents.known import Known
from scraping.documents.publisher import Publisher, publisher
from scraping.matches import lifecycle
from scraping.models import Breaker, BreakerState, Match, MatchLifecycle, MatchRef, Source
from tests.factories import NOW, make_match, make_ref, make_snapshot
from tests.servers import RedisServer
from tests.system import wait_for
from victoryline.lib import availability

LATER = NOW + timedelta(seconds=3)
BEFORE = float("-inf")  # the database was asked before anything was held


def known_of(match: Match) -> Known:
    (row,) = queries.known_matches(ids=[match.pk])
    return Known.of(row)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.django_db
class TestBoard:
    @pytest.fixture
    def known(self) -> Known:
        return known_of(make_ref().match)

    def test_finds_by_number_and_by_every_key(self, known: Known) -> None:
        held = Board()
        held.put(known)
        assert [held.id_of(name) for name in (str(known.id), *known.keys, "crex_none")] == [known.id, known.id, None]
        assert held.get(known.id) == known
        assert held.newest_first() == (known,)

    def test_what_is_older_replaces_nothing(self, known: Known) -> None:
        held = Board()
        assert held.put(replace(known, sequence=3))
        assert not held.put(replace(known, sequence=2, scraped_at=LATER))
        assert not held.put(replace(known, sequence=2), read_at=BEFORE)
        assert held.get(known.id).sequence == 3

    def test_a_pause_moves_no_number_and_counts_when_the_database_says_so(self, known: Known) -> None:
        held = Board()
        held.put(known)
        paused = replace(known, lifecycle=MatchLifecycle.PAUSED)
        assert not held.put(paused)  # a worker's word may be from before the pause, or after it
        assert held.put(paused, read_at=BEFORE)
        assert not held.put(known)
        assert held.get(known.id).lifecycle == MatchLifecycle.PAUSED

    def test_a_reading_without_news_brings_new_times_and_keeps_the_rest(self, known: Known) -> None:
        held = Board()
        held.put(known)
        assert held.renew(replace(known, payload={}, scraped_at=LATER))
        assert (held.get(known.id).scraped_at, held.get(known.id).payload) == (LATER, known.payload)
        assert held.renew(replace(known, payload={}, scraped_at=NOW))
        assert held.get(known.id).scraped_at == LATER

    def test_a_reading_of_what_we_do_not_hold_has_to_be_looked_up(self, known: Known) -> None:
        held = Board()
        assert not held.renew(known)
        held.put(known)
        assert not held.renew(replace(known, sequence=2, payload={}))
        held.put(replace(known, sequence=3))
        assert held.renew(replace(known, sequence=2, payload={}))  # older than what we hold: nothing to look up

    def test_a_reader_who_does_not_know_of_the_pause_does_not_end_it(self, known: Known) -> None:
        held = Board()
        held.put(replace(known, lifecycle=MatchLifecycle.PAUSED, pause_until=LATER))
        assert held.renew(replace(known, payload={}, scraped_at=LATER))
        seen = held.get(known.id)
        assert (seen.lifecycle, seen.pause_until, seen.scraped_at) == (MatchLifecycle.PAUSED, LATER, LATER)

    def test_a_database_that_was_restored_is_believed(self, known: Known) -> None:
        held = Board()
        held.put(replace(known, sequence=9))
        assert held.put(replace(known, sequence=2), read_at=held.now() + 1)
        assert held.get(known.id).sequence == 2

    def test_who_reads_one_source_is_not_believed_about_the_others(self, known: Known) -> None:
        other = replace(known.refs[0], source="other", next_poll_at=LATER + timedelta(seconds=9))
        held = Board()
        held.put(replace(known, refs=(*known.refs, other)))
        mine = replace(known.refs[0], next_poll_at=LATER + timedelta(seconds=1))
        told = (mine, replace(other, next_poll_at=NOW))
        held.renew(replace(known, payload={}, scraped_at=LATER, refs=told))
        assert held.get(known.id).refs == (mine, other)
        held.put(replace(known, sequence=5, scraped_at=LATER, refs=told))
        assert held.get(known.id).refs == (mine, other)
        held.put(replace(known, sequence=6, refs=(mine,)))  # it has not heard of the other one yet
        assert held.id_of(other.key) == known.id

    def test_after_something_was_done_only_a_later_look_counts(self, known: Known) -> None:
        clock = Clock()
        held = Board(clock)
        held.put(known)
        clock.now = 1.0
        held.expect([known.id, 999])
        assert (held.get(known.id), held.is_expecting, held.newest_first()) == (None, True, (known,))
        assert not held.put(replace(known, sequence=9))  # a worker's word, perhaps from before
        assert not held.put(replace(known, sequence=9), read_at=0.5)  # a look that had begun before
        assert held.renew(replace(known, payload={}, scraped_at=LATER))
        assert held.get(known.id) is None
        assert held.put(replace(known, lifecycle=MatchLifecycle.PAUSED), read_at=1.0)
        assert (held.get(known.id).lifecycle, held.is_expecting) == (MatchLifecycle.PAUSED, False)
        held.expect([known.id])
        held.drop([known.id])
        assert not held.is_expecting

    def test_names_follow_their_match(self, known: Known) -> None:
        held = Board()
        held.put(known)
        moved = replace(known.refs[0], event_id="elsewhere")
        held.put(replace(known, refs=(moved,)), read_at=BEFORE)
        assert (held.id_of(known.keys[0]), held.id_of(moved.key)) == (None, known.id)
        held.drop([known.id])
        assert (held.id_of(moved.key), held.get(known.id), len(held)) == (None, None, 0)
        held.put(known)
        held.put(replace(known, id=known.id + 1))  # a late word of a match that became this one
        held.drop([known.id + 1])
        assert held.id_of(known.keys[0]) == known.id

    def test_is_in_step_only_for_seconds(self) -> None:
        clock = Clock()
        held = Board(clock)
        assert (held.is_in_step, held.was_filled) == (False, False)
        held.stay_in_step()
        assert held.is_in_step
        clock.now += IN_STEP_SECONDS
        assert (held.is_in_step, held.was_filled) == (False, True)

    def test_what_is_aside_is_forgotten_soon_and_when_matches_come_and_go(self, known: Known) -> None:
        clock = Clock()
        held = Board(clock)
        held.put_aside("7", known)
        assert held.aside("7") == known
        clock.now += 5.0
        assert held.aside("7") is None
        held.put_aside("7", known)
        held.put(replace(known, id=99))
        assert held.aside("7") is None

    def test_readers_and_writers_do_not_disturb_each_other(self, known: Known) -> None:
        held, errors = Board(), []

        def write(start: int) -> None:
            for number in range(300):
                held.put(replace(known, id=start + number % 20, sequence=number))
                if number % 30 == 0:
                    held.drop([start + 1])

        def read() -> None:
            try:
                for _ in range(600):
                    ids = [each.id for each in held.newest_first()]
                    assert ids == sorted(ids, reverse=True)
            except (AssertionError, RuntimeError, KeyError) as error:
                errors.append(error)

        threads = [threading.Thread(target=write, args=(start,)) for start in (0, 10, 100)]
        threads += [threading.Thread(target=read) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert not errors


@pytest.mark.django_db
@pytest.mark.both
class TestLooking:
    def test_takes_everything_that_is_not_archived(self) -> None:
        refs = [make_ref() for _ in range(3)]
        make_ref(make_match(lifecycle=MatchLifecycle.ARCHIVED))
        became, held = make_match(merged_into=refs[0].match), Board()
        assert looking.look(held) == 3
        assert held.ids() == {ref.match_id for ref in refs}
        assert became.pk not in held.ids()
        assert held.is_complete
        assert held.is_in_step
        assert all(held.get(ref.match_id) == known_of(ref.match) for ref in refs)

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
    )
    @pytest.mark.parametrize("is_hot", [True, False])
    def test_sees_every_change(self, change: dict[str, object], is_hot: bool) -> None:
        ref, held = make_ref(), Board()
        looking.look(held)
        Match.objects.filter(pk=ref.match_id).update(**change)
        assert (looking.look_at_hot if is_hot else looking.look)(held) == 1
        assert held.get(ref.match_id) == known_of(ref.match)
        assert (looking.look_at_hot if is_hot else looking.look)(held) == 0

    def test_what_was_remembered_ends_with_a_restore(self, caplog: pytest.LogCaptureFixture) -> None:
        """Numbers are given out again, for other states."""
        ref, held = make_ref(make_match(sequence=9)), Board()
        looking.look(held)
        pages.read("q", 9, lambda: ["before"], what="x")
        Match.objects.update(sequence=10)
        looking.look(held)
        assert pages.read("q", 9, lambda: ["after"], what="x") == ["before"]
        Match.objects.update(sequence=8)
        looking.look(held)
        assert held.get(ref.match_id).sequence == 8
        assert pages.read("q", 9, lambda: ["after"], what="x") == ["after"]
        assert [line.action for line in caplog.records if hasattr(line, "action")] == ["store_went_back"]

    def test_a_quick_look_sees_what_is_corrected_after_the_end(self) -> None:
        ref, held = make_ref(make_match(status="completed", lifecycle=MatchLifecycle.COMPLETED)), Board()
        looking.look(held)
        Match.objects.filter(pk=ref.match_id).update(sequence=2, last_changed_at=LATER)
        assert looking.look_at_hot(held) == 1
        assert held.get(ref.match_id).sequence == 2

    def test_sees_plans_that_change_without_a_reading(self) -> None:
        ref, held = make_ref(), Board()
        looking.look(held)
        for change in ({"next_poll_at": LATER}, {"is_watched": False}):
            MatchRef.objects.filter(pk=ref.pk).update(**change)
            assert looking.look(held) == 1
            assert held.get(ref.match_id) == known_of(ref.match)

    def test_sees_that_the_breaker_of_a_source_opens_and_closes(self) -> None:
        board, ref, until = Board(), make_ref(), NOW + timedelta(minutes=15)
        looking.look(board)
        breaker = Breaker.objects.create(
            name="crex", source=ref.source, state=BreakerState.OPEN, open_until=until, last_state_change=NOW
        )
        looking.look(board)
        assert board.get(ref.match_id).next_read_at == until
        assert board.get(ref.match_id).next_poll_at == ref.next_poll_at
        Breaker.objects.filter(pk=breaker.pk).update(state=BreakerState.HALF_OPEN)
        looking.look(board)
        assert board.get(ref.match_id).next_read_at == ref.next_poll_at

    @pytest.mark.requirement("BX-2")
    def test_sees_that_a_source_is_switched_off(self) -> None:
        """Nobody reads it then, whatever was planned: a consumer who is told so does not ask every second."""
        ref, held = make_ref(), Board()
        looking.look(held)
        assert held.get(ref.match_id).freshness(NOW).next_update_in == 2.5
        Source.objects.update(is_enabled=False)
        assert looking.look(held) == 1
        assert held.get(ref.match_id) == known_of(ref.match)
        assert held.get(ref.match_id).freshness(NOW).next_update_in is None
        assert looking.look(held) == 0

    def test_what_leaves_goes(self) -> None:
        refs, held = [make_ref() for _ in range(3)], Board()
        looking.look(held)
        Match.objects.filter(pk=refs[0].match_id).update(lifecycle=MatchLifecycle.ARCHIVED)
        looking.look_at_hot(held)
        assert held.ids() == {ref.match_id for ref in refs[1:]}
        Match.objects.filter(pk=refs[1].match_id).update(merged_into=refs[2].match_id)
        looking.look_at_hot(held)
        assert held.ids() == {refs[2].match_id}
        Match.objects.filter(pk=refs[1].match_id).delete()
        Match.objects.filter(pk=refs[2].match_id).delete()
        looking.look(held)
        assert held.ids() == set()

    def test_a_look_at_what_has_not_moved_reads_no_payload(self, django_assert_num_queries) -> None:
        for _ in range(20):
            make_ref()
        held = Board()
        looking.look(held)
        with django_assert_num_queries(2) as asked:
            looking.look(held)
        assert not any("payload" in each["sql"] for each in asked.captured_queries)

    def test_holds_the_newest_of_very_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(looking, "HELD_AT_MOST", 3)
        ids = sorted(make_ref().match_id for _ in range(5))
        held = Board()
        looking.look(held)
        assert (held.ids(), held.is_complete) == (set(ids[2:]), False)
        older = known_of(Match.objects.get(pk=ids[0]))
        assert not held.put(older)
        assert held.renew(older)  # nobody has to look it up, either
        looking.take(held, ids)
        looking.look_at_hot(held)
        assert held.ids() == set(ids[2:])
        Match.objects.filter(pk__in=ids[3:]).update(lifecycle=MatchLifecycle.ARCHIVED)
        looking.look(held)
        assert (held.ids(), held.is_complete) == (set(ids[:3]), True)

    def test_sees_another_name(self) -> None:
        ref, held = make_ref(is_watched=False, next_poll_at=None), Board()
        looking.look(held)
        make_ref(ref.match, is_watched=False, next_poll_at=None)
        looking.look(held)
        assert held.get(ref.match_id) == known_of(ref.match)
        assert len(held.get(ref.match_id).keys) == 2

    def test_what_is_told_of_during_a_look_is_not_taken_for_gone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        held, new, take = Board(), known_of(make_ref().match), looking._take
        Match.objects.filter(pk=new.id).update(lifecycle=MatchLifecycle.ARCHIVED)  # as if it weren't there yet

        def told_meanwhile(board: Board, *args: object) -> int:
            board.put(new)
            return take(board, *args)

        monkeypatch.setattr(looking, "_take", told_meanwhile)
        looking.look(held)
        assert held.ids() == {new.id}


@pytest.mark.django_db
class TestWords:
    def test_are_the_same_after_the_way(self) -> None:
        known = known_of(make_ref().match)
        bare = replace(known, payload={})
        words = [Word(whole=known), Word(bare=known), Word(look_at=7)]
        assert channel.read(channel._text(words)) == [Word(whole=known), Word(bare=bare), Word(look_at=7)]

    @pytest.mark.parametrize("text", [b"", b"{", b"null", b"[1]", b'[{"whole": {}}]', b'[{"other": 1}]', b'["x"]'])
    def test_of_strangers_are_left_out(self, text: bytes) -> None:
        assert channel.read(text) == []

    def test_of_what_is_archived_lead_to_a_look(self) -> None:
        held, wake = Board(), threading.Event()
        hearing, known = Hearing(held, ask_to_look=wake), known_of(make_ref().match)
        hearing._note(Word(whole=replace(known, lifecycle=MatchLifecycle.ARCHIVED)))
        assert (held.ids(), list(hearing.unknown), wake.is_set()) == (set(), [known.id], True)

    def test_what_json_cannot_hold_is_left_out_alone(self) -> None:
        known = known_of(make_ref().match)
        odd = Word(whole=replace(known, payload={"title": "\ud800"}))
        assert channel.read(channel._text([odd, Word(look_at=7)])) == [Word(look_at=7)]


@pytest.fixture
def following(settings: LazySettings) -> Iterator[Follower]:
    """A follower with a board of its own, at work."""
    own = Follower(Board())
    own.start()
    try:
        wait_for(lambda: own.board.is_in_step, seconds=10, what="the board is filled")
        yield own
    finally:
        own.stop()


def seconds_until_seen(own: Follower, match: Match, sequence: int) -> float:
    began = time.monotonic()
    while (held := own.board.get(match.pk)) is None or held.sequence != sequence:
        assert time.monotonic() - began < 5, "the board does not show it"
        time.sleep(0.002)
    return time.monotonic() - began


def change(match: Match, sequence: int) -> None:
    Match.objects.filter(pk=match.pk).update(sequence=sequence, last_changed_at=NOW, title=f"state {sequence}")


def test_a_long_look_does_not_earn_a_rest_in_which_the_board_falls_out_of_step() -> None:
    own = Follower(Board())
    assert own.pause_after(0.001) == QUICK_SECONDS
    assert own.pause_after(0.02) == pytest.approx(0.1)
    assert own.pause_after(3.0) == LOOK_SECONDS < IN_STEP_SECONDS - 3.0


@pytest.mark.django_db
def test_who_begins_to_listen_looks_for_what_was_said_before() -> None:
    own, ref = Follower(Board()), make_ref()
    own.look(is_whole=True)
    assert not own.wants_everything(0.1)
    change(ref.match, 2)
    own.hearing._take({"type": "subscribe", "data": 1})
    assert own.wants_everything(0.1)
    own.look(is_whole=own.wants_everything(0.1))
    assert own.board.get(ref.match_id).sequence == 2
    assert not own.wants_everything(0.1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.both
class TestFollowing:
    def test_a_commit_of_another_process_shows_soon(self, following: Follower) -> None:
        """Without anybody who tells. How soon is measured by the bench `load`; here, that it is no slow look."""
        ref = make_ref()
        change(ref.match, 2)
        seconds_until_seen(following, ref.match, 2)
        if following.hearing.is_good:
            return
        waits = []
        for sequence in range(3, 8):
            change(ref.match, sequence)
            waits.append(seconds_until_seen(following, ref.match, sequence))
        assert min(waits) < 0.5

    def test_what_this_process_does_shows_at_once(self, following: Follower) -> None:
        ref = make_ref()
        wait_for(lambda: following.board.get(ref.match_id), seconds=5, what="the match is there")
        lifecycle.pause(match_id=ref.match_id, until=NOW + timedelta(days=9999), reason="x", actor="y", now=NOW)
        following.look_again_at(ref.match_id)
        held = following.board.get(ref.match_id)
        assert held is None or held.lifecycle == MatchLifecycle.PAUSED
        wait_for(
            lambda: (held := following.board.get(ref.match_id)) and held.lifecycle == MatchLifecycle.PAUSED,
            seconds=5,
            what="the pause shows",
        )

    def test_what_the_engine_does_is_told_when_it_is_committed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It pauses a match inside the transaction of the failure that was one too many."""
        ref, told, published = make_ref(), list[Word](), list[int]()
        monkeypatch.setattr(channel, "tell", told.extend)
        monkeypatch.setattr(publisher, "_thread", threading.current_thread())
        monkeypatch.setattr(publisher, "note", lambda match_id, _: published.append(match_id))
        with transaction.atomic():
            assert lifecycle.after_failed_task(ref.match_id, pause_after=1, pause_seconds=60, now=NOW)
            assert (told, published) == ([], [])
        assert (told, published) == ([Word(look_at=ref.match_id)], [ref.match_id])

    def test_stays_what_it_was_while_the_database_is_away(
        self, following: Follower, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ref = make_ref()
        wait_for(lambda: following.board.get(ref.match_id), seconds=5, what="the match is there")
        monkeypatch.setattr(availability.database, "is_away", lambda: True)
        following.board.stay_in_step(0.2)
        wait_for(lambda: following._try(is_whole=True) is False, seconds=1, what="it does not look")
        assert following.board.is_in_step
        assert following.board.get(ref.match_id) is not None


@pytest.mark.scaled
@pytest.mark.django_db(transaction=True)
class TestHearing:
    def test_a_published_commit_is_heard_before_anybody_looks(self, following: Follower) -> None:
        ref = make_ref()
        make_snapshot(ref.match)
        wait_for(lambda: following.hearing.is_good, seconds=5, what="it listens")
        wait_for(lambda: following.board.get(ref.match_id), seconds=5, what="the match is there")
        own, waits = Publisher(), []
        for sequence in range(2, 7):
            change(ref.match, sequence)
            own.note(ref.match_id, MatchRef.objects.select_related("match", "source").get(pk=ref.pk))
            own.publish()
            waits.append(seconds_until_seen(following, ref.match, sequence))
        assert min(waits) < 0.5
        assert following.board.get(ref.match_id).title == "state 6"

    def test_a_full_redis_still_tells(self, redis_server: RedisServer, settings: LazySettings) -> None:
        settings.CONFIG = settings.CONFIG.model_copy(update={"redis_url": redis_server.url})
        there = availability.redis(redis_server.url)
        with Redis.from_url(redis_server.url) as client:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", "1")
            own = Follower(Board())
            try:
                there.report(OutOfMemoryError("full"))
                assert there.is_away()
                own.start()
                wait_for(lambda: own.hearing.is_good and own.board.is_in_step, seconds=10, what="it listens")
                known = known_of(make_ref().match)
                assert channel.tell([Word(whole=replace(known, id=known.id + 7))])
                wait_for(lambda: own.board.get(known.id + 7), seconds=0.9, what="it is heard")
            finally:
                own.stop()
                client.config_set("maxmemory", "0")

    def test_a_frozen_redis_is_found_out_and_the_database_is_looked_at(
        self, redis_server: RedisServer, settings: LazySettings
    ) -> None:
        settings.CONFIG = settings.CONFIG.model_copy(update={"redis_url": redis_server.url})
        own = Follower(Board())
        own.start()
        try:
            wait_for(lambda: own.hearing.is_good and own.board.is_in_step, seconds=10, what="it listens")
            ref = make_ref()
            wait_for(lambda: own.board.get(ref.match_id), seconds=5, what="the match is there")
            redis_server.pause()
            wait_for(lambda: not own.hearing.is_good, seconds=5, what="the silence is noticed")
            waits = []
            for sequence in range(2, 7):
                change(ref.match, sequence)
                waits.append(seconds_until_seen(own, ref.match, sequence))
            assert min(waits) < 0.5
            redis_server.resume()
            wait_for(lambda: own.hearing.is_good, seconds=10, what="it listens again")
        finally:
            redis_server.resume()
            own.stop()
        assert connection.vendor == "postgresql"
