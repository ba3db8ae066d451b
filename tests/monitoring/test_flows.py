"""The three flows of the specification's data model, from end to end through the database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client

from monitoring.health.documents import health_document
from monitoring.health.evaluation import Evaluation
from monitoring.health.log import log_health
from monitoring.models import Alert, AuditEntry, HealthLog
from monitoring.recovery_outcomes import evaluate_recoveries
from scraping.errors import Transient
from scraping.matches import lifecycle
from scraping.models import Breaker, Match, MatchRef, ScrapeError, Scraper, ScrapeTask, TaskState
from scraping.payloads import Phase, Status
from scraping.scheduler.recover import restart_scrapers
from tests.factories import make_match, make_ref
from tests.monitoring.rows import MEGABYTE, make_worker
from tests.scraping.attempts import Clock, attempt, stopped_clock
from tests.scraping.builders import POLICIES, chasing, payload_of

NO_PAUSES = replace(POLICIES, pause_after_failures=99)

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("DM-10")]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with stopped_clock(monkeypatch) as clock:
        yield clock


def read(ref: MatchRef, clock: Clock, runs: int, **fields: object) -> ScrapeTask:
    return attempt(ref, clock, payload_of(ref, chasing(runs, **fields), at=clock.now))


def health_of(clock: Clock) -> list[str]:
    log_health(clock.now)
    return list(HealthLog.objects.filter(timestamp=clock.now).values_list("health_status", flat=True))


@pytest.mark.requirement("DM-1", "DM-4")
def test_the_life_of_a_scraper(clock: Clock) -> None:
    """A scraper is started by the first reading, counted, logged, replaced when silent, and stopped with its match."""
    ref = make_ref(make_match())
    assert not Scraper.objects.exists()
    assert read(ref, clock, 95).state == TaskState.SUCCESS
    first = Scraper.objects.get()
    assert (first.start_time, first.total_updates, first.worker_id, first.error_count) == (clock.now, 1, "w-1", 0)

    clock.forward(2.5)
    read(ref, clock, 97)
    assert Scraper.objects.get().total_updates == 2
    assert health_of(clock) == ["healthy"]
    clock.forward(121)
    assert health_of(clock) == ["degraded"]
    assert restart_scrapers(clock.now) == 0
    clock.forward(180)
    assert health_of(clock) == ["failing"]
    assert restart_scrapers(clock.now) == 1
    stopped, fresh = Scraper.objects.get(pk=first.pk), Scraper.objects.get(stopped_at=None)
    assert (stopped.stopped_at, stopped.stop_reason) == (clock.now, "no update for 301 s")
    assert (fresh.total_updates, fresh.start_time) == (0, clock.now)
    entry = AuditEntry.objects.get(action_type="soft_restart")
    assert (entry.outcome, entry.before["age_s"], entry.metadata["sequence"]) == ("pending", 301.0, 2)

    clock.forward(4)
    read(ref, clock, 99)
    assert evaluate_recoveries(clock.now) == 1
    entry.refresh_from_db()
    assert (entry.outcome, entry.duration_seconds, entry.after["age_s"]) == ("success", 4.0, 0.0)

    clock.forward(2.5)
    read(ref, clock, 189, status=Status.COMPLETED, phase=Phase.FINISHED, result="Team B won by 7 wickets")
    assert not Scraper.objects.filter(stopped_at=None).exists()
    fresh.refresh_from_db()
    assert (fresh.stopped_at, bool(fresh.stop_reason)) == (clock.now, True)
    assert Match.objects.get().lifecycle == "COMPLETED"


def test_an_error_from_failure_to_recovery(clock: Clock) -> None:
    """An error is stored and retried with growing pauses until the breaker opens; probes close it."""
    ref = make_ref(make_match())
    read(ref, clock, 95)
    clock.forward(2.5)
    delays = []
    for number in range(1, 6):
        task = attempt(ref, clock, Transient("connection reset"), policies=NO_PAUSES)
        assert Scraper.objects.get().error_count == number
        delays.append((task.run_at - clock.now).total_seconds())
    assert ScrapeError.objects.count() == 5
    assert {row.error_class for row in ScrapeError.objects.all()} == {"transient"}
    assert all(2**number <= delay <= 2 * 2**number for number, delay in enumerate(delays[:4])), delays

    breaker = Breaker.objects.get(ref=ref)
    assert (breaker.state, breaker.failure_count) == ("OPEN", 5)
    assert Alert.objects.filter(key__startswith="breaker:", closed_at=None).count() == 1
    opened = AuditEntry.objects.get(action_type="breaker_open")
    assert (opened.match, opened.before["error_count"] >= 0) == (ref.match, True)

    clock.now = max(clock.now, MatchRef.objects.get().next_poll_at or clock.now)
    clock.forward(61)
    for runs in range(96, 101):
        assert read(ref, clock, runs).state == TaskState.SUCCESS
        clock.forward(2.5)
    breaker.refresh_from_db()
    assert breaker.state == "CLOSED"
    assert (Scraper.objects.get(stopped_at=None).error_count, Match.objects.get().consecutive_failure_count) == (0, 0)
    assert [*AuditEntry.objects.filter(target=breaker.name).order_by("pk").values_list("action_type", flat=True)] == [
        "breaker_open",
        "breaker_half_open",
        "breaker_close",
    ]
    assert not Alert.objects.filter(key__startswith="breaker:", closed_at=None).exists()


@pytest.mark.requirement("DM-3")
def test_a_health_check(clock: Clock, client: Client) -> None:
    """Health is computed from scrapers, workers, errors and breakers, as one document and as metrics."""
    ref = make_ref(make_match())
    make_worker("w-1", now=clock.now, memory_bytes=300 * MEGABYTE)
    read(ref, clock, 95)
    document = health_document(Evaluation(clock.now))
    assert (document["status"], document["active_scraper_count"]) == ("healthy", 1)
    [scraper] = document["scrapers"]
    assert (scraper["match_id"], scraper["total_updates"], scraper["memory_mb"]) == (ref.key, 1, 300.0)
    assert document["errors"]["last_minute"] == 0

    for _ in range(5):
        clock.forward(1)
        attempt(ref, clock, Transient("connection reset"), policies=NO_PAUSES)
    document = health_document(Evaluation(clock.now))
    [scraper] = document["scrapers"]
    assert (scraper["error_count"], scraper["health_status"]) == (Scraper.objects.get().error_count, "degraded")
    assert document["errors"]["last_hour"] == ScrapeError.objects.count()
    assert [one["state"] for one in document["errors"]["circuit_breakers"]] == ["OPEN"]
    assert document["status"] != "healthy"

    text = client.get("/metrics").content.decode()
    assert "active_scrapers" in text


@pytest.mark.requirement("BX-8")
def test_a_pause_ends_by_itself_and_is_evaluated(clock: Clock) -> None:
    ref = make_ref(make_match())
    read(ref, clock, 95)
    until = clock.now + timedelta(seconds=300)
    lifecycle.pause(match_id=ref.match_id, until=until, reason="5 failed tasks", actor="lifecycle", now=clock.now)
    assert lifecycle.end_pauses(now=clock.now + timedelta(seconds=299)) == 0
    clock.forward(300)
    assert lifecycle.end_pauses(now=clock.now) == 1
    assert evaluate_recoveries(clock.now) == 0
    clock.forward(3)
    read(ref, clock, 97)
    assert evaluate_recoveries(clock.now) == 1
    rows = AuditEntry.objects.order_by("pk").values_list("action_type", "actor", "outcome", "duration_seconds")
    assert list(rows) == [("pause", "lifecycle", "success", 0.0), ("resume", "scheduler", "success", 3.0)]
