"""The grade machine as a table, and its step."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from monitoring import audit
from monitoring.alerts.registry import raise_alert
from monitoring.health import grade_changes, grading
from monitoring.health.evaluation import Evaluation
from monitoring.health.grade_changes import update_grade
from monitoring.health.grading import AgeStats, GradeState, Recovery, Trouble, grade
from monitoring.models import Alert, AuditOutcome, Grade, GradeChange, Severity
from monitoring.queries import LiveMatch
from monitoring.recovery_outcomes import evaluate_recoveries
from scraping.models import Match, MatchRef, Scraper, TaskState
from tests.factories import NOW
from tests.monitoring.rows import make_task, make_watched, make_worker

H, D, F, R = Grade.HEALTHY, Grade.DEGRADED, Grade.FAILING, Grade.RECOVERING
FRESH = AgeStats(2, 4, 5, 10)
MEDIAN_LATE = AgeStats(60, 80, 90, 10, 6)
P95_LATE = AgeStats(5, 60, 70, 10, 1)
ONE_LOST = AgeStats(2, 4, 120, 100)
BEGUN = Recovery(age_seconds=30, has_succeeded=False)
WORKED = Recovery(age_seconds=30, has_succeeded=True)
FAILED = Recovery(age_seconds=130, has_succeeded=False)
ONE_MORE = Recovery(age_seconds=30, has_succeeded=False, seconds_since_failed=599)
ANOTHER = Recovery(age_seconds=30, has_succeeded=False, seconds_since_failed=600)


def seen(now: datetime) -> GradeState:
    return Evaluation(now).grade


def read_again(now: datetime) -> None:
    Match.objects.update(last_scraper_update=now)
    Scraper.objects.update(last_update_time=now)


@pytest.mark.requirement("SO-5", "SO-9")
@pytest.mark.parametrize(
    ("previous", "calm", "freshness", "stall", "recovery", "expected"),
    [
        pytest.param(H, 0, FRESH, 0, None, H, id="fresh stays healthy"),
        pytest.param(H, 0, AgeStats(), 0, None, H, id="nothing to watch is healthy"),
        pytest.param(H, 0, AgeStats(59.9, 59.9, 59.9, 1), 0, None, H, id="just below the limit"),
        pytest.param(H, 0, MEDIAN_LATE, 0, None, D, id="median at 60 s"),
        pytest.param(H, 0, P95_LATE, 0, None, D, id="p95 at 60 s"),
        pytest.param(H, 0, ONE_LOST, 0, None, F, id="one match at 120 s"),
        pytest.param(H, 0, FRESH, 90, None, F, id="nothing read for 90 s"),
        pytest.param(H, 0, FRESH, 89, None, H, id="nothing read for 89 s"),
        pytest.param(D, 0, ONE_LOST, 0, None, F, id="degraded gets worse"),
        pytest.param(D, 0, FRESH, 0, None, D, id="one calm interval is not enough"),
        pytest.param(D, 1, FRESH, 0, None, H, id="two calm intervals are"),
        pytest.param(D, 1, P95_LATE, 0, None, D, id="a late interval"),
        pytest.param(F, 0, ONE_LOST, 0, None, F, id="failing goes on"),
        pytest.param(F, 0, P95_LATE, 0, None, D, id="partly better"),
        pytest.param(F, 0, FRESH, 0, None, R, id="fresh again after failing"),
        pytest.param(F, 0, ONE_LOST, 0, BEGUN, R, id="a recovery has begun"),
        pytest.param(R, 0, ONE_LOST, 0, BEGUN, R, id="a recovery goes on"),
        pytest.param(F, 0, ONE_LOST, 0, ONE_MORE, F, id="one more, just after one failed"),
        pytest.param(F, 0, ONE_LOST, 0, ANOTHER, R, id="another one, ten minutes later"),
        pytest.param(R, 0, ONE_LOST, 0, FAILED, F, id="a recovery failed"),
        pytest.param(R, 0, P95_LATE, 0, BEGUN, R, id="recovering, nothing read yet"),
        pytest.param(R, 0, P95_LATE, 0, WORKED, D, id="recovering, still late"),
        pytest.param(R, 0, FRESH, 0, WORKED, H, id="recovered"),
    ],
)
def test_state_machine(  # noqa: PLR0917 one argument a column of the table
    previous: Grade, calm: int, freshness: AgeStats, stall: float, recovery: Recovery | None, expected: Grade
) -> None:
    after = grade(GradeState(previous, calm), freshness, stall, recovery)
    assert after.grade is expected
    assert after.grade is H or after.grade is previous or after.reason


# The next grade for each grade and freshness (data fresh, late, or a match lost), after one calm interval.
AFTER = {
    # recovery: none, begun, worked, failed
    (H, "fresh"): (H, H, H, H),
    (H, "late"): (D, D, D, D),
    (H, "lost"): (F, F, F, F),
    (D, "fresh"): (H, H, H, H),
    (D, "late"): (D, D, D, D),
    (D, "lost"): (F, F, F, F),
    (F, "fresh"): (R, R, R, R),
    (F, "late"): (D, D, D, D),
    (F, "lost"): (F, R, R, F),
    (R, "fresh"): (H, R, H, R),
    (R, "late"): (D, R, D, R),
    (R, "lost"): (F, R, R, F),
}


@pytest.mark.requirement("SO-9")
@pytest.mark.parametrize(
    ("previous", "seen", "recovery", "expected"),
    [
        pytest.param(previous, seen, recovery, after, id=f"{previous.value} {seen} {name}")
        for (previous, seen), row in AFTER.items()
        for (name, recovery), after in zip(
            [("none", None), ("begun", BEGUN), ("worked", WORKED), ("failed", FAILED)], row, strict=True
        )
    ],
)
def test_every_pair(previous: Grade, seen: str, recovery: Recovery | None, expected: Grade) -> None:
    freshness = {"fresh": FRESH, "late": P95_LATE, "lost": ONE_LOST}[seen]
    assert grade(GradeState(previous, 1), freshness, 0, recovery).grade is expected
    if seen == "lost":
        assert grade(GradeState(previous, 1), FRESH, 90, recovery).grade is expected, "a stall counts as much"


def test_a_recovery_ends_when_no_match_is_live() -> None:
    assert grade(GradeState(R), AgeStats(), 0, BEGUN).grade is H


def test_a_late_interval_resets_the_count() -> None:
    standing = GradeState(D)
    for freshness in (FRESH, P95_LATE, FRESH):
        standing = grade(standing, freshness, 0)
    assert standing == GradeState(D, 1, "data is fresh again")


def test_freshness_of_ages() -> None:
    matches = [LiveMatch(number, f"Match {number}", age) for number, age in enumerate((4.0, 1.0, 3.0, 2.0))]
    assert AgeStats.of(matches) == AgeStats(2.0, 4.0, 4.0, 4, 0, matches[0])
    assert AgeStats.of([LiveMatch(1, "A", 60.0), LiveMatch(2, "B", 1.0)]).late == 1
    assert AgeStats.of([]) == AgeStats()


@pytest.mark.requirement("SO-9")
def test_reasons_say_how_things_are_now() -> None:
    old, fresh = AgeStats.of([LiveMatch(7, "crex_13KM", 127.0)]), AgeStats.of([LiveMatch(7, "crex_13KM", 1.0)])
    failing = grade(GradeState(H), old, 0)
    assert failing == GradeState(F, 0, "crex_13KM is 127 s old")
    assert grade(GradeState(R, 1, "data is fresh again"), old, 0) == failing
    begun = grade(failing, old, 0, BEGUN)
    assert begun == GradeState(R, 0, "recovery is under way: crex_13KM is 127 s old")
    assert grade(begun, fresh, 0, BEGUN).reason == "recovery is under way: nothing was read since"
    assert grade(GradeState(D, 0, "1 of 1 live match is 60 s old"), fresh, 0).reason == "data is fresh again"


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [(Trouble(failing="no worker is alive"), F), (Trouble(degraded="1 live match is paused"), D), (Trouble(), H)],
)
def test_other_trouble_counts_as_old_data_does(trouble: Trouble, expected: Grade) -> None:
    state = grade(GradeState(H), FRESH, 0, trouble=trouble)
    assert state.grade is expected
    assert state.reason in (trouble.failing or trouble.degraded)


@pytest.fixture
def worker() -> None:
    """At work at all times of a test."""
    make_worker(now=NOW + timedelta(days=1))


@pytest.mark.django_db
@pytest.mark.both
@pytest.mark.usefixtures("worker")
class TestStep:
    def test_writes_a_change_once_and_alerts(self) -> None:
        match, _, _ = make_watched(now=NOW, age=200)
        assert update_grade(NOW) == 1
        assert update_grade(NOW + timedelta(seconds=15)) == 0
        change = GradeChange.objects.get()
        expected = (H, F, f"{match.key} is 200 s old", match)
        assert (change.from_grade, change.to_grade, change.reason, change.match) == expected
        alert = Alert.objects.get(key="grade")
        assert (alert.severity, alert.summary) == ("critical", f"The system is FAILING: {match.key} is 215 s old")

    @pytest.mark.requirement("SO-9")
    def test_every_change_names_the_match_that_caused_it(self) -> None:
        match, ref, _ = make_watched(now=NOW, age=200)
        update_grade(NOW)
        for seconds in (15, 30, 45):
            at = NOW + timedelta(seconds=seconds)
            read_again(at)
            make_watched(now=at, age=3)
            make_task(ref, now=at, state=TaskState.SUCCESS)
            update_grade(at)
        changes = GradeChange.objects.order_by("pk").values_list("to_grade", "match", "reason")
        assert list(changes) == [
            (F, match.pk, f"{ref.key} is 200 s old"),
            (R, match.pk, f"data is fresh again ({ref.key})"),
            (H, match.pk, f"data is fresh ({ref.key})"),
        ]

    def test_a_critical_alert_is_never_below_a_healthy_grade(self) -> None:
        match, _, _ = make_watched(now=NOW)
        summary = "The page of A vs B has changed: no score at https://crex.example"
        raise_alert("layout:x", Severity.CRITICAL, summary, {"match_id": match.pk}, NOW)
        assert seen(NOW) == GradeState(D, 0, f"The page of {match.key} has changed")
        assert update_grade(NOW) == 1
        change = GradeChange.objects.get()
        assert (change.to_grade, change.match) == (D, match)

    def test_the_alert_of_a_silent_match_counts_no_more_when_it_was_read(self) -> None:
        match, _, _ = make_watched(now=NOW, age=1)
        raise_alert(f"stale:{match.pk}", Severity.CRITICAL, "old", {"match_id": match.pk, "silent_seconds": 310}, NOW)
        assert Evaluation(NOW).alerts == []
        assert seen(NOW).grade is H

    def test_returns_to_healthy_and_closes_the_alert(self) -> None:
        _, ref, _ = make_watched(now=NOW, age=200)
        update_grade(NOW)
        later = NOW + timedelta(seconds=15)
        read_again(later)
        make_task(ref, now=later, state=TaskState.SUCCESS)
        update_grade(later)
        update_grade(later + timedelta(seconds=15))
        assert list(GradeChange.objects.order_by("at").values_list("to_grade", flat=True)) == [F, R, H]
        assert Alert.objects.get(key="grade").closed_at is not None

    def test_a_clock_that_was_set_back_hides_no_change(self) -> None:
        make_watched(now=NOW, age=70)
        GradeChange.objects.create(from_grade=H, to_grade=F, at=NOW + timedelta(hours=1), reason="by the old clock")
        assert [update_grade(NOW), update_grade(NOW + timedelta(seconds=15))] == [1, 0]
        assert seen(NOW).grade is grading.stored_grade().grade is D

    def test_a_reader_sees_an_outage_that_no_scheduler_has_written(self) -> None:
        make_watched(now=NOW, age=200)
        assert seen(NOW).grade is F
        assert not GradeChange.objects.exists()

    def test_the_age_of_a_paused_match_does_not_count_but_its_pause_does(self) -> None:
        paused = {"lifecycle": "PAUSED", "pause_until": NOW + timedelta(minutes=5)}
        match, _, _ = make_watched(now=NOW, last_scraper_update=NOW, **paused)
        Match.objects.update(last_scraper_update=NOW - timedelta(seconds=900))
        assert seen(NOW) == GradeState(D, 0, f"1 live match is paused: {match.key}")

    @pytest.mark.requirement("SO-6", "BX-11")
    @pytest.mark.parametrize(
        ("age", "seconds", "outcome"),
        [(1.0, 5, "success"), (200.0, 60, "pending"), (200.0, 121, "failed")],
        ids=["healthy", "undecided", "too late"],
    )
    def test_recoveries_are_evaluated_by_the_grade_they_led_to(self, age: float, seconds: int, outcome: str) -> None:
        entry = audit.record(
            actor="worker",
            action_type=audit.BROWSER_RECYCLE,
            trigger_condition="browser closed",
            outcome=AuditOutcome.PENDING,
            now=NOW - timedelta(seconds=seconds),
        )
        make_watched(now=NOW, age=age)
        update_grade(NOW)
        evaluate_recoveries(NOW)
        entry.refresh_from_db()
        assert entry.outcome == outcome

    @pytest.mark.requirement("SO-9")
    def test_degraded_ends_after_two_calm_intervals(self) -> None:
        _, ref, _ = make_watched(now=NOW, age=70)
        assert update_grade(NOW) == 1
        changed = []
        for seconds in (15, 30, 45):
            at = NOW + timedelta(seconds=seconds)
            read_again(at)
            make_task(ref, now=at, state=TaskState.SUCCESS)
            changed.append(update_grade(at))
        assert changed == [0, 1, 0]

    def test_a_new_leader_counts_calm_intervals_from_zero(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calm_since_degraded(at=15)
        monkeypatch.setattr(grade_changes, "_memory", None)  # the state of a process that has just begun to lead
        assert [self.calm_since_degraded(at=30), self.calm_since_degraded(at=45)] == [0, 1]

    def test_old_intervals_of_a_leader_do_not_count(self) -> None:
        self.calm_since_degraded(at=15)
        assert [self.calm_since_degraded(at=900), self.calm_since_degraded(at=915)] == [0, 1]

    @staticmethod
    def calm_since_degraded(*, at: float) -> int:
        if not Match.objects.exists():
            make_watched(now=NOW, age=70)
            update_grade(NOW)
        now = NOW + timedelta(seconds=at)
        read_again(now)
        make_task(MatchRef.objects.get(), now=now, state=TaskState.SUCCESS)
        return update_grade(now)

    def test_of_two_leaders_one_writes_a_change(self, monkeypatch: pytest.MonkeyPatch) -> None:
        make_watched(now=NOW, age=200)
        assert update_grade(NOW) == 1
        reads = iter([GradeState(H), grading.stored_grade()])  # the first one before the other leader wrote
        monkeypatch.setattr(grading, "stored_grade", lambda: next(reads))
        assert update_grade(NOW) == 0
        assert GradeChange.objects.count() == 1

    def test_a_reader_sees_that_a_recovery_failed(self) -> None:
        """Also if the scheduler has died; only a scheduler ends an outage."""
        make_watched(now=NOW, age=200)
        GradeChange.objects.create(from_grade=F, to_grade=R, at=NOW, reason="recovery is under way")
        assert seen(NOW).grade is F
        read_again(NOW)
        assert seen(NOW).grade is R
