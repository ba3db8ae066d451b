"""What scraping announces becomes audit entries and alerts, and never a failure of the sender."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.dispatch import Signal

from apiauth.signals import key_revoked
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import Alert, AuditEntry, AuditOutcome, Severity
from scraping import signals
from tests.factories import NOW
from tests.monitoring.rows import make_task, make_watched

pytestmark = [pytest.mark.django_db, pytest.mark.both]


def announce(signal: Signal, **what: Any) -> None:
    for _, answer in signal.send_robust(sender=None, now=NOW, **what):
        assert answer is None


@pytest.mark.requirement("BX-11")
class TestAudit:
    @pytest.mark.parametrize(
        ("signal", "what", "actor", "action", "outcome"),
        [
            (signals.scraper_restarted, {"reason": "no update"}, "scheduler", "soft_restart", AuditOutcome.PENDING),
            (signals.match_paused, {"reason": "5 failures"}, "lifecycle", "pause", AuditOutcome.SUCCESS),
            (signals.match_paused, {"reason": "x", "actor": "Ann"}, "Ann", "pause", AuditOutcome.SUCCESS),
            (signals.match_resumed, {"reason": "over"}, "lifecycle", "resume", AuditOutcome.SUCCESS),
        ],
    )
    def test_of_what_happens_to_a_match(
        self, signal: Signal, what: dict[str, Any], actor: str, action: str, outcome: AuditOutcome
    ) -> None:
        match, _, _ = make_watched(now=NOW)
        announce(signal, match_id=match.pk, **what)
        entry = AuditEntry.objects.get()
        assert (entry.actor, entry.action_type, entry.outcome, entry.target) == (actor, action, outcome, match.title)
        assert entry.trigger_condition == what["reason"]

    def test_of_browsers_orphans_breakers_retries_and_keys(self) -> None:
        announce(signals.browser_replaced, worker_id="w1", reason="crashed", seconds=1.5)
        announce(signals.orphan_killed, pid=77, memory_bytes=5, dry_run=False)
        announce(signals.breaker_opened, name="crex_1_scraper", match_id=None)
        announce(signals.breaker_closed, name="crex_1_scraper", match_id=None)
        announce(signals.task_retried, task_id=3, actor="Ann")
        announce(key_revoked, prefix="ab12")
        rows = AuditEntry.objects.order_by("pk").values_list("action_type", "target")
        assert list(rows) == [
            ("browser_recycle", "w1"),
            ("orphan_killed", "pid 77"),
            ("breaker_open", "crex_1_scraper"),
            ("breaker_close", "crex_1_scraper"),
            ("retry", "task 3"),
            ("key_revoked", "ab12"),
        ]


@pytest.mark.requirement("FR-016")
class TestAlerts:
    def test_a_death_is_critical(self) -> None:
        match, ref, _ = make_watched(now=NOW)
        announce(signals.task_died, task_id=make_task(ref).pk, match_id=match.pk, error_class="drift", reason="layout")
        alert = Alert.objects.get()
        assert (alert.severity, alert.detail["error_class"]) == ("critical", "drift")
        assert alert.summary == f"A task of {match.title} is dead: layout"

    def test_an_open_breaker_is_an_alert_until_it_closes(self) -> None:
        announce(signals.breaker_opened, name="b", match_id=None)
        assert Alert.objects.get().closed_at is None
        announce(signals.breaker_closed, name="b", match_id=None)
        assert Alert.objects.get().closed_at == NOW

    def test_a_pause_is_an_alert_until_it_ends(self) -> None:
        match, _, _ = make_watched(now=NOW)
        announce(signals.match_paused, match_id=match.pk, reason="5 failures")
        announce(signals.match_resumed, match_id=match.pk, reason="over")
        assert Alert.objects.get().closed_at == NOW

    def test_one_is_open_per_key(self) -> None:
        assert raise_alert("k", Severity.WARNING, "first", {}, NOW)
        assert not raise_alert("k", Severity.CRITICAL, "second", {}, NOW)
        alert = Alert.objects.get()
        assert (alert.count, alert.summary, alert.severity) == (2, "second", "critical")
        assert close_alert("k", NOW)
        assert not close_alert("k", NOW)
        assert raise_alert("k", Severity.WARNING, "again", {}, NOW)
        assert Alert.objects.count() == 2


def test_a_failing_note_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    announce(signals.task_died, task_id=1)  # match_id is missing: a mistake of the sender
    assert "Could not note note_death" in caplog.text
    assert AuditEntry.objects.count() == 0  # the connection is still good for the sender's own work
    assert connection.is_usable()
