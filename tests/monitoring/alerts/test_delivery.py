"""Alerts on their way to the channels: what is due, what was accepted, failures, and the delivery threads."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.conf import settings
from django.db import OperationalError

from monitoring.alerts import delivery
from monitoring.alerts.channels import configured
from monitoring.alerts.delivery import DeliveryThread, DeliveryThreads, due
from monitoring.alerts.registry import close_alert, mute, raise_alert, unmute
from monitoring.models import Alert, AuditEntry, Channel, Severity
from monitoring.watchdogs.matches import watch_error_rate
from scraping import signals
from tests.factories import NOW, make_source
from tests.monitoring.alerts.conftest import Configure
from tests.monitoring.alerts.servers import HttpReceiver
from tests.monitoring.rows import make_error, make_task, make_watched
from tests.patience import stretched, wait_for

pytestmark = pytest.mark.django_db


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def stale(match_id: int = 7, seconds: float = 0, severity: Severity = Severity.CRITICAL) -> None:
    raise_alert(f"stale:{match_id}", severity, f"match {match_id} is silent", {"match_id": match_id}, after(seconds))


class Deliver:
    """Delivers at a time to the receiver."""

    def __init__(self, configure: Configure, hook: HttpReceiver, channel: Channel = Channel.WEBHOOK) -> None:
        self.hook, self.seconds = hook, 0.0
        configure(alert_webhook_url=hook.url, sentry_dsn=f"http://key@127.0.0.1:{hook.port}/42")
        self.thread = DeliveryThread(channel, configured(settings.CONFIG)[channel], clock=lambda: after(self.seconds))

    def __call__(self, seconds: float) -> bool:
        self.seconds = seconds
        return self.thread.deliver()

    def events(self, message: int = -1) -> list[tuple[str, str]]:
        return [(one["key"], one["event"]) for one in json.loads(self.hook.got[message].body)["alerts"]]


@pytest.fixture
def deliver(configure: Configure, hook: HttpReceiver) -> Deliver:
    return Deliver(configure, hook)


@pytest.mark.both
class TestWhatIsSent:
    def test_a_beginning_and_an_end_once_each(self, deliver: Deliver) -> None:
        stale()
        assert [deliver(0), deliver(1), deliver(7200)] == [True, False, False]
        close_alert("stale:7", after(7240))
        assert [deliver(7240), deliver(7241)] == [True, False]
        assert [deliver.events(0), deliver.events(1)] == [[("stale:7", "raised")], [("stale:7", "over")]]
        assert (Alert.objects.get().webhook_sent, Alert.objects.get().notified_at) == ("over", after(7240))

    def test_nothing_of_an_alert_that_ends_before_its_message(self, deliver: Deliver) -> None:
        stale()
        close_alert("stale:7", NOW)
        assert not deliver(0)

    def test_one_message_has_all_that_was_raised_became_worse_or_ended(self, deliver: Deliver) -> None:
        stale(1)
        stale(2, severity=Severity.WARNING)
        deliver(0)
        close_alert("stale:1", after(10))
        for number, severity in ((2, Severity.CRITICAL), (3, Severity.WARNING), (4, Severity.CRITICAL)):
            stale(number, 10, severity)
        assert [deliver(10), deliver(11)] == [True, False]
        assert deliver.events() == [
            ("stale:2", "worse"),
            ("stale:4", "raised"),
            ("stale:3", "raised"),
            ("stale:1", "over"),
        ]

    def test_a_source_that_fails_is_one_message(self, deliver: Deliver) -> None:
        for number in range(37):
            stale(number)
        assert [deliver(0), deliver(1)] == [True, False]
        assert json.loads(deliver.hook.got[0].body)["subject"].endswith("match 0 is silent (and 36 more)")

    def test_no_muted_alert_even_if_it_opens_again(self, deliver: Deliver) -> None:
        stale()
        mute(Alert.objects.get().pk, until=after(600), reason="known", actor="ann", now=NOW)
        close_alert("stale:7", after(10))
        stale(seconds=20)
        assert [deliver(0), deliver(30)] == [False, False]
        unmute(Alert.objects.latest("pk").pk, actor="ann", now=after(40))
        assert deliver(41)
        assert list(AuditEntry.objects.values_list("action_type", flat=True).order_by("pk")) == [
            "alert_muted",
            "alert_unmuted",
        ]

    def test_a_change_while_a_message_is_sent_is_due_again(self, deliver: Deliver) -> None:
        stale(severity=Severity.WARNING)
        (alert,) = due(Channel.WEBHOOK, NOW)
        stale(seconds=1)  # critical meanwhile
        deliver.thread._mark_sent([alert], NOW)
        assert deliver(2)
        assert deliver.events() == [("stale:7", "worse")]


class TestFailures:
    def test_are_tried_again_later_until_they_succeed_with_the_same_id(self, deliver: Deliver) -> None:
        stale()
        deliver.hook.status = 503
        assert [deliver(0), deliver(4), deliver(5), deliver(19)] == [False] * 4
        assert len(deliver.hook.got) == 2, "after 5 s, and then after 15"
        deliver.hook.status = 200
        assert deliver(20)
        assert len({got.headers["idempotency-key"] for got in deliver.hook.got}) == 1

    def test_honour_retry_after(self, deliver: Deliver) -> None:
        stale()
        deliver.hook.status, deliver.hook.headers = 429, {"Retry-After": "300"}
        assert [deliver(0), deliver(299)] == [False, False]
        deliver.hook.status = 200
        assert deliver(300)

    def test_raise_an_alert_until_a_message_is_accepted(
        self, deliver: Deliver, caplog: pytest.LogCaptureFixture
    ) -> None:
        stale()
        deliver.hook.status = 503
        for seconds in (0, 60, 200, 299):
            deliver(seconds)
        assert not Alert.objects.filter(key="delivery:webhook").exists()
        deliver(620)
        alert = Alert.objects.get(key="delivery:webhook")
        assert "127.0.0.1 answered 503" in alert.summary
        deliver.hook.status = 200
        assert deliver(1300)
        alert.refresh_from_db()
        assert alert.closed_at == after(1300)
        assert deliver.events() == [("stale:7", "raised")], "a channel gets no message about itself"
        assert "s3cret" not in caplog.text + alert.summary

    def test_a_refused_message_is_an_error_at_once(self, deliver: Deliver, caplog: pytest.LogCaptureFixture) -> None:
        stale()
        deliver.hook.status = 403
        assert not deliver(0)
        line = next(each for each in caplog.records if getattr(each, "action", "") == "alert_not_sent")
        assert line.levelno == logging.ERROR
        assert Alert.objects.filter(key="delivery:webhook", closed_at=None).exists()

    def test_a_database_outage_and_its_end_are_sent_directly(
        self, deliver: Deliver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(*_: object) -> None:
            raise OperationalError("connection refused")

        with monkeypatch.context() as patched:
            patched.setattr(delivery, "due", away)
            for seconds in (0, 30, 59, 60, 70, 400):
                assert not deliver(seconds)
        assert len(deliver.hook.got) == 1
        deliver(420)
        first, last = (json.loads(got.body) for got in deliver.hook.got)
        assert (first["event"], first["alerts"][0]["key"]) == ("raised", "database")
        assert "away for 60 s" in first["text"]
        assert (last["event"], last["alerts"][0]["summary"]) == ("over", "The database is back after 420 s")


@pytest.mark.django_db(transaction=True)
@pytest.mark.both
class TestThreads:
    def test_a_hanging_webhook_blocks_no_other_and_all_stop_soon(
        self, hook: HttpReceiver, configure: Configure
    ) -> None:
        hook.hangs.set()
        with HttpReceiver() as sentry:
            configure(alert_webhook_url=hook.url, sentry_dsn=f"http://key@127.0.0.1:{sentry.port}/42")
            raise_alert("challenge:crex", Severity.CRITICAL, "crex asks for proof", {"source": "crex"}, NOW)
            threads = DeliveryThreads(configured(settings.CONFIG))
            threads.start()
            wait_for(lambda: sentry.got and hook.got)
            wait_for(lambda: Alert.objects.filter(sentry_sent="critical", webhook_sent="").exists())
            began = time.monotonic()
            threads.stop()
            assert time.monotonic() - began < stretched(5)
            hook.released.set()
            for thread in threads._threads:
                thread.join(stretched(10))

    def test_only_the_leading_scheduler_sends(self, hook: HttpReceiver, configure: Configure) -> None:
        configure(alert_webhook_url=hook.url)
        stale()
        channels = configured(settings.CONFIG)
        asked: list[int] = []

        def stands_by() -> bool:
            asked.append(1)
            return False

        standby, leader = DeliveryThreads(channels, stands_by), DeliveryThreads(channels)
        standby.start()
        wait_for(lambda: asked)
        standby.stop()
        assert not hook.got
        leader.start()
        wait_for(lambda: hook.got)
        leader.stop()


@pytest.mark.requirement("US3.4", "FR-016")
def test_too_many_errors_are_logged_counted_and_posted(
    hook: HttpReceiver, configure: Configure, caplog: pytest.LogCaptureFixture
) -> None:
    configure(alert_webhook_url=hook.url, alert_webhook_secret="k3y")
    match, _, _ = make_watched(now=NOW)
    for number in range(11):
        make_error(match, now=NOW, error_type="network" if number < 8 else "parsing")
    watch_error_rate(NOW)
    assert DeliveryThread(Channel.WEBHOOK, configured(settings.CONFIG)[Channel.WEBHOOK], clock=lambda: NOW).deliver()
    (got,) = hook.got
    (alert,) = json.loads(got.body)["alerts"]
    assert alert["detail"]["error_types"] == {"network": 8, "parsing": 3}
    assert "x-victoryline-signature" in got.headers
    assert [line.levelno for line in caplog.records if getattr(line, "action", "") == "error_rate"] == [logging.ERROR]


@pytest.mark.requirement("FS-17")
class TestSentryGets:
    @pytest.fixture
    def sentry(self, configure: Configure, hook: HttpReceiver) -> Deliver:
        return Deliver(configure, hook, Channel.SENTRY)

    def only_event(self, sentry: Deliver) -> tuple[str, str]:
        (got,) = sentry.hook.got
        event = json.loads(got.body.splitlines()[2])
        return event["tags"]["event"], event["level"]

    def test_a_changed_schema_at_its_first_dead_task(self, sentry: Deliver) -> None:
        match, ref, _ = make_watched(now=NOW)
        task = make_task(ref, now=NOW, state="DEAD")
        about = {"task_id": task.pk, "match_id": match.pk, "error_class": "drift", "error_type": "parsing"}
        signals.task_died.send(sender=None, reason="no score in the page", now=NOW, **about)
        assert sentry(0)
        assert self.only_event(sentry) == ("schema_break", "error")

    def test_an_opened_breaker_of_a_source_as_a_warning(self, sentry: Deliver) -> None:
        source = make_source()
        signals.breaker_opened.send(sender=None, name="crex", source_id=source.pk, reason="35 % bad", now=NOW)
        assert Alert.objects.get().severity == Severity.CRITICAL
        assert sentry(0)
        assert self.only_event(sentry) == ("circuit_opened", "warning")

    def test_nothing_else_and_no_end(self, sentry: Deliver, hook: HttpReceiver) -> None:
        stale()
        raise_alert("sparse:crex", Severity.WARNING, "crex leaves out fields", {}, NOW)
        assert [sentry(0), sentry(1)] == [True, False]
        close_alert("sparse:crex", after(5))
        assert not sentry(5)
        assert self.only_event(sentry) == ("data_integrity_degraded", "warning")
        assert not due(Channel.SENTRY, after(6)), "what it does not want is not due for ever"


def test_makes_few_queries_for_hundreds_of_alerts(
    deliver: Deliver, django_assert_max_num_queries: Callable[..., object]
) -> None:
    for number in range(100):
        stale(number)
    with django_assert_max_num_queries(6):  # type: ignore[attr-defined]
        assert deliver(0)
