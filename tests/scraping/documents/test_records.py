"""The columns of the watch over each match, and the command `watch`."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from scraping.documents import watch_records
from scraping.management.commands.watch import Cell, row, table
from scraping.matches import lifecycle
from scraping.models import (
    Importance,
    Match,
    MatchLifecycle,
    MatchRef,
    Priority,
    ScraperStatus,
    ScrapeTask,
    TaskState,
)
from scraping.payloads import Resource, Status
from scraping.policies.ladder import Rung
from scraping.scheduler.upkeep import write_data_ages
from tests.factories import NOW, make_match, make_ref, make_source, make_unread_match
from tests.scraping.builders import claimed, later, payload_of, read
from tests.scraping.due_tasks import open_due_tasks

pytestmark = [pytest.mark.both, pytest.mark.django_db]


@pytest.mark.requirement("SO-1")
class TestRecord:
    def test_has_the_columns_of_the_watch(self) -> None:
        match = make_match(
            title="Kenya v Nepal",
            last_scraper_update=later(-12),
            priority=Priority.LIVE,
            importance=Importance.HIGH,
            consecutive_failure_count=3,
            total_scrapes=40,
            total_failures=5,
        )
        fields = {"next_poll_at": later(4), "polling_interval_seconds": 5.0, "pace_reason": "slowed by errors"}
        ref = make_ref(match, **fields)
        second = make_ref(match, source=make_source("espn", precedence_weight=10), next_poll_at=later(20))
        (found,) = watch_records.stalest_first(status=Status.LIVE)
        assert (found.pk, [one.key for one in found.refs.all()]) == (match.pk, [ref.key, second.key])
        assert (found.last_scraper_update, found.age_seconds(NOW)) == (later(-12), 12.0)
        assert (found.priority, found.importance) == (Priority.LIVE, Importance.HIGH)
        assert (found.consecutive_failure_count, found.total_scrapes, found.total_failures) == (3, 40, 5)
        polled, at = watch_records.next_poll(found)
        assert polled is not None
        assert (polled.polling_interval_seconds, polled.pace_reason, at) == (5.0, "slowed by errors", later(4))

    def test_counts_reads_and_failures(self) -> None:
        ref = make_ref(make_unread_match(), captured_at=None)
        read(ref, payload_of(ref))
        lifecycle.after_failed_attempt(
            ref.match_id, reason="502", is_dead=True, pause_after=5, pause_seconds=300, now=later(5)
        )
        (found,) = watch_records.stalest_first()
        assert (found.total_scrapes, found.total_failures, found.consecutive_failure_count) == (1, 1, 1)
        read(ref, payload_of(ref, at=later(9)))
        (found,) = watch_records.stalest_first()
        assert (found.consecutive_failure_count, found.age_seconds(later(9))) == (0, 0.0)

    def test_does_not_show_decayed_errors(self) -> None:
        """They decay in the reading of the row: nothing is written for a quiet match."""
        make_ref(make_match(), error_level=3.0, error_level_at=NOW)
        (found,) = watch_records.stalest_first()
        assert [row(found, later(seconds))[8].text for seconds in (0, 24, 60)] == ["0 +3", "0 +1", "0"]

    def test_lists_unread_matches_then_the_stalest(self) -> None:
        ages = {age: make_match(last_scraper_update=later(-age), priority=Priority.LIVE) for age in (5, 90, 30)}
        never = make_unread_match(priority=Priority.IMMINENT)
        make_match(lifecycle=MatchLifecycle.ARCHIVED, last_scraper_update=later(-900))
        found = [one.pk for one in watch_records.stalest_first()]
        assert found == [never.pk, ages[90].pk, ages[30].pk, ages[5].pk]
        found = [one.pk for one in watch_records.stalest_first(priority=Priority.LIVE)]
        assert found == [ages[90].pk, ages[30].pk, ages[5].pk]

    def test_lists_paused_matches_with_their_end(self) -> None:
        make_match()
        until = {seconds: make_match() for seconds in (300, 60)}
        for seconds, match in until.items():
            lifecycle.pause(match_id=match.pk, until=later(seconds), reason="rain", actor="ann", now=NOW)
        paused = watch_records.paused()
        assert [one.pk for one in paused] == [until[60].pk, until[300].pk]
        assert (paused[0].pause_until, watch_records.next_poll(paused[0])) == (later(60), (None, later(60)))
        assert paused[0].pause_reason == "rain (by ann)"
        lifecycle.end_pauses(now=later(61))
        assert [one.pk for one in watch_records.paused()] == [until[300].pk]

    def test_makes_two_queries_for_any_number(self, django_assert_num_queries: Any) -> None:
        for _ in range(5):
            make_ref()
        with django_assert_num_queries(2):
            assert len([one.refs.all() for one in watch_records.stalest_first()]) == 5

    @pytest.mark.parametrize(
        ("rung", "seconds", "words"),
        [
            (Rung.GROUND, None, ""),
            (Rung.HINT, 3, "silent: polled again 3 s ago"),
            (Rung.SESSION, 12, "silent: fresh session tried 12 s ago"),
            (Rung.BROWSER, 119, "silent: fresh browser tried 119 s ago"),
            (Rung.OTHER_SOURCE, 600, "silent: other source polled 10 min ago"),
            (Rung.FROZEN, None, "silent: frozen"),
        ],
    )
    def test_names_the_last_recovery_step(self, rung: Rung, seconds: float | None, words: str) -> None:
        since = None if seconds is None else later(-seconds)
        match = Match(silence_rung=rung, silence_rung_at=since, frozen_at=since)
        assert watch_records.silence_text(match, NOW) == words


@pytest.mark.requirement("SO-2")
class TestRequest:
    @pytest.mark.parametrize(
        ("status", "starts_in", "priority"),
        [
            (Status.LIVE, -60, Priority.LIVE),
            (Status.UPCOMING, 3599, Priority.IMMINENT),
            (Status.UPCOMING, 3601, Priority.COMPLETED),
            (Status.COMPLETED, -9000, Priority.COMPLETED),
        ],
    )
    def test_has_the_priority_of_its_match(self, status: Status, starts_in: float, priority: Priority) -> None:
        level = lifecycle.priority_of(status, later(starts_in), NOW)
        assert (level, list(Priority)) == (priority, [0, 1, 2])
        make_ref(make_match(priority=level), next_poll_at=NOW, captured_at=later(-3))
        open_due_tasks(NOW)
        task = ScrapeTask.objects.get()
        assert (task.priority, task.resource, task.attempt) == (priority, Resource.SCORECARD, 0)
        assert (task.run_at, task.created_at, task.state) == (NOW, NOW, TaskState.PENDING)

    def test_has_an_id_of_its_own_and_counts_its_attempts(self) -> None:
        for _ in range(3):
            make_ref(next_poll_at=NOW, captured_at=later(-3))
        open_due_tasks(NOW)
        tasks = list(ScrapeTask.objects.order_by("pk"))
        assert len({task.request_id for task in tasks}) == 3
        assert [claimed(task.pk).attempt for task in tasks] == [1, 1, 1]


@pytest.mark.requirement("DM-6")
class TestAges:
    def ages(self) -> list[int]:
        return list(Match.objects.order_by("pk").values_list("data_freshness_seconds", flat=True))

    def test_are_written_for_live_matches(self) -> None:
        for seconds in (7.9, 0, 600):
            make_match(last_scraper_update=later(-seconds))
        assert write_data_ages(NOW) == 2
        assert self.ages() == [7, 0, 600]
        assert write_data_ages(later(5)) == 3
        assert self.ages() == [12, 5, 605]

    @pytest.mark.parametrize(
        ("what", "fields", "age"),
        [
            ("paused: it ages all the same", {"lifecycle": "PAUSED", "pause_until": later(60)}, 30),
            ("never read: as old as its discovery", {"last_scraper_update": None, "created_at": later(-50)}, 50),
            ("a clock that ran ahead", {"last_scraper_update": later(9)}, 0),
            ("not begun", {"status": "upcoming"}, 0),
            ("over", {"status": "completed"}, 0),
            ("archived", {"lifecycle": "ARCHIVED"}, 0),
        ],
    )
    def test_of_other_matches(self, what: str, fields: dict[str, Any], age: int) -> None:
        make_match(**{"last_scraper_update": later(-30), **fields})
        write_data_ages(NOW)
        assert self.ages() == [age]

    def test_take_two_statements_for_any_number(self, django_assert_num_queries: Any) -> None:
        for _ in range(20):
            make_match(last_scraper_update=later(-3))
        savepoint = 2  # the test is a transaction already
        with django_assert_num_queries(2 + savepoint):
            assert write_data_ages(NOW) == 20

    def test_scraper_status(self) -> None:
        """active, stale, stopped, error: by the latest event."""
        ref = make_ref(make_unread_match(), captured_at=None)
        match_id = ref.match_id

        def status() -> str:
            return Match.objects.get(pk=match_id).scraper_status

        assert status() == ScraperStatus.UNKNOWN
        read(ref, payload_of(ref))
        assert status() == ScraperStatus.ACTIVE
        lifecycle.mark_stale(match_id)
        assert status() == ScraperStatus.STALE
        lifecycle.after_failed_attempt(
            match_id, reason="502", is_dead=True, pause_after=5, pause_seconds=300, now=later(302)
        )
        assert status() == ScraperStatus.ERROR
        lifecycle.pause(match_id=match_id, until=later(600), reason="test", actor="ann", now=later(303))
        assert status() == ScraperStatus.STOPPED


@pytest.mark.scaled
@pytest.mark.django_db(transaction=True)
@pytest.mark.requirement("DM-6")
def test_skip_a_locked_match() -> None:
    held, free = (make_match(last_scraper_update=later(-9)) for _ in range(2))
    other = connection.copy()
    try:
        with other.cursor() as cursor, transaction.atomic():
            cursor.execute("BEGIN")
            cursor.execute("SELECT id FROM matches WHERE id = %s FOR UPDATE", (held.pk,))
            assert write_data_ages(NOW) == 1
            cursor.execute("ROLLBACK")
    finally:
        other.close()
    assert dict(Match.objects.values_list("pk", "data_freshness_seconds")) == {held.pk: 0, free.pk: 9}


class TestCommand:
    def shown(self, *words: str) -> str:
        out = StringIO()
        call_command("watch", *words, stdout=out)
        return out.getvalue()

    def test_lists_the_stalest_first_aligned_and_without_colours(self) -> None:
        now = timezone.now()
        rows = (("Kenya v Nepal", 3, "in play"), ("Oman v Uganda, the 2nd of so many one-day matches", 400, "a break"))
        for title, age, reason in rows:
            match = make_match(title=title, last_scraper_update=now - timedelta(seconds=age), priority=Priority.LIVE)
            make_ref(match, now=now, pace_reason=reason)
        Match.objects.filter(title__startswith="Oman").update(
            silence_rung=Rung.BROWSER, silence_rung_at=now - timedelta(seconds=240), importance=Importance.HIGH
        )
        text = self.shown("--once")
        head, *lines = text.splitlines()[1:]
        assert "\x1b" not in text
        assert [line.index("live") for line in lines] == [head.index("PRIORITY")] * 2
        assert [word in lines[0] for word in ("7 min", "high", "a break", "Oman v Uganda", "…")] == [True] * 5
        assert "silent: fresh browser tried 4 min ago" in lines[0]
        assert ["in play" in lines[1], "2.5 s" in lines[1], "crex" in lines[1]] == [True] * 3
        assert "2 matches, oldest 7 min, 1 silent" in text.splitlines()[0]

    def test_control_characters_of_a_title_do_not_reach_the_terminal(self) -> None:
        make_ref(make_match(title="Kenya \x1b[31m v\nNepal"))
        assert "Kenya [31m v Nepal" in self.shown("--once")

    def test_lists_live_matches_only_without_all(self) -> None:
        make_ref(make_match(status=Status.UPCOMING))
        assert "nothing to watch" in self.shown("--once")
        assert "1 match" in self.shown("--once", "--all")

    def test_names_sources_that_refuse_direct_requests(self) -> None:
        learned = {"request_mode_since": later(0), "direct_again_at": later(600), "direct_pause_seconds": 600}
        make_source("espn", request_mode="in_page", request_mode_reason="blocked: live answered 403", **learned)
        second = self.shown("--once").splitlines()[1]
        assert second.startswith("espn: in_page since ")
        assert f"direct again at {later(600):%d %b %H:%M:%S} UTC (blocked: live answered 403)" in second

    def test_lists_paused_matches(self) -> None:
        ref = make_ref()
        now = timezone.now()
        until = now + timedelta(minutes=5)
        lifecycle.pause(match_id=ref.match_id, until=until, reason="rain", actor="ann", now=now)
        assert f"paused until {until:%H:%M:%S}: rain (by ann)" in self.shown("--once", "--paused")
        assert MatchRef.objects.count() == 1


def test_is_coloured_on_a_terminal_only() -> None:
    rows = [(Cell("ij", "red"), Cell("7", is_number=True)), (Cell("ab"), Cell("12", is_number=True))]
    assert table(("WHO", "AGE"), rows, is_coloured=False) == ["WHO  AGE", "ij     7", "ab    12"]
    assert table(("WHO", "AGE"), rows, is_coloured=True)[1] == "\x1b[31mij \x1b[0m    7"
