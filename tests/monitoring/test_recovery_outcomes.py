"""Outcomes of recovery actions: the rules as tables, and the step that records them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from monitoring import audit
from monitoring.audit import SystemContext
from monitoring.models import AuditEntry, AuditOutcome, Grade, GradeChange
from monitoring.recovery_outcomes import RecoveryResult, evaluate_recoveries, match_result, system_result, task_result
from scraping.models import Match, MatchRef, ScrapeTask, Source, TaskState
from tests.factories import NOW, make_source
from tests.monitoring.rows import make_task, make_watched, make_worker

S, P, F = AuditOutcome.SUCCESS, AuditOutcome.PARTIAL, AuditOutcome.FAILED


def later(seconds: float) -> Any:
    return NOW + timedelta(seconds=seconds)


def source(
    key: str = "crex", *, read: float | None = None, is_slowed: bool = False, is_fallback: bool = False
) -> MatchRef:
    return MatchRef(
        source=Source(key=key),
        captured_at=None if read is None else later(read),
        slowed_until=later(600) if is_slowed else None,
        called_in_at=NOW if is_fallback else None,
    )


@pytest.mark.requirement("SO-6", "BX-11")
@pytest.mark.parametrize(
    ("sources", "fields", "about", "after", "expected"),
    [
        pytest.param([source(read=-5)], {}, "", 30, None, id="not read yet"),
        pytest.param([source(read=-5)], {}, "", 120, F, id="not read in time"),
        pytest.param([source()], {}, "", 120, F, id="never read"),
        pytest.param([source(read=4)], {}, "", 5, S, id="read again"),
        pytest.param([source(read=0)], {}, "", 120, F, id="read before the action"),
        pytest.param([source(read=4, is_slowed=True)], {}, "", 5, None, id="read, and slowed"),
        pytest.param([source(read=4, is_slowed=True)], {}, "", 120, P, id="still slowed"),
        pytest.param([source(read=-9), source("b", read=4, is_fallback=True)], {}, "", 5, None, id="called in"),
        pytest.param([source(read=-9), source("b", read=4, is_fallback=True)], {}, "", 120, P, id="only called in"),
        pytest.param([source(read=-9), source("b", read=4)], {}, "crex", 120, P, id="read at another source only"),
        pytest.param([source(read=4), source("b", read=-9)], {}, "crex", 5, S, id="read at the named source"),
        pytest.param([source(read=-9), source("b", read=4)], {}, "", 5, S, id="read at any source, none named"),
        pytest.param([source(read=4)], {"lifecycle": "PAUSED"}, "", 5, None, id="paused"),
        pytest.param([source(read=-9)], {"lifecycle": "PAUSED"}, "", 120, P, id="still paused"),
        pytest.param([source(read=-9)], {"lifecycle": "COMPLETED"}, "", 1, S, id="the match has ended"),
        pytest.param([source(read=-9)], {"lifecycle": "ARCHIVED"}, "", 1, S, id="and is archived"),
        pytest.param([], {}, "", 120, P, id="not polled any more"),
    ],
)
def test_by_match(
    sources: list[MatchRef], fields: dict[str, Any], about: str, after: float, expected: AuditOutcome | None
) -> None:
    result = match_result(NOW, Match(**fields), sources, later(after), source_key=about)
    assert (result and result.outcome) == expected


@pytest.mark.requirement("SO-6")
@pytest.mark.parametrize(
    ("grade", "ages", "was", "after", "expected"),
    [
        pytest.param("HEALTHY", (1.0,), "HEALTHY", 5, RecoveryResult(S), id="healthy, and read since"),
        pytest.param(
            "HEALTHY", (1.0,), "FAILING", 5, RecoveryResult(S, later(5)), id="healthy again, with the duration"
        ),
        pytest.param("HEALTHY", (), "HEALTHY", 1, RecoveryResult(S), id="nothing to read"),
        pytest.param("HEALTHY", (20.0, 30.0), "HEALTHY", 5, None, id="nothing was read since"),
        pytest.param("HEALTHY", (130.0,), "HEALTHY", 120, RecoveryResult(S), id="healthy in the end"),
        pytest.param("DEGRADED", (1.0,), "FAILING", 119, None, id="better, still time"),
        pytest.param("DEGRADED", (1.0,), "FAILING", 120, RecoveryResult(P), id="better only"),
        pytest.param("RECOVERING", (1.0,), "FAILING", 120, RecoveryResult(P), id="on its way"),
        pytest.param("FAILING", (200.0,), "FAILING", 119, None, id="failing, still time"),
        pytest.param("FAILING", (200.0,), "FAILING", 120, RecoveryResult(F), id="still failing"),
    ],
)
def test_by_grade(grade: str, ages: tuple[float, ...], was: str, after: float, expected: RecoveryResult | None) -> None:
    assert system_result(NOW, SystemContext(grade=Grade(grade), ages=ages), later(after), grade_before=was) == expected


@pytest.mark.parametrize(
    ("state", "finished", "after", "expected"),
    [
        pytest.param(TaskState.PENDING, None, 5, None, id="waits"),
        pytest.param(TaskState.EXECUTING, None, 119, None, id="runs"),
        pytest.param(TaskState.PENDING, None, 120, P, id="still waits"),
        pytest.param(TaskState.SUCCESS, 4, 5, S, id="read"),
        pytest.param(TaskState.DEAD, 4, 5, F, id="dead again"),
        pytest.param(TaskState.DEAD, -4, 5, None, id="not begun yet"),
    ],
)
def test_by_task(state: str, finished: float | None, after: float, expected: AuditOutcome | None) -> None:
    result = task_result(NOW, state, None if finished is None else later(finished), later(after))
    assert (result and result.outcome) == expected


def act(match: Match | None = None, action: str = audit.SOFT_RESTART, **more: Any) -> AuditEntry:
    values = {"actor": "scheduler", "trigger_condition": "no update", "now": NOW}
    return audit.record(action_type=action, match_id=match.pk if match else None, **values | more)


def evaluated(entry: AuditEntry) -> AuditEntry:
    entry.refresh_from_db()
    return entry


@pytest.mark.django_db
@pytest.mark.both
@pytest.mark.requirement("SO-6", "BX-11")
class TestStep:
    def test_records_the_state_before_and_after(self) -> None:
        match, _, _ = make_watched(now=NOW, age=310, scraper_status="stale", silence_rung=5)
        entry = act(match, metadata={"source_key": "crex"})
        assert (entry.outcome, entry.before["age_s"], entry.before["rung"]) == ("pending", 310.0, 5)
        assert entry.before["sources"] == ["crex"]
        assert evaluate_recoveries(later(5)) == 0
        MatchRef.objects.update(captured_at=later(7))
        Match.objects.update(last_scraper_update=later(7), scraper_status="active", silence_rung=0)
        assert evaluate_recoveries(later(10)) == 1
        entry = evaluated(entry)
        assert (entry.outcome, entry.duration_seconds, entry.judged_at) == ("success", 7.0, later(10))
        assert (entry.after["age_s"], entry.after["rung"], entry.after["scraper_status"]) == (3.0, 0, "active")
        assert evaluate_recoveries(later(15)) == 0, "once is enough"

    def test_an_action_that_changed_nothing_has_failed(self) -> None:
        match, _, _ = make_watched(now=NOW, age=310)
        entry = act(match, "silence_session")
        assert [evaluate_recoveries(later(seconds)) for seconds in (60, 119, 120)] == [0, 0, 1]
        entry = evaluated(entry)
        assert (entry.outcome, entry.after["age_s"], entry.duration_seconds) == ("failed", 430.0, 0.0)

    def test_a_recycled_browser_is_evaluated_by_the_grade(self) -> None:
        make_watched(now=NOW, age=200)
        make_worker(now=NOW)
        GradeChange.objects.create(from_grade="HEALTHY", to_grade="FAILING", at=later(-20), reason="old")
        entry = act(None, audit.BROWSER_RECYCLE, duration_seconds=1.5)
        assert entry.before | {"grade": "FAILING", "max_s": 200.0, "workers": 1} == entry.before
        assert evaluate_recoveries(later(15)) == 0
        GradeChange.objects.create(from_grade="FAILING", to_grade="HEALTHY", at=later(30), reason="fresh")
        Match.objects.update(last_scraper_update=later(29))
        assert evaluate_recoveries(later(35)) == 1
        entry = evaluated(entry)
        assert (entry.outcome, entry.duration_seconds, entry.after["grade"]) == ("success", 35.0, "HEALTHY")

    def test_a_retry_is_evaluated_by_its_task(self) -> None:
        _, ref, _ = make_watched(now=NOW)
        task = make_task(ref, now=NOW)
        entry = act(None, audit.RETRY, metadata={"task_id": task.pk})
        assert evaluate_recoveries(later(5)) == 0
        ScrapeTask.objects.update(state=TaskState.SUCCESS, finished_at=later(6))
        assert evaluate_recoveries(later(10)) == 1
        assert (evaluated(entry).outcome, evaluated(entry).duration_seconds) == ("success", 6.0)

    def test_the_entry_of_a_deleted_match_is_closed(self) -> None:
        match, _, _ = make_watched(now=NOW)
        entry = act(match)
        AuditEntry.objects.update(match=None)
        Match.objects.all().delete()
        assert evaluate_recoveries(later(120)) == 1
        assert evaluated(entry).outcome != "pending"

    def test_two_leaders_write_one_result(self) -> None:
        match, _, _ = make_watched(now=NOW, age=310)
        act(match)
        first = audit.pending(10)
        second = audit.pending(10)
        for entries, outcome in ((first, S), (second, F)):
            entries[0].outcome, entries[0].judged_at = outcome, later(5)
        assert [audit.close(first), audit.close(second)] == [1, 0]
        assert AuditEntry.objects.get().outcome == "success"

    def test_makes_few_queries_for_any_number_of_entries(self) -> None:
        source = make_source()
        for number in range(60):
            match, _, _ = make_watched(now=NOW, age=310, title=f"match {number}")
            AuditEntry.objects.create(
                timestamp=NOW,
                actor="x",
                action_type="silence_hint",
                trigger_condition="x",
                outcome="pending",
                match=match,
            )
        act(None, audit.BROWSER_RECYCLE)
        assert source is not None
        with CaptureQueriesContext(connection) as seen:
            assert evaluate_recoveries(later(130)) == 61
        assert len(seen) <= 12, [query["sql"][:90] for query in seen]


def test_is_a_scheduler_step() -> None:
    assert dict(settings.SCHEDULER_STEPS)["monitoring.recovery_outcomes.evaluate_recoveries"] == 5.0
    assert timedelta(seconds=120) == audit.EVALUATED_AFTER


@pytest.mark.parametrize(
    ("action", "match_id", "expected"),
    [
        ("soft_restart", 1, audit.OutcomeRule.BY_MATCH),
        ("resume", 1, audit.OutcomeRule.BY_MATCH),
        ("frozen", 1, audit.OutcomeRule.BY_MATCH),
        ("breaker_reset", None, audit.OutcomeRule.BY_GRADE),
        ("browser_recycle", None, audit.OutcomeRule.BY_GRADE),
        ("retry", 1, audit.OutcomeRule.BY_TASK),
        ("pause", 1, audit.OutcomeRule.IMMEDIATE),
        ("key_issued", None, audit.OutcomeRule.IMMEDIATE),
    ],
)
def test_outcome_rule_of_each_action(action: str, match_id: int | None, expected: audit.OutcomeRule) -> None:
    assert audit.outcome_rule(action, match_id) is expected
