"""Watchdogs over pauses, spool, queue and refusals; advice, system checks and commands."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from monitoring.alerts import alert_keys
from monitoring.alerts.alert_keys import KINDS, kind_of
from monitoring.alerts.registry import raise_alert
from monitoring.checks import check_alert_settings
from monitoring.models import Alert, Severity
from monitoring.watchdogs.matches import watch_pauses
from monitoring.watchdogs.sources import watch_blocks
from monitoring.watchdogs.workers import watch_queue, watch_spool
from scraping import signals
from scraping.matches import lifecycle
from scraping.models import ErrorGroup, Match
from tests.factories import NOW, make_source
from tests.monitoring.alerts.conftest import Configure
from tests.monitoring.alerts.servers import HttpReceiver
from tests.monitoring.rows import make_error, make_task, make_watched

MINUTE = timedelta(minutes=1)


def standing(key: str) -> Alert | None:
    return Alert.objects.filter(key=key, closed_at__isnull=True).first()


@pytest.mark.django_db
@pytest.mark.both
class TestPauses:
    def pause(self, match: Match, begin: float, end: float | None) -> None:
        """Pauses the match for some minutes, counted from NOW."""
        signals.match_paused.send(sender=None, match_id=match.pk, reason="r", actor="a", now=NOW + begin * MINUTE)
        if end is not None:
            signals.match_resumed.send(sender=None, match_id=match.pk, reason="r", actor="a", now=NOW + end * MINUTE)

    def test_adds_up_the_pauses_of_an_hour(self) -> None:
        match, _, _ = make_watched(now=NOW)
        self.pause(match, 0, 8)
        assert watch_pauses(NOW + 10 * MINUTE) == 0
        self.pause(match, 12, 20)
        assert watch_pauses(NOW + 20 * MINUTE) == 1
        alert = standing(f"paused-long:{match.pk}")
        assert alert is not None
        assert (alert.severity, alert.detail["paused_seconds"]) == ("critical", 960)
        assert watch_pauses(NOW + 62 * MINUTE) == 0, "the first pause is older than an hour"
        assert standing(f"paused-long:{match.pk}") is None

    def test_counts_a_running_pause(self) -> None:
        match, _, _ = make_watched(now=NOW)
        lifecycle.pause(match_id=match.pk, until=NOW + 60 * MINUTE, reason="r", actor="a", now=NOW)
        Alert.objects.update(opened_at=NOW)
        assert watch_pauses(NOW + 15 * MINUTE) == 0
        assert watch_pauses(NOW + 16 * MINUTE) == 1

    def test_only_of_live_matches(self) -> None:
        match, _, _ = make_watched(now=NOW, status="upcoming")
        self.pause(match, 0, 30)
        assert watch_pauses(NOW + 31 * MINUTE) == 0

    def test_closes_the_alert_of_a_pause_when_the_match_has_ended(self) -> None:
        match, _, _ = make_watched(now=NOW)
        self.pause(match, 0, None)
        Match.objects.filter(pk=match.pk).update(lifecycle="COMPLETED")
        watch_pauses(NOW + MINUTE)
        assert standing(f"paused:{match.pk}") is None


@pytest.mark.django_db
@pytest.mark.both
class TestSpool:
    def back(self, dropped: int = 0) -> None:
        signals.store_returned.send(sender=None, worker_id="w", seconds=90.0, written=40, dropped=dropped, now=NOW)

    def test_reports_a_replayed_spool_for_a_while(self) -> None:
        self.back()
        assert watch_spool(NOW + MINUTE) == 1
        alert = standing("spool")
        assert alert is not None
        assert alert.severity == "warning"
        assert alert.summary == (
            "The database was away from a worker for 90 s: 40 readings were spooled and have been written, "
            "none was dropped"
        )
        assert watch_spool(NOW + 16 * MINUTE) == 0
        assert standing("spool") is None

    def test_dropped_readings_are_critical(self) -> None:
        self.back(dropped=3)
        watch_spool(NOW)
        alert = standing("spool")
        assert alert is not None
        assert (alert.severity, alert.detail["dropped"]) == ("critical", 3)


@pytest.mark.django_db
@pytest.mark.both
class TestQueue:
    @pytest.mark.parametrize(
        ("due_ago", "hinted_ago", "expected"),
        [
            pytest.param(61, 5, 1, id="hinted and not claimed"),
            pytest.param(59, 5, 0, id="not yet late"),
            pytest.param(600, 90, 0, id="waits for a reason: no recent hint"),
            pytest.param(600, None, 0, id="never hinted"),
        ],
    )
    def test_tasks_that_are_not_claimed(self, due_ago: float, hinted_ago: float | None, expected: int) -> None:
        hinted_at = None if hinted_ago is None else NOW - timedelta(seconds=hinted_ago)
        task = make_task(make_watched(now=NOW)[1], run_at=NOW - timedelta(seconds=due_ago), hinted_at=hinted_at)
        assert watch_queue(NOW) == expected
        assert (standing("queue") is not None) is bool(expected)
        task.delete()
        watch_queue(NOW)
        assert standing("queue") is None


@pytest.mark.django_db
@pytest.mark.both
@pytest.mark.requirement("FS-17")
class TestBlocks:
    @pytest.mark.parametrize(
        ("number", "spread", "expected"),
        [
            pytest.param(10, 200, 1, id="it lasts"),
            pytest.param(9, 200, 0, id="a few"),
            pytest.param(30, 60, 0, id="a moment"),
        ],
    )
    def test_refusals_that_last(self, number: int, spread: float, expected: int) -> None:
        for place in range(number):
            self.fail("blocked", "blocked", age=1 + spread * place / (number - 1))
        assert watch_blocks(NOW) == expected
        assert (standing("blocked:crex") is not None) is bool(expected)
        watch_blocks(NOW + 11 * MINUTE)
        assert standing("blocked:crex") is None

    @pytest.mark.requirement("FS-9")
    @pytest.mark.parametrize(("attempt", "expected"), [(1, 0), (2, 1)])
    def test_a_challenge_in_a_fresh_session_at_once(self, attempt: int, expected: int) -> None:
        self.fail("challenge", "challenge", retry_attempt=attempt)
        assert watch_blocks(NOW) == expected
        alert = standing("challenge:crex")
        text = "Crex has shown a bot challenge that a fresh session did not pass (1 in the last 10 min)"
        assert (alert.summary if alert else "") == (text if expected else ""), "it may have ended since"

    @pytest.mark.requirement("FS-9")
    def test_a_refusal_by_robots_txt_is_no_challenge(self) -> None:
        for place in range(12):
            self.fail("blocked", "robots", age=1 + 20 * place)
        assert watch_blocks(NOW) == 1
        assert standing("robots:crex") is not None
        assert standing("blocked:crex") is standing("challenge:crex") is None

    def fail(self, error_class: str, error_code: str, *, age: float = 1, **fields: Any) -> None:
        match = Match.objects.first() or make_watched(now=NOW)[0]
        group, _ = ErrorGroup.objects.get_or_create(
            fingerprint="f",
            defaults={
                "source": make_source(),
                "error_class": error_class,
                "error_code": error_code,
                "first_seen_at": NOW,
                "last_seen_at": NOW,
            },
        )
        make_error(match, now=NOW, age=age, error_class=error_class, error_code=error_code, group=group, **fields)


class TestAdvice:
    @pytest.mark.parametrize(
        ("key", "expected"),
        [
            ("stale:7", "stale:"),
            ("dead:7", "dead:"),
            ("dead-round:7", "dead-round:"),
            ("paused:7", "paused:"),
            ("paused-long:7", "paused-long:"),
            ("grade", "grade"),
            ("grades", ""),
            ("nothing:1", ""),
        ],
    )
    def test_kind_of_a_key(self, key: str, expected: str) -> None:
        assert kind_of(key) == expected

    def test_exists_for_every_key(self) -> None:
        assert {alert_keys.STALE, alert_keys.GRADE, alert_keys.TEST} < set(KINDS)
        assert all(kind_of(key).safe and kind_of(key).action for key in [*KINDS, "unheard-of"])


class TestChecks:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            pytest.param({}, [], id="nothing is configured"),
            pytest.param({"alert_webhook_secret": "x"}, ["monitoring.W003"], id="a secret without a URL"),
            pytest.param({"sentry_dsn": "nonsense"}, ["monitoring.W004"], id="no DSN"),
            pytest.param({"sentry_dsn": "https://k@sentry.example.com/1"}, [], id="a DSN"),
        ],
    )
    def test_reports_incomplete_settings(
        self, configure: Configure, values: dict[str, object], expected: list[str]
    ) -> None:
        configure(**values)
        assert [each.id for each in check_alert_settings()] == expected


class TestCommands:
    def run(self, *arguments: str) -> str:
        out = StringIO()
        call_command(*arguments, stdout=out)
        return out.getvalue()

    def test_a_test_alert_reaches_every_channel(self, hook: HttpReceiver, configure: Configure) -> None:
        configure(alert_webhook_url=hook.url, sentry_dsn=f"http://k@127.0.0.1:{hook.port}/1")
        output = self.run("alerts", "--test")
        assert [line.split()[:2] for line in output.splitlines()] == [["ok", "webhook"], ["ok", "sentry"]]
        assert json.loads(hook.got[0].body)["event"] == "test"

    def test_reports_a_failed_channel_with_advice(
        self, hook: HttpReceiver, configure: Configure, capsys: pytest.CaptureFixture[str]
    ) -> None:
        configure(alert_webhook_url=hook.url)
        hook.status = 404
        with pytest.raises(SystemExit):
            call_command("alerts", "--test", "--channel", "webhook")
        output = capsys.readouterr().out
        assert "FAIL  webhook  127.0.0.1 answered 404" in output
        assert "-> Check ALERT_WEBHOOK_URL" in output

    def test_fails_when_no_channel_is_configured(self) -> None:
        with pytest.raises(CommandError, match="No alert would be delivered"):
            call_command("alerts", "--test")

    @pytest.mark.django_db
    def test_lists_open_alerts(self) -> None:
        assert self.run("alerts") == "No alert is open.\n"
        raise_alert("no-worker", Severity.CRITICAL, "No worker is alive and 3 live matches wait", {}, NOW)
        output = self.run("alerts")
        assert "No worker is alive and 3 live matches wait" in output
        assert "Start a worker" in output
        (alert,) = json.loads(self.run("alerts", "--json"))["alerts"]
        assert (alert["key"], alert["sent"]) == ("no-worker", {"webhook": "", "sentry": ""})
