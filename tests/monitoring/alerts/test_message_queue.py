"""Alert messages from an open alert to delivery: rows, claims, retries, and the delivery threads."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.conf import settings
from django.db import OperationalError, connection
from django.test import Client

from monitoring.alerts import message_queue
from monitoring.alerts.channels import configured
from monitoring.alerts.delivery import DeliveryThread, DeliveryThreads, queue_messages, watch_deliveries
from monitoring.alerts.registry import acknowledge, close_alert, mute, raise_alert, unmute
from monitoring.models import Alert, AlertMessage, AuditEntry, Channel, Severity
from monitoring.watchdogs.matches import watch_error_rate
from scraping import signals
from tests.factories import NOW, make_source
from tests.monitoring.alerts.conftest import Configure
from tests.monitoring.alerts.servers import HttpReceiver
from tests.monitoring.rows import make_error, make_watched
from tests.patience import stretched, wait_for
from victoryline import retention

BOTH = (Channel.WEBHOOK, Channel.SENTRY)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def queue(seconds: float = 0, channels: tuple[Channel, ...] = (Channel.WEBHOOK,)) -> int:
    return message_queue.queue_due(channels, base_url="", now=after(seconds))


def stale(match_id: int = 7, seconds: float = 0, severity: Severity = Severity.CRITICAL) -> None:
    raise_alert(f"stale:{match_id}", severity, f"match {match_id} is silent", {"match_id": match_id}, after(seconds))


@pytest.mark.django_db
@pytest.mark.both
class TestQueue:
    def test_writes_one_message_to_each_channel_and_updates_the_alert(self) -> None:
        stale()
        assert queue(channels=BOTH) == 2
        assert set(AlertMessage.objects.values_list("channel", "severity")) == {
            ("webhook", "critical"),
            ("sentry", "critical"),
        }
        alert = Alert.objects.get()
        assert (alert.notified_at, alert.notification_count, alert.end_notified_at) == (NOW, 1, None)
        assert set(alert.messages.values_list("channel", flat=True)) == {"webhook", "sentry"}

    def test_notifies_once_and_the_end_once(self) -> None:
        stale()
        assert [queue(), queue(1), queue(7200)] == [1, 0, 0]
        close_alert("stale:7", after(7240))
        assert [queue(7240), queue(7241)] == [1, 0]
        assert Alert.objects.get().end_notified_at == after(7240)
        assert [each["event"] for each in AlertMessage.objects.values_list("document", flat=True)] == ["raised", "over"]

    def test_an_alert_that_ends_before_its_message_is_not_notified(self) -> None:
        stale()
        close_alert("stale:7", NOW)
        assert queue() == 0

    def test_sentry_gets_new_alerts_only(self) -> None:
        stale()
        assert queue(channels=(Channel.SENTRY,)) == 1
        close_alert("stale:7", after(5))
        assert queue(5, channels=(Channel.SENTRY,)) == 0
        assert Alert.objects.get().end_notified_at == after(5)

    def test_one_message_has_all_that_was_raised_became_worse_or_ended(self) -> None:
        stale(1)
        stale(2, severity=Severity.WARNING)
        queue()
        close_alert("stale:1", after(10))
        stale(2, 10)
        stale(3, 10, severity=Severity.WARNING)
        stale(4, 10)
        assert queue(10) == 1
        message = AlertMessage.objects.latest("pk")
        assert [(each["key"], each["event"]) for each in message.document["alerts"]] == [
            ("stale:2", "worse"),
            ("stale:4", "raised"),
            ("stale:3", "raised"),
            ("stale:1", "over"),
        ]
        assert (message.severity, message.document["event"]) == ("critical", "worse")

    def test_writes_nothing_without_channels(self, django_assert_num_queries: Callable[..., object]) -> None:
        stale()
        with django_assert_num_queries(0):  # type: ignore[attr-defined]
            assert queue(channels=()) == 0

    def test_makes_few_queries_for_hundreds_of_alerts(
        self, django_assert_max_num_queries: Callable[..., object]
    ) -> None:
        for number in range(100):
            stale(number)
        queue()
        with django_assert_max_num_queries(5):  # type: ignore[attr-defined]
            assert queue(10) == 0

    def test_a_clock_that_was_set_back_delays_no_message(self) -> None:
        first, second = (make_watched(now=NOW)[0] for _ in range(2))
        stale(first.pk, 3600)
        assert queue(3600) == 1
        assert message_queue.claim_next(Channel.WEBHOOK, NOW), "written by the old clock, and not sent yet"
        stale(second.pk, 3601)
        assert [queue(2), queue(3)] == [1, 0]

    def test_a_source_that_fails_is_one_message(self) -> None:
        for number in range(37):
            stale(number)
        assert queue() == 1
        message = AlertMessage.objects.get()
        assert message.subject == "[VictoryLine] CRITICAL: match 0 is silent (and 36 more)"
        assert message.alerts.count() == 37

    def test_a_warning_that_becomes_critical_is_notified_again(self) -> None:
        stale(severity=Severity.WARNING)
        assert [queue(), queue(300)] == [1, 0]
        acknowledge(Alert.objects.get().pk, actor="ann", now=after(301))
        stale(seconds=310)
        assert [queue(310), queue(345)] == [1, 0]
        assert AlertMessage.objects.latest("pk").document["event"] == "worse"

    def test_stays_muted_when_it_opens_again(self) -> None:
        stale()
        mute(Alert.objects.get().pk, until=after(600), reason="known", actor="ann", now=NOW)
        close_alert("stale:7", after(10))
        stale(seconds=20)
        assert [queue(), queue(30)] == [0, 0]
        unmute(Alert.objects.latest("pk").pk, actor="ann", now=after(40))
        assert queue(41) == 1
        assert list(AuditEntry.objects.values_list("actor", "action_type", "target").order_by("pk")) == [
            ("ann", "alert_muted", "stale:7"),
            ("ann", "alert_unmuted", "stale:7"),
        ]


@pytest.mark.django_db
@pytest.mark.both
class TestClaim:
    def prepare(self) -> AlertMessage:
        stale()
        queue()
        return AlertMessage.objects.get()

    def test_is_claimed_by_one_sender(self) -> None:
        message = self.prepare()
        claimed = message_queue.claim_next(Channel.WEBHOOK, NOW)
        assert claimed is not None
        assert (claimed.pk, claimed.attempts, claimed.document) == (message.pk, 1, message.document)
        assert message_queue.claim_next(Channel.WEBHOOK, NOW) is None
        assert message_queue.claim_next(Channel.SENTRY, NOW) is None

    def test_a_message_of_a_dead_sender_is_claimed_again(self) -> None:
        self.prepare()
        message_queue.claim_next(Channel.WEBHOOK, NOW)
        assert message_queue.claim_next(Channel.WEBHOOK, after(119)) is None
        again = message_queue.claim_next(Channel.WEBHOOK, after(120))
        assert again is not None
        message_queue.mark_sent(again, after(121))
        assert message_queue.claim_next(Channel.WEBHOOK, after(600)) is None
        assert AlertMessage.objects.get().sent_at == after(121)

    def test_is_tried_for_an_hour_and_then_given_up(self) -> None:
        self.prepare()
        now, tried = NOW, 0
        while claimed := message_queue.claim_next(Channel.WEBHOOK, now):
            tried += 1
            if message_queue.mark_failed(claimed, "answered 503", now=now):
                break
            now = AlertMessage.objects.get().next_attempt_at
        message = AlertMessage.objects.get()
        assert (tried, message.attempts, message.given_up_at, message.error) == (9, 9, now, "answered 503")
        assert timedelta(minutes=45) < now - NOW < timedelta(minutes=75)

    def test_honours_retry_after(self) -> None:
        self.prepare()
        claimed = message_queue.claim_next(Channel.WEBHOOK, NOW)
        assert claimed is not None
        message_queue.mark_failed(claimed, "answered 429", now=NOW, retry_after=300)
        assert message_queue.claim_next(Channel.WEBHOOK, after(299)) is None
        assert message_queue.claim_next(Channel.WEBHOOK, after(300)) is not None

    def test_sends_given_up_messages_again_and_no_others(self) -> None:
        message = self.prepare()
        claimed = message_queue.claim_next(Channel.WEBHOOK, NOW)
        assert claimed is not None
        message_queue.mark_failed(claimed, "answered 404", now=NOW, is_final=True)
        assert message_queue.claim_next(Channel.WEBHOOK, after(7200)) is None
        assert message_queue.send_again(message.pk, after(7200))
        claimed = message_queue.claim_next(Channel.WEBHOOK, after(7200))
        assert claimed is not None
        message_queue.mark_sent(claimed, after(7201))
        assert not message_queue.send_again(message.pk, after(7300))


@pytest.mark.django_db
class TestDeliveryThread:
    def delivery_thread(self, hook: HttpReceiver, configure: Configure, seconds: float = 0) -> DeliveryThread:
        configure(alert_webhook_url=hook.url)
        return DeliveryThread(
            Channel.WEBHOOK, configured(settings.CONFIG)[Channel.WEBHOOK], clock=lambda: after(seconds)
        )

    def test_sends_due_messages(self, hook: HttpReceiver, configure: Configure) -> None:
        stale()
        queue()
        delivery_thread = self.delivery_thread(hook, configure)
        assert [delivery_thread.deliver_next(), delivery_thread.deliver_next()] == [True, False]
        assert AlertMessage.objects.get().sent_at == NOW
        assert len(hook.got) == 1

    def test_records_the_error_without_secrets(
        self, hook: HttpReceiver, configure: Configure, caplog: pytest.LogCaptureFixture
    ) -> None:
        stale()
        queue()
        hook.status = 403
        assert self.delivery_thread(hook, configure).deliver_next()
        message = AlertMessage.objects.get()
        assert message.given_up_at == NOW
        assert "127.0.0.1 answered 403" in message.error
        line = next(each for each in caplog.records if getattr(each, "action", "") == "alert_not_sent")
        assert line.levelno == logging.ERROR
        assert "s3cret" not in caplog.text + message.error

    def test_notifies_a_database_outage_and_its_end_directly(
        self, hook: HttpReceiver, configure: Configure, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        moment = {"seconds": 0.0}
        delivery_thread = self.delivery_thread(hook, configure)
        delivery_thread._clock = lambda: after(moment["seconds"])

        def away(*_: object) -> None:
            raise OperationalError("connection refused")

        with monkeypatch.context() as patched:
            patched.setattr(message_queue, "claim_next", away)
            for moment["seconds"] in (0, 30, 59, 60, 70, 400):
                assert delivery_thread.deliver_next() is False
        assert len(hook.got) == 1
        moment["seconds"] = 420
        delivery_thread.deliver_next()
        first, last = (json.loads(got.body) for got in hook.got)
        assert (first["event"], first["alerts"][0]["key"]) == ("raised", "database")
        assert "away for 60 s" in first["text"]
        assert (last["event"], last["alerts"][0]["summary"]) == ("over", "The database is back after 420 s")


@pytest.mark.django_db(transaction=True)
@pytest.mark.both
class TestThreads:
    def test_a_hanging_webhook_blocks_no_other_and_all_stop_within_two_seconds(
        self, hook: HttpReceiver, configure: Configure
    ) -> None:
        hook.hangs.set()
        with HttpReceiver() as sentry:
            configure(alert_webhook_url=hook.url, sentry_dsn=f"http://key@127.0.0.1:{sentry.port}/42")
            stale()
            queue(channels=BOTH)
            threads = DeliveryThreads(configured(settings.CONFIG))
            threads.start()
            wait_for(lambda: sentry.got and hook.got)
            wait_for(lambda: AlertMessage.objects.filter(channel="sentry", sent_at__isnull=False).exists())
            began = time.monotonic()
            threads.stop()
            assert time.monotonic() - began < stretched(5)
            hook.released.set()
            for thread in threads._threads:
                thread.join(stretched(10))

    @pytest.mark.parametrize("is_over", [False, True])
    def test_two_leaders_at_once_write_each_message_once(self, is_over: bool) -> None:
        for number in range(5):
            stale(number)
        if is_over:
            queue()
            AlertMessage.objects.all().delete()
            Alert.objects.update(closed_at=NOW - timedelta(minutes=5))
        together, made = threading.Barrier(2), list[int]()

        def lead() -> None:
            together.wait()
            try:
                made.append(queue())
            finally:
                connection.close()

        threads = [threading.Thread(target=lead) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(stretched(20))
        assert sorted(made) == [0, 1]
        assert AlertMessage.objects.count() == 1
        assert set(Alert.objects.values_list("notification_count", flat=True)) == {1}


@pytest.mark.django_db
@pytest.mark.requirement("US3.4", "FR-016")
def test_too_many_errors_are_logged_counted_and_posted(
    hook: HttpReceiver, configure: Configure, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    configure(alert_webhook_url=hook.url, alert_webhook_secret="k3y")
    match, _, _ = make_watched(now=NOW)
    for number in range(11):
        make_error(match, now=NOW, error_type="network" if number < 8 else "parsing")
    watch_error_rate(NOW)
    assert queue_messages(NOW) == 1
    assert DeliveryThread(
        Channel.WEBHOOK, configured(settings.CONFIG)[Channel.WEBHOOK], clock=lambda: NOW
    ).deliver_next()
    (got,) = hook.got
    (alert,) = json.loads(got.body)["alerts"]
    assert alert["detail"]["error_types"] == {"network": 8, "parsing": 3}
    assert "x-victoryline-signature" in got.headers
    assert [line.levelno for line in caplog.records if getattr(line, "action", "") == "error_rate"] == [logging.ERROR]


@pytest.mark.django_db
@pytest.mark.requirement("FS-17")
def test_a_source_that_has_changed_is_an_event_in_sentry(hook: HttpReceiver, configure: Configure) -> None:
    configure(sentry_dsn=f"http://key@127.0.0.1:{hook.port}/42")
    source = make_source()
    signals.source_lost.send(sender=None, source_id=source.pk, failures=11, reason="no score in the page", now=NOW)
    assert queue_messages(NOW) == 1
    assert DeliveryThread(Channel.SENTRY, configured(settings.CONFIG)[Channel.SENTRY], clock=lambda: NOW).deliver_next()
    event = json.loads(hook.got[0].body.splitlines()[2])
    assert (event["tags"]["event"], event["fingerprint"]) == ("schema_break", ["changed:crex"])
    assert AlertMessage.objects.get().sent_at == NOW


@pytest.mark.django_db
class TestDeliveries:
    def test_a_failing_channel_raises_an_alert_until_it_works(self, configure: Configure) -> None:
        configure(alert_webhook_url="http://127.0.0.1:1/")
        stale()
        queue()
        assert watch_deliveries(after(299)) == 0
        AlertMessage.objects.update(error="127.0.0.1 cannot be reached")
        assert watch_deliveries(after(301)) == 1
        alert = Alert.objects.get(key="delivery:webhook")
        assert alert.summary == "1 message is not delivered by webhook: 127.0.0.1 cannot be reached"
        AlertMessage.objects.update(sent_at=after(310))
        watch_deliveries(after(320))
        alert.refresh_from_db()
        assert alert.closed_at == after(320)

    def test_messages_are_kept_for_thirty_days(self) -> None:
        stale()
        queue()
        assert retention.prune(NOW + timedelta(days=29)) == 0
        assert retention.prune(NOW + timedelta(days=31)) >= 1
        assert not AlertMessage.objects.exists()
        assert Alert.objects.exists()

    def test_the_migration_gives_up_e_mails_that_were_not_sent(self) -> None:
        stale()
        queue(channels=BOTH)
        AlertMessage.objects.filter(channel="sentry").update(channel="email")
        import_module("monitoring.migrations.0008_no_email_channel").give_up_unsent_emails(apps, None)
        email, webhook = AlertMessage.objects.order_by("channel")
        assert (email.given_up_at, email.error[:27]) == (NOW, "VictoryLine sends no e-mail")
        assert webhook.given_up_at is None
