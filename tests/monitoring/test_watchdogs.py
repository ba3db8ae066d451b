"""Staleness, error rate, workers, retention: each one step, called with the time."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from monitoring.health.log import log_health
from monitoring.models import Alert, AuditEntry, HealthLog
from monitoring.watchdogs.matches import watch_error_rate, watch_staleness
from monitoring.watchdogs.workers import watch_redis, watch_workers
from scraping import signals
from scraping.models import Breaker, BreakerState, Match, ScrapeJob, Source
from tests.factories import NOW, make_source
from tests.monitoring.rows import MEGABYTE, make_error, make_task, make_watched, make_worker
from tests.servers import RedisServer, free_port
from victoryline import retention
from victoryline.lib.times import as_utc_iso

pytestmark = [pytest.mark.django_db, pytest.mark.both]
LATER = NOW + timedelta(seconds=5)


@pytest.mark.requirement("FR-001", "FR-016", "US3.2")
class TestStaleness:
    def test_alerts_logs_and_marks_a_silent_live_match(self, caplog: pytest.LogCaptureFixture) -> None:
        match, ref, _ = make_watched(now=NOW, age=300, scraper_status="active")
        assert watch_staleness(NOW) == 1
        match.refresh_from_db()
        assert match.scraper_status == "stale"
        alert = Alert.objects.get()
        assert (alert.key, alert.severity) == (f"stale:{match.pk}", "critical")
        warning = next(line for line in caplog.records if getattr(line, "action", "") == "stale")
        assert warning.levelno == logging.WARNING
        assert ref.url in warning.getMessage()
        assert as_utc_iso(NOW - timedelta(seconds=300)) in warning.getMessage()

    def test_logs_it_once(self, caplog: pytest.LogCaptureFixture) -> None:
        make_watched(now=NOW, age=300)
        watch_staleness(NOW)
        caplog.clear()
        watch_staleness(LATER)
        assert not caplog.records
        assert Alert.objects.get().count == 2

    def test_an_outage_of_all_matches_takes_one_statement_each(self, django_assert_max_num_queries: Any) -> None:
        for _ in range(20):
            make_watched(now=NOW, age=300, scraper_status="stale")
        watch_staleness(NOW)
        with django_assert_max_num_queries(20 + 5):
            watch_staleness(LATER)

    def test_ignores_fresh_paused_and_finished_matches(self) -> None:
        make_watched(now=NOW, age=299)
        make_watched(now=NOW, age=900, lifecycle="PAUSED", pause_until=LATER)
        make_watched(now=NOW, age=900, status="completed", lifecycle="COMPLETED")
        assert watch_staleness(NOW) == 0

    def test_closes_the_alert_when_the_match_is_read_again(self) -> None:
        match, _, _ = make_watched(now=NOW, age=300)
        watch_staleness(NOW)
        Match.objects.filter(pk=match.pk).update(last_scraper_update=LATER)
        watch_staleness(LATER)
        assert Alert.objects.get().closed_at == LATER


class TestClosingOfAlerts:
    """Alerts whose end no signal announces."""

    def test_closes_the_alert_of_a_dead_task_when_its_match_is_read_again(self) -> None:
        match, ref, _ = make_watched(now=NOW)
        task = make_task(ref, now=NOW)
        signals.task_died.send_robust(sender=None, task_id=task.pk, match_id=match.pk, reason="timeouts", now=NOW)
        watch_staleness(LATER)
        assert Alert.objects.get().closed_at is None
        Match.objects.filter(pk=match.pk).update(last_scraper_update=LATER)
        watch_staleness(LATER + timedelta(seconds=5))
        assert Alert.objects.get().closed_at is not None

    def test_closes_the_alert_of_a_dead_task_when_its_match_has_ended(self) -> None:
        match, ref, _ = make_watched(now=NOW)
        task = make_task(ref=ref, state="DEAD", reason="drift", finished_at=NOW)
        signals.task_died.send(sender=None, task_id=task.pk, match_id=match.pk, reason="drift", now=NOW)
        Match.objects.filter(pk=match.pk).update(lifecycle="COMPLETED", last_scraper_update=None)
        watch_staleness(LATER)
        assert Alert.objects.get().closed_at == LATER

    def test_keeps_it_while_a_job_needs_the_whole_match(self) -> None:
        match, ref, _ = make_watched(now=NOW)
        task = make_task(ref=ref, state="DEAD", reason="drift", finished_at=NOW, resource="full")
        signals.task_died.send(sender=None, task_id=task.pk, match_id=match.pk, reason="drift", now=NOW)
        Match.objects.filter(pk=match.pk).update(lifecycle="COMPLETED", last_scraper_update=None)
        watch_staleness(LATER)
        assert Alert.objects.get().closed_at is None

    def test_closes_the_alert_of_a_dead_round_when_the_round_is_discovered(self) -> None:
        source = make_source()
        job = ScrapeJob.objects.create(kind="round", name="round 12", source=source, created_at=NOW)
        task = make_task(source=source, job=job, ref=None, resource="round", state="DEAD", reason="x", finished_at=NOW)
        signals.task_died.send(sender=None, task_id=task.pk, match_id=None, reason="x", now=NOW)
        Source.objects.update(last_discovery_at=LATER)  # another list of the same source
        watch_staleness(LATER)
        alert = Alert.objects.get()
        assert (alert.key, alert.closed_at) == (f"dead-round:{job.pk}", None)
        ScrapeJob.objects.update(discovered_at=LATER)
        watch_staleness(LATER)
        assert Alert.objects.get().closed_at == LATER

    def test_closes_the_alert_of_a_dead_discovery_after_the_next_one(self) -> None:
        source = make_source()
        task = make_task(now=NOW)
        signals.task_died.send_robust(sender=None, task_id=task.pk, match_id=None, reason="timeouts", now=NOW)
        assert Alert.objects.get().key == "dead-discovery:crex"
        source.last_discovery_at = LATER
        source.save()
        watch_staleness(LATER)
        assert Alert.objects.get().closed_at == LATER

    @pytest.mark.parametrize(
        ("state", "lifecycle", "minutes", "is_over"),
        [
            pytest.param(BreakerState.OPEN, "ACTIVE", 1, False, id="open"),
            pytest.param(BreakerState.HALF_OPEN, "ACTIVE", 1, False, id="being tried"),
            pytest.param(BreakerState.HALF_OPEN, "COMPLETED", 1, True, id="its match ended"),
            pytest.param(BreakerState.OPEN, "ARCHIVED", 1, True, id="its match was put away"),
            pytest.param(BreakerState.HALF_OPEN, "ACTIVE", 5, True, id="tried no more"),
            pytest.param(BreakerState.CLOSED, "ACTIVE", 1, True, id="closed without a signal"),
        ],
    )
    def test_closes_the_alert_of_a_breaker(
        self, state: BreakerState, lifecycle: str, minutes: int, is_over: bool
    ) -> None:
        match, ref, _ = make_watched(now=NOW)
        until = NOW if state == BreakerState.OPEN else None
        name = f"{ref.key}_scraper"
        Breaker.objects.create(name=name, ref=ref, state=state, open_until=until, last_state_change=NOW)
        signals.breaker_opened.send_robust(sender=None, name=name, match_id=match.pk, now=NOW)
        Match.objects.filter(pk=match.pk).update(lifecycle=lifecycle)
        watch_staleness(NOW + timedelta(minutes=minutes))
        assert (Alert.objects.get(key=f"breaker:{name}").closed_at is not None) is is_over

    def test_closes_the_alert_of_a_deleted_breaker(self) -> None:
        signals.breaker_opened.send_robust(sender=None, name="b", match_id=None, now=NOW)
        watch_staleness(LATER)
        assert Alert.objects.get().closed_at == LATER


@pytest.mark.requirement("FR-016")
class TestErrorRate:
    def test_alerts_above_ten_errors_a_minute_with_their_types(self, caplog: pytest.LogCaptureFixture) -> None:
        match, _, _ = make_watched(now=NOW)
        for number in range(11):
            make_error(match, now=NOW, error_type="network" if number < 8 else "parsing")
        assert watch_error_rate(NOW) == 1
        error = next(line for line in caplog.records if getattr(line, "action", "") == "error_rate")
        assert error.levelno == logging.ERROR
        assert "network 8, parsing 3" in error.getMessage()
        assert Alert.objects.get().detail["error_types"] == {"network": 8, "parsing": 3}

    def test_ten_are_not_too_many(self) -> None:
        match, _, _ = make_watched(now=NOW)
        for _ in range(10):
            make_error(match, now=NOW)
        assert watch_error_rate(NOW) == 0

    def test_closes_automatically(self) -> None:
        match, _, _ = make_watched(now=NOW)
        for _ in range(11):
            make_error(match, now=NOW)
        watch_error_rate(NOW)
        watch_error_rate(NOW + timedelta(minutes=1))
        assert Alert.objects.get().closed_at is not None


@pytest.mark.requirement("FR-016")
class TestWorkers:
    def test_alerts_at_80_percent_of_the_memory_limit(self) -> None:
        worker = make_worker(now=NOW, memory_bytes=1229 * MEGABYTE)
        assert watch_workers(NOW) == 1
        worker.memory_bytes = 1228 * MEGABYTE
        worker.save()
        assert watch_workers(NOW) == 0
        assert Alert.objects.get().closed_at == NOW

    def test_alerts_when_live_matches_wait_and_no_worker_is_alive(self) -> None:
        make_watched(now=NOW)
        assert watch_workers(NOW) == 1
        assert Alert.objects.get().key == "no-worker"
        make_worker(now=NOW)
        watch_workers(NOW)
        assert Alert.objects.get().closed_at == NOW

    def test_closes_the_alert_when_no_live_match_is_left(self) -> None:
        match, _, _ = make_watched(now=NOW)
        watch_workers(NOW)
        match.status = "completed"
        match.save()
        assert watch_workers(NOW) == 0
        assert Alert.objects.get().closed_at == NOW

    def test_raises_no_alert_without_live_matches(self) -> None:
        assert watch_workers(NOW) == 0


def test_alerts_while_redis_does_not_answer(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def alert() -> tuple[str, bool]:
        row = Alert.objects.get()
        return row.key, row.closed_at is None

    assert watch_redis(NOW) == 0  # none is configured
    away = f"redis://127.0.0.1:{free_port()}/0"
    monkeypatch.setattr(settings, "CONFIG", settings.CONFIG.model_copy(update={"redis_url": away}))
    assert watch_redis(NOW) == 1
    assert alert() == ("redis", True)
    monkeypatch.setattr(settings, "CONFIG", settings.CONFIG.model_copy(update={"redis_url": redis_server.url}))
    assert watch_redis(NOW) == 0
    assert alert() == ("redis", False)


@pytest.mark.requirement("DM-4")
def test_health_log_has_a_row_for_each_active_scraper() -> None:
    make_worker(now=NOW)
    _, ref, scraper = make_watched(now=NOW, age=7)
    assert log_health(NOW) == 1
    row = HealthLog.objects.get()
    assert (row.scraper_id, row.match_id, row.timestamp) == (scraper.pk, ref.key, NOW)
    assert (row.health_status, row.error_count, row.last_update_age_seconds, row.uptime_seconds) == (
        "healthy",
        0,
        7,
        600,
    )
    assert (row.memory_mb, row.cpu_percent, row.polling_interval_seconds) == (400, 20, 2.5)


class TestRetention:
    def test_deletes_old_rows_and_keeps_the_rest(self) -> None:
        make_watched(now=NOW)
        log_health(NOW - timedelta(days=8))
        log_health(NOW)
        assert retention.prune(NOW) == 1
        assert HealthLog.objects.count() == 1

    def test_continues_in_slices(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("victoryline.lib.retention.BATCH", 2)
        for _ in range(5):
            AuditEntry.objects.create(
                timestamp=NOW - timedelta(days=400), actor="a", action_type="b", trigger_condition="c"
            )
        assert retention.prune(NOW) == 5

    def test_keeps_open_alerts_for_ever(self) -> None:
        long_ago = NOW - timedelta(days=400)
        Alert.objects.create(key="k", severity="warning", summary="s", opened_at=long_ago, last_seen_at=long_ago)
        assert retention.prune(NOW) == 0
