"""Simulated nights on the test database: rules hold, a seed is reproducible, a broken policy is reported."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.conf import settings
from django.core.management import call_command

from benchmarks.benches.night import plan_of, summary
from benchmarks.night.faults import CALM, HELL, Fault, FaultKind, Targets, draw_faults
from benchmarks.night.night import EXCLUDED_STEPS, Night, NightResult
from benchmarks.night.rules import Rules
from benchmarks.night.scratch import simulate
from benchmarks.night.world import Script, World
from monitoring.health import grade_changes, grading
from scraping import journal
from scraping.recovery import breakers
from scraping.scheduler import due

ALL_SOURCES = (0, 1, 2)
CHECK_SECONDS = 5.0
# Requests hang, and the workers that wait for them are killed.
KILLED = (
    *(Fault(FaultKind.HANGS, 15.0, 21.0, target=number) for number in ALL_SOURCES),
    *(Fault(FaultKind.WORKER_KILLED, 20.0, 25.0, target=number) for number in (0, 1)),
)


@pytest.fixture(autouse=True)
def no_memory_of_other_nights(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> None:
    """Clears the state that the scheduler keeps in memory between two ticks."""
    monkeypatch.setattr(grade_changes, "_memory", None)


def night_of(seconds: float, *, given: tuple[Fault, ...] = (), matches: int = 3, seed: int = 1) -> Night:
    faults = HELL if given else CALM
    return Night(Script(seed=seed, matches=matches, hours=seconds / 3600, faults=faults, given=given))


def run(seconds: float, *, given: tuple[Fault, ...] = (), matches: int = 3, seed: int = 1) -> NightResult:
    return night_of(seconds, given=given, matches=matches, seed=seed).run()


def run_until(night: Night, is_over: Callable[[Night], bool]) -> NightResult:
    """Runs the night, which ends as soon as `is_over`, at the latest at its own end."""

    def check() -> None:
        if is_over(night):
            night.script = replace(night.script, hours=night.clock.seconds / 3600)

    night._at(CHECK_SECONDS, night._every, CHECK_SECONDS, check)
    return night.run()


def is_healthy(night: Night) -> bool:
    return bool(night.recorder.samples) and night.recorder.samples[-1].grade == "HEALTHY"


def violated(result: NightResult | Rules) -> set[str]:
    return {violation.rule for violation in result.violations}


def reports(night: Night, *wanted: str) -> bool:
    """Returns whether the night reports these rules, as soon as it does."""
    return set(wanted) <= violated(run_until(night, lambda running: set(wanted) <= violated(running.rules)))


class TestNight:
    @pytest.mark.requirement("NFR-007")
    @pytest.mark.requirement("NFR-011")
    def test_calm_night_is_fresh_without_errors_and_alerts(self) -> None:
        result = run(120)
        assert not result.violations, result.document()
        figures = result.figures
        assert figures["fresh_share"] >= 0.99
        assert figures["uptime_share"] >= 0.995
        assert figures["polls"] > 60
        assert figures["errors"] == figures["alerts"] == 0

    @pytest.mark.requirement("NFR-007")
    def test_single_faults_of_our_own_cost_no_uptime(self) -> None:
        """A worker is killed, the scheduler is away, hints are lost: each for ten seconds, one after another."""
        kinds = (FaultKind.WORKER_KILLED, FaultKind.SCHEDULER_LOST, FaultKind.HINTS_LOST)
        result = run(120, given=tuple(Fault(kind, 20.0 + 25 * n, 30.0 + 25 * n) for n, kind in enumerate(kinds)))
        assert not result.violations, result.document()
        assert result.figures["uptime_share"] >= 0.995

    def test_recovers_from_faults_of_every_kind_of_process(self) -> None:
        """Sources are down, workers are killed, hints are lost, the scheduler is away; then the pauses end."""
        given = (
            *KILLED,
            Fault(FaultKind.SCHEDULER_LOST, 30.0, 40.0),
            Fault(FaultKind.HINTS_LOST, 45.0, 55.0),
            *(Fault(FaultKind.OUTAGE, 60.0, 90.0, target=number) for number in ALL_SOURCES),
        )
        result = run_until(night_of(480, given=given), lambda night: night.clock.seconds > 100 and is_healthy(night))
        assert not result.violations, result.document()
        figures = result.figures
        assert figures["rescues"] > 0
        assert figures["errors"] > 0
        assert figures["retries"] > 0
        assert figures["grade"] == "HEALTHY"

    def test_same_seed_is_the_same_night(self) -> None:
        given = tuple(Fault(FaultKind.ERRORS, 5.0, 30.0, target=number, strength=0.3) for number in ALL_SOURCES)
        first = run(45, given=given, seed=7)
        call_command("flush", interactive=False, verbosity=0)
        again = run(45, given=given, seed=7)
        assert first.figures["errors"] > 0
        assert first.document() == again.document()
        assert first.samples == again.samples

    def test_every_excluded_step_is_a_step(self) -> None:
        assert set(EXCLUDED_STEPS) <= {path for path, _ in settings.SCHEDULER_STEPS}


class TestRules:
    """Each test breaks one policy and finds it reported."""

    def test_report_a_source_with_too_many_requests(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(due, "choose", lambda waiting, *_, **__: list(waiting))
        night = Night(Script(seed=1, matches=8, hours=20 / 3600, faults=CALM))
        night.world.sources = [replace(source, max_concurrency=1) for source in night.world.sources]
        night.world.source_by_key = {source.key: source for source in night.world.sources}
        assert reports(night, "concurrency")

    def test_report_a_request_through_an_open_breaker(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(breakers, "guard", lambda *_, **__: None)
        monkeypatch.setattr(breakers, "probe_limits", lambda *_, **__: {})
        given = tuple(Fault(FaultKind.ERRORS, 5.0, 110.0, target=number, strength=0.6) for number in ALL_SOURCES)
        assert reports(night_of(110, given=given, matches=6), "open breaker")

    def test_report_tasks_that_are_not_rescued(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(journal, "rescue", lambda **_: 0)
        assert "invariant I2" in violated(run(130, given=KILLED, matches=2))

    def test_report_a_wrong_grade_and_a_step_that_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(grading, "DEGRADED_FROM_SECONDS", 0.1)
        monkeypatch.setattr(breakers, "evaluate_sources", lambda **_: 1 / 0)
        assert {"grade", "step failed"} <= violated(run(50, matches=4))


class TestFaults:
    def test_are_over_before_the_quiet_time(self) -> None:
        script = Script(seed=3, hours=0.5, faults=HELL)
        faults = World(script).faults.all
        assert {fault.kind for fault in faults} > {FaultKind.OUTAGE}
        assert all(60.0 <= fault.begin < fault.end <= script.faults_over_at for fault in faults)

    def test_calm_night_has_none(self) -> None:
        assert not World(Script(faults=CALM)).faults.all

    def test_hit_existing_targets(self) -> None:
        targets = Targets(sources=2, matches=5, workers=1, over_at=7200.0)
        faults = draw_faults(HELL, targets, random.Random(1))
        assert {fault.target for fault in faults if fault.kind is FaultKind.OUTAGE} <= {0, 1}
        assert {fault.target for fault in faults if fault.kind is FaultKind.WORKER_KILLED} == {0}


class TestBench:
    RESULT = {
        **dict.fromkeys(("hours", "age_p99_s", "fresh_share", "uptime_share", "recovery_p95_s"), 1.0),
        **dict.fromkeys(("matches", "polls", "recoveries", "breakers_opened", "source_breakers_opened", "pauses"), 2),
        **dict.fromkeys(("alerts", "errors", "deaths", "rescues"), 3),
        "grade": "HEALTHY",
        "violations": [],
    }

    def test_a_seed_always_means_the_same_night(self) -> None:
        assert plan_of(5) == plan_of(5)
        assert (plan_of(2).faults, plan_of(3).faults) == (CALM, HELL)

    def test_runs_a_night_in_a_process_of_its_own(self) -> None:
        document = simulate({"seed": 1, "matches": 2, "hours": 0.01, "faults": CALM})
        assert document["violations"] == []
        assert (document["matches"], document["faults"]) == (2, CALM)

    def test_counts_violations_by_rule_and_names_their_seed(self) -> None:
        violation = {"t": 1.0, "rule": "stale", "detail": "match 1001 is old"}
        calm, hell = {**self.RESULT, "seed": 5, "faults": CALM}, {**self.RESULT, "seed": 6, "faults": HELL}
        found = summary([calm, {**hell, "violations": [violation]}])
        assert (found["seeds"], found["violations"], found["violated_rules"]) == (2, 1, {"stale": 1})
        assert found["problems"] == ["seed 6: stale: match 1001 is old"]
        assert set(found["nights"]) == {CALM, HELL}
