"""Watches are started and ended by operators, and by the memory that is left."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from scraping import jobs
from scraping.matches import discovery, watches
from scraping.matches.lifecycle import NotAllowed
from scraping.matches.scrapers import ensure_active
from scraping.models import (
    JobKind,
    Match,
    MatchLifecycle,
    MatchRef,
    ScrapeJob,
    Scraper,
    ScrapeTask,
    Source,
    Worker,
)
from scraping.payloads import DiscoveredMatch, Sport, Status
from scraping.scheduler import due, hint
from scraping.scheduler.recover import start_waiting_watches
from tests.factories import NOW, make_match, make_ref, make_scraper, make_source
from tests.scraping.builders import later, open_task

pytestmark = [pytest.mark.both, pytest.mark.django_db]

MEGABYTE = 1024 * 1024
RETRY = 60.0


def worker(name: str = "w-1", *, free_mb: int, at: Any = NOW, **more: Any) -> Worker:
    return Worker.objects.create(
        worker_id=name, host="h", pid=1, started_at=at, heartbeat_at=at, free_memory_bytes=free_mb * MEGABYTE, **more
    )


def unwatched(**more: Any) -> MatchRef:
    ref = make_ref(make_match(**more))
    MatchRef.objects.filter(pk=ref.pk).update(is_watched=False, next_poll_at=None)
    ref.refresh_from_db()
    return ref


@pytest.mark.requirement("EC-6")
class TestMemoryRoom:
    @pytest.mark.parametrize(
        ("free", "is_free"),
        [
            pytest.param([], True, id="no worker known: no watch is refused"),
            pytest.param([500], True, id="as much as is needed"),
            pytest.param([499], False, id="a megabyte too little"),
            pytest.param([100, 900], True, id="room on one machine is room"),
            pytest.param([100, 200], False, id="none has any"),
        ],
    )
    def test_is_that_of_the_worker_with_most_free_memory(self, free: list[int], is_free: bool) -> None:
        for number, free_mb in enumerate(free):
            worker(f"w-{number}", free_mb=free_mb)
        assert (not watches.memory_shortage(NOW)) is is_free

    def test_silent_and_stopped_workers_do_not_count(self) -> None:
        worker("silent", free_mb=10, at=NOW - timedelta(minutes=5))
        worker("stopped", free_mb=10, stopped_at=NOW)
        worker("untold", free_mb=0)
        assert not watches.memory_shortage(NOW)


class TestBegin:
    def test_a_match_is_read_from_now_on(self) -> None:
        ref = unwatched()
        watches.begin(match_id=ref.match_id, actor="me", now=NOW)
        ref.refresh_from_db()
        assert (ref.is_watched, ref.next_poll_at, ref.watch_at) == (True, NOW, None)

    def test_of_a_watched_match_changes_nothing(self) -> None:
        ref = make_ref(next_poll_at=later(30))
        worker(free_mb=1)
        watches.begin(match_id=ref.match_id, actor="me", now=NOW)
        ref.refresh_from_db()
        assert ref.next_poll_at == later(30)

    def test_of_an_archived_match_is_refused(self) -> None:
        ref = unwatched(status="completed", lifecycle=MatchLifecycle.ARCHIVED)
        with pytest.raises(NotAllowed, match="archived"):
            watches.begin(match_id=ref.match_id, actor="me", now=NOW)

    def test_and_end(self) -> None:
        ref = make_ref(next_poll_at=NOW)
        ensure_active(ref, now=NOW)
        watches.end(match_id=ref.match_id, reason="enough", actor="me", now=later(9))
        ref.refresh_from_db()
        assert (ref.is_watched, ref.next_poll_at, ref.watch_at) == (False, None, None)
        assert Scraper.objects.values_list("stop_reason", "stopped_at").get() == ("enough", later(9))
        with pytest.raises(NotAllowed, match="not watched"):
            watches.end(match_id=ref.match_id, reason="enough", actor="me", now=NOW)


@pytest.mark.requirement("EC-6")
class TestTooLittleMemory:
    def test_a_new_watch_is_deferred_until_there_is_memory(self) -> None:
        ref, holder = unwatched(), worker(free_mb=100)
        with pytest.raises(watches.WatchDeferred, match="Insufficient memory resources: 100 MB are free"):
            watches.begin(match_id=ref.match_id, actor="me", now=NOW)
        assert self.state(ref) == (False, NOW)
        start_waiting_watches(later(1))
        assert self.state(ref) == (False, later(1 + RETRY)), "still too little: tried again a minute later"
        Worker.objects.filter(pk=holder.pk).update(free_memory_bytes=900 * MEGABYTE, heartbeat_at=later(50))
        assert start_waiting_watches(later(50)) == 0, "not before its time"
        Worker.objects.filter(pk=holder.pk).update(heartbeat_at=later(62))
        assert start_waiting_watches(later(62)) == 1
        assert self.state(ref) == (True, None)
        assert start_waiting_watches(later(63)) == 0

    def test_idle_watches_are_ended_first_and_start_again_later(self, caplog: pytest.LogCaptureFixture) -> None:
        idle, busy = self.watched(idle_minutes=31), self.watched(idle_minutes=29)
        ref = unwatched()
        worker(free_mb=100, memory_bytes=700 * MEGABYTE)
        with pytest.raises(watches.WatchDeferred):
            watches.begin(match_id=ref.match_id, actor="me", now=NOW)
        start_waiting_watches(NOW)
        assert self.state(busy) == (True, None)
        assert self.state(idle) == (False, NOW + timedelta(minutes=30))
        stopped = Scraper.objects.get(ref=idle)
        assert stopped.stopped_at == NOW
        assert "no change for 30 minutes" in stopped.stop_reason
        assert "w-1: 700 MB" in caplog.text
        Worker.objects.update(free_memory_bytes=900 * MEGABYTE, heartbeat_at=later(1900))
        start_waiting_watches(later(1900))
        assert self.state(idle) == (True, None)

    def test_the_log_names_the_memory_of_each_scraper(self, caplog: pytest.LogCaptureFixture) -> None:
        for key, worker_id in (("large", "w-1"), ("one", "w-2"), ("two", "w-2"), ("silent", "w-3")):
            make_scraper(make_ref(source_event_id=key), worker_id=worker_id)
        worker("w-1", free_mb=100, memory_bytes=700 * MEGABYTE)
        worker("w-2", free_mb=200, memory_bytes=600 * MEGABYTE, renderers={"crex_one": (100 * MEGABYTE, 3.0)})
        MatchRef.objects.filter(pk=unwatched().pk).update(watch_at=NOW)
        start_waiting_watches(NOW)
        (line,) = (one for one in caplog.records if getattr(one, "action", "") == "watches_put_off")
        assert "By scraper, 3 of 3: crex_large 700 MB, crex_one 350 MB, crex_two 250 MB" in line.getMessage()
        assert vars(line)["memory_mb_by_scraper"] == {"crex_large": 700, "crex_one": 350, "crex_two": 250}

    def test_discovered_matches_wait_too(self, caplog: pytest.LogCaptureFixture) -> None:
        source, holder = make_source(), worker(free_mb=100)
        rows = [self.listed(source, key, Status.LIVE) for key in ("A1", "B2")]
        assert discovery.register(source, rows, now=NOW) == 2
        assert [self.state(ref) for ref in MatchRef.objects.all()] == [(False, NOW)] * 2
        assert due.open_due(later(1)) == []
        assert "2 new matches of crex wait until there is memory" in caplog.text
        Worker.objects.filter(pk=holder.pk).update(free_memory_bytes=900 * MEGABYTE, heartbeat_at=later(2))
        assert start_waiting_watches(later(2)) == 2
        assert len(due.open_due(later(2))) == 2

    def test_jobs_wait_in_the_journal_and_live_matches_do_not(self) -> None:
        source, holder = make_source(), worker(free_mb=100)
        live = open_task(make_ref(source=source))
        match = self.listed(source, "A1", Status.COMPLETED)
        job = ScrapeJob.objects.create(kind=JobKind.URLS, name="one", requested_by="Ann", created_at=NOW)
        jobs.expect(job.pk, {source: [match]}, now=NOW)
        (of_job,) = ScrapeTask.objects.filter(job=job)
        assert self.due_for_a_hint(NOW) == {live}
        Worker.objects.filter(pk=holder.pk).update(free_memory_bytes=900 * MEGABYTE)
        assert self.due_for_a_hint(later(1)) == {live, of_job.pk}

    def test_matches_that_have_not_begun_are_left_alone(self) -> None:
        """Before the start nothing changes; ending the watch as idle would miss the start."""
        upcoming = make_ref(make_match(status="upcoming", last_changed_at=NOW - timedelta(hours=5)))
        unwatched_ref = unwatched()
        worker(free_mb=100)
        with pytest.raises(watches.WatchDeferred):
            watches.begin(match_id=unwatched_ref.match_id, actor="me", now=NOW)
        start_waiting_watches(NOW)
        assert self.state(upcoming) == (True, None)

    def test_a_match_that_is_over_meanwhile_is_not_watched(self) -> None:
        ref = unwatched()
        MatchRef.objects.filter(pk=ref.pk).update(watch_at=NOW)
        Match.objects.filter(pk=ref.match_id).update(lifecycle=MatchLifecycle.COMPLETED)
        assert start_waiting_watches(later(1)) == 0
        assert self.state(ref) == (False, None)

    def due_for_a_hint(self, now: datetime) -> set[int]:
        return {task_id for task_id, _, _ in hint._unhinted(now, 10)}

    def listed(self, source: Source, key: str, status: Status) -> DiscoveredMatch:
        url = f"{source.base_url}/match/{key}"
        return DiscoveredMatch(source_event_id=key, url=url, sport=Sport.CRICKET, status=status)

    def watched(self, *, idle_minutes: int) -> MatchRef:
        since = NOW - timedelta(minutes=idle_minutes)
        ref = make_ref(make_match(last_changed_at=since))
        ensure_active(ref, now=since - timedelta(hours=1))
        return ref

    def state(self, ref: MatchRef) -> tuple[bool, Any]:
        return MatchRef.objects.values_list("is_watched", "watch_at").get(pk=ref.pk)
