"""Signals become audit entries and alerts, and never a failure of the sender."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.dispatch import Signal
from django.utils.inspect import func_accepts_kwargs

from apiauth.signals import key_revoked
from monitoring import audit
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import Alert, AuditEntry, AuditOutcome, Severity
from scraping import signals
from scraping.browser.host import Replacement
from scraping.matches import lifecycle
from scraping.models import Breaker, CommandKind, WorkerCommand
from scraping.policies.ladder import Rung
from scraping.recovery import worker_commands
from scraping.recovery.ladder import StepContext, take_step
from tests.factories import NOW
from tests.monitoring.rows import make_task, make_watched

pytestmark = [pytest.mark.django_db, pytest.mark.both]


def send(signal: Signal, **values: Any) -> None:
    for _, answer in signal.send_robust(sender=None, now=NOW, **values):
        assert answer is None


@pytest.mark.requirement("BX-11")
class TestAudit:
    @pytest.mark.parametrize(
        ("signal", "what", "actor", "action", "outcome"),
        [
            (signals.scraper_restarted, {"reason": "no update"}, "scheduler", "soft_restart", AuditOutcome.PENDING),
            (signals.match_paused, {"reason": "5 failures"}, "lifecycle", "pause", AuditOutcome.SUCCESS),
            (signals.match_paused, {"reason": "x", "actor": "Ann"}, "Ann", "pause", AuditOutcome.SUCCESS),
            (signals.match_resumed, {"reason": "over"}, "lifecycle", "resume", AuditOutcome.PENDING),
        ],
    )
    def test_of_what_happens_to_a_match(
        self, signal: Signal, what: dict[str, Any], actor: str, action: str, outcome: AuditOutcome
    ) -> None:
        match, _, _ = make_watched(now=NOW)
        send(signal, match_id=match.pk, **what)
        entry = AuditEntry.objects.get()
        assert (entry.actor, entry.action_type, entry.outcome, entry.target) == (actor, action, outcome, match.title)
        assert entry.trigger_condition == what["reason"]
        assert (entry.match, entry.before["lifecycle"]) == (match, "ACTIVE")

    def test_of_browsers_orphans_breakers_retries_and_keys(self) -> None:
        send(signals.browser_replaced, worker_id="w1", reason="crashed", seconds=1.5)
        send(signals.orphan_killed, pid=77, memory_bytes=5, dry_run=False)
        send(signals.breaker_opened, name="crex_1_scraper", match_id=None)
        send(signals.breaker_closed, name="crex_1_scraper", match_id=None)
        task = make_task(make_watched()[1])
        send(signals.tasks_moved, task_ids=[task.pk], to="PENDING", reason="x", actor="Ann")
        send(key_revoked, prefix="ab12")
        rows = AuditEntry.objects.order_by("pk").values_list("action_type", "target")
        assert list(rows) == [
            ("browser_recycle", "w1"),
            ("orphan_killed", "pid 77"),
            ("breaker_open", "crex_1_scraper"),
            ("breaker_close", "crex_1_scraper"),
            ("retry", f"task {task.pk}"),
            ("key_revoked", "ab12"),
        ]


@pytest.mark.requirement("BX-11")
class TestSilence:
    @pytest.mark.parametrize(
        ("rung", "action"),
        [
            (Rung.HINT, "silence_hint"),
            (Rung.SESSION, "silence_session"),
            (Rung.BROWSER, "silence_browser"),
            (Rung.OTHER_SOURCE, "silence_other_source"),
            (Rung.FROZEN, "frozen"),
        ],
    )
    def test_every_rung_is_an_open_action_of_its_match(self, rung: Rung, action: str) -> None:
        match, _, _ = make_watched(now=NOW, age=40, silence_rung=rung)
        what = {"rung": int(rung), "rung_name": rung.name.lower(), "reason": "silent for 40 s"}
        send(signals.silence_climbed, match_id=match.pk, detail={"hinted": 1}, **what)
        entry = AuditEntry.objects.get()
        assert (entry.action_type, entry.match, entry.outcome) == (action, match, "pending")
        assert (entry.before["age_s"], entry.before["rung"], entry.metadata["hinted"]) == (40.0, rung, 1)
        assert not Alert.objects.exists(), "the staleness watchdog has the one alert of it"

    def test_its_end_records_the_steps_and_the_duration(self) -> None:
        match, _, _ = make_watched(now=NOW, age=1)
        for rung in (1, 2):
            send(signals.silence_climbed, match_id=match.pk, rung=rung, rung_name="", reason="", detail={})
        send(signals.silence_over, match_id=match.pk, rung=2, seconds=47.0, source_key="crex")
        entry = AuditEntry.objects.get(action_type="silence_over")
        assert (entry.outcome, entry.duration_seconds) == ("success", 47.0)
        assert entry.metadata["tried"] == ["silence_hint", "silence_session"]
        assert entry.trigger_condition == "read again from crex, after 47 s"

    def test_a_deleted_match_does_not_break_the_commit(self) -> None:
        send(signals.silence_climbed, match_id=987_654, rung=1, rung_name="hint", reason="silent", detail={})
        assert AuditEntry.objects.get().match is None
        connection.check_constraints()


@pytest.mark.requirement("BX-11")
class TestOrders:
    @pytest.mark.parametrize(
        ("kind", "action"), [("recycle_browser", "manual_trigger"), ("fresh_session", "context_pool_reset")]
    )
    def test_one_entry_names_the_operator(self, kind: str, action: str) -> None:
        what = {"worker_id": "w1", "kind": kind, "actor": "Ann", "reason": "it hangs", "outcome": "done"}
        send(signals.browser_replaced, worker_id="w1", reason="it hangs", seconds=2.0, cause="command")
        send(signals.command_done, command_id=5, seconds=3.5, **what)
        entry = AuditEntry.objects.get()
        assert (entry.action_type, entry.actor, entry.outcome) == (action, "Ann", "pending")
        assert (entry.duration_seconds, entry.before["grade"]) == (3.5, "HEALTHY")

    def test_a_browser_that_the_ladder_replaced_is_no_manual_one_and_its_reason_names_no_teams(self) -> None:
        match, _, _ = make_watched(now=NOW)
        take_step(match, Rung.BROWSER, StepContext(("w1",), 300.0, NOW))
        worker_commands.finish(WorkerCommand.objects.get(), outcome="browser 2", now=NOW)
        entry = AuditEntry.objects.get()
        assert (entry.action_type, entry.trigger_condition) == ("browser_recycle", f"{match.key} is silent")
        assert entry.actor in audit.COMPONENTS

    def test_pauses_of_our_own_are_by_a_component(self) -> None:
        match, _, _ = make_watched(now=NOW)
        limits = {"pause_after": 1, "pause_seconds": 60.0}
        lifecycle.after_failed_attempt(match.pk, reason="timeout", is_dead=False, now=NOW, **limits)
        lifecycle.end_pauses(now=NOW + timedelta(seconds=61))
        assert {entry.actor for entry in AuditEntry.objects.all()} == {"lifecycle", "scheduler"}
        assert {"lifecycle", "scheduler"} <= audit.COMPONENTS

    @pytest.mark.requirement("SO-6", "SO-15")
    @pytest.mark.parametrize(("actor", "action"), [("Ann", "manual_trigger"), ("scheduler", "browser_recycle")])
    def test_a_recycled_browser_has_its_figures_before_and_after(self, actor: str, action: str) -> None:
        command = worker_commands.issue(
            CommandKind.RECYCLE_BROWSER, worker_id="w1", reason="slow", actor=actor, now=NOW
        )
        assert command is not None
        replacement = Replacement("slow", 2.0, 2, pids_before=14, pids_after=8, uptime_seconds=21_672, pages=97)
        done = NOW + timedelta(seconds=3)
        worker_commands.finish(command, outcome="browser 2", now=done, figures=replacement.as_metadata())
        entry = AuditEntry.objects.get()
        assert (entry.action_type, entry.actor, entry.trigger_condition) == (action, actor, "slow")
        figures = {"pids_before": 14, "pids_after": 8, "browser_uptime_hours": 6.02, "task_count": 97}
        assert {name: entry.metadata[name] for name in figures} == figures

    def test_a_command_that_no_worker_took_has_failed_and_is_recorded_once(self) -> None:
        command = worker_commands.issue(
            CommandKind.RECYCLE_BROWSER, worker_id="w1", reason="it hangs", actor="Ann", now=NOW
        )
        assert command is not None
        late = NOW + timedelta(seconds=61)
        assert [worker_commands.close_untaken(late), worker_commands.close_untaken(late)] == [1, 0]
        assert not worker_commands.finish(command, outcome="browser 2 took its place", now=late), "its end is known"
        entry = AuditEntry.objects.get()
        assert (entry.action_type, entry.actor, entry.outcome) == ("manual_trigger", "Ann", "failed")
        assert entry.metadata["came_of_it"] == "not taken in time"
        assert audit.last_recovery_at(since=NOW) is None, "nothing was done that could have helped"

    def test_importance_set_by_an_operator(self) -> None:
        match, _, _ = make_watched(now=NOW)
        send(signals.importance_set, match_id=match.pk, importance=0, actor="Ann")
        entry = AuditEntry.objects.get()
        assert (entry.actor, entry.trigger_condition, entry.match) == ("Ann", "set to high", match)

    def test_a_breaker_operated_by_an_operator(self) -> None:
        match, ref, _ = make_watched(now=NOW)
        Breaker.objects.create(name="crex_1", ref=ref, last_state_change=NOW)
        send(signals.breaker_operated, name="crex_1", action="breaker_reset", reason="mended", actor="Ann")
        send(signals.breaker_operated, name="crex_1", action="breaker_force_open", reason="broken", actor="Ann")
        rows = AuditEntry.objects.order_by("pk").values_list("action_type", "outcome", "match")
        assert list(rows) == [("breaker_reset", "pending", match.pk), ("breaker_force_open", "success", match.pk)]


@pytest.mark.requirement("FR-016")
class TestAlerts:
    def test_a_death_is_critical(self) -> None:
        match, ref, _ = make_watched(now=NOW)
        send(signals.task_died, task_id=make_task(ref).pk, match_id=match.pk, error_class="drift", reason="layout")
        alert = Alert.objects.get()
        assert (alert.severity, alert.detail["error_class"]) == ("critical", "drift")
        assert alert.summary == f"A task of {match.title} is dead: layout"

    def test_an_open_breaker_is_an_alert_until_it_closes(self) -> None:
        send(signals.breaker_opened, name="b", match_id=None)
        assert Alert.objects.get().closed_at is None
        send(signals.breaker_closed, name="b", match_id=None)
        assert Alert.objects.get().closed_at == NOW

    def test_a_pause_is_an_alert_until_it_ends(self) -> None:
        match, _, _ = make_watched(now=NOW)
        send(signals.match_paused, match_id=match.pk, reason="5 failures")
        send(signals.match_resumed, match_id=match.pk, reason="over")
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


def test_a_failing_receiver_does_not_break_the_sender(caplog: pytest.LogCaptureFixture) -> None:
    send(signals.task_died, task_id=1)  # match_id is missing: a mistake of the sender
    assert "Receiver raise_dead_task failed" in caplog.text
    assert AuditEntry.objects.count() == 0  # the connection is still good for the sender's own work
    assert connection.is_usable()


def test_receivers_accept_additional_arguments() -> None:
    """With DEBUG on, Django refuses to start with one that does not."""
    ours = [
        receiver
        for signal in vars(signals).values()
        if isinstance(signal, Signal)
        for (name, _), receiver, *_ in signal.receivers
        if str(name).startswith("monitoring.")
    ]
    assert ours
    assert [one.__name__ for one in ours if not func_accepts_kwargs(one)] == []
