"""The journal and ingest under any order of events: Hypothesis simulates workers, scheduler, operator and crashes.

A simple model (dictionaries) has the expected state; after each step the database must agree. Invariants, by number:
I1 every discovered match has one row; I2 every open task is scheduled or leased; I3 state and data change together;
I4 no commit with an old fence; I5 effects are unique and numbered without holes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.db.models import Model
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from scraping import journal
from scraping.errors import PayloadRejected, ResourceLost, StaleFence, Transient
from scraping.journal import Claim
from scraping.matches import discovery, ingest
from scraping.models import (
    Match,
    MatchEvent,
    MatchRef,
    ScrapeError,
    Scraper,
    ScrapeTask,
    Snapshot,
    Source,
    TaskTransition,
)
from scraping.payloads import DiscoveredMatch, Resource, Sport, Status
from scraping.policies.interval import Pace
from scraping.policies.retry import MAX_UNCHARGED_ATTEMPTS
from scraping.worker import failures
from scraping.worker.engine import Engine
from tests.factories import NOW, make_source
from tests.scraping.builders import LEASE_SECONDS, POLICIES, ball, chasing, engine_with, payload_of

WORKERS = ("w-1", "w-2")
KEYS = ("A1", "B2")
TABLES = (Match, MatchRef, Snapshot, MatchEvent, Scraper, ScrapeTask, TaskTransition, ScrapeError)
JOURNAL = (ScrapeTask, TaskTransition)
LONGEST_RETRY = timedelta(seconds=120)  # a breaker's minute, a backoff, and room


JITTER = Random()


def start_from_nothing() -> None:
    """Resets the state: Hypothesis compares repeated runs, so each must execute the same statements."""
    with transaction.atomic():
        for app in ("scraping", "monitoring"):
            for table in apps.get_app_config(app).get_models():
                table._default_manager.all()._raw_delete("default")
    JITTER.seed(7)


class Crash(BaseException):
    """Simulates the end of the process; not caught by `except Exception`."""


@contextmanager
def crash_at(statement: int, is_after: bool) -> Iterator[None]:
    """Ends the process before or after its n-th SQL statement."""
    seen = 0

    def wrapper(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal seen
        if sql.startswith("BEGIN"):
            return execute(sql, params, many, context)
        seen += 1
        if seen == statement and not is_after:
            raise Crash
        result = execute(sql, params, many, context)
        if seen == statement:
            raise Crash
        return result

    with connection.execute_wrapper(wrapper):
        yield


def everything(tables: Sequence[type[Model]] = TABLES) -> list[list[dict[str, Any]]]:
    return [list(table._default_manager.order_by("pk").values()) for table in tables]


@dataclass
class ModelTask:
    """The expected row of a task."""

    key: str
    state: str = "PENDING"
    run_at: datetime = NOW
    lease_until: datetime = NOW
    fence: int = 0
    attempt: int = 0
    charged: int = 0
    rescues: int = 0
    worker: str = ""

    @property
    def is_open(self) -> bool:
        return self.state in ("PENDING", "EXECUTING")


@dataclass
class ModelMatch:
    """The expected match as a reader sees it."""

    runs: int = 0
    sequence: int = 0
    scrapes: int = 0
    events: dict[str, int] = field(default_factory=dict)  # event id -> runs
    revisions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A reading: more runs, new balls, a ball corrected, retracted, listed again."""

    runs: int
    new_balls: int
    corrects: bool
    retracts: bool
    restores: bool


FOUND = st.builds(Found, st.integers(0, 6), st.integers(0, 2), st.booleans(), st.booleans(), st.booleans())
ERRORS = st.sampled_from(
    (Transient("502"), ResourceLost("the browser died"), PayloadRejected("rubbish"), ValueError("a bug of ours"))
)
CRASH = st.one_of(st.none(), st.tuples(st.sampled_from(range(1, 25)), st.booleans()))
Cut = tuple[int, bool] | None  # the number of the statement, and whether it still runs


class JournalMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        start_from_nothing()
        self.now = NOW
        self.source: Source = make_source()
        self.tasks: dict[int, ModelTask] = {}
        self.matches: dict[str, ModelMatch] = {}
        self.claims: list[Claim] = []
        self.engine: Engine = engine_with(ValueError("never read"))

    # --- rules
    # Few rules with many variants: Hypothesis leaves out half of the rules in each run.

    @initialize()
    def the_first_match_is_being_read(self) -> None:
        self._discover(["A1"], None)
        self.begin("A1", "w-1", None)

    @rule(key=st.sampled_from(KEYS), worker=st.sampled_from(WORKERS), crash=CRASH)
    def begin(self, key: str, worker: str, crash: Cut) -> None:
        """The scheduler finds the match due, a worker takes the task."""
        if key not in self.matches:
            self._discover([key, key], crash)
            return
        is_free = self._open_task_of(key) is None
        assert journal.open_tasks([self._new_task(key)], now=self.now) == int(is_free)
        if is_free:
            self.tasks[ScrapeTask.objects.latest("pk").pk] = ModelTask(key, run_at=self.now)
        self._claim(max(id_ for id_, task in self.tasks.items() if task.key == key), worker, crash)

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), outcome=st.one_of(FOUND, FOUND, ERRORS), crash=CRASH)
    def end(self, data: st.DataObject, outcome: Found | Exception, crash: Cut) -> None:
        """Ends a task with a reading or an error; in time, after a rescue or another claim, or a second time."""
        current = [claim for claim in self.claims if self._is_current(claim)]
        claim = data.draw(st.sampled_from(3 * current + self.claims[-3:]))
        if isinstance(outcome, Found):
            self._end_with(outcome, claim, crash)
        else:
            self._end_with_error(outcome, claim, crash)

    @rule(data=st.data(), worker=st.sampled_from(WORKERS), seconds=st.sampled_from((0.0, 3.0, 61.0)), crash=CRASH)
    def claim_later(self, data: st.DataObject, worker: str, seconds: float, crash: Cut) -> None:
        self.now += timedelta(seconds=seconds)
        waiting = [task_id for task_id, task in self.tasks.items() if task.state == "PENDING"]
        self._claim(data.draw(st.sampled_from(waiting + sorted(self.tasks)[-1:])), worker, crash)

    @rule(silence=st.sampled_from((1.0, 1.0, LEASE_SECONDS + 1)), crash=CRASH)
    def rescue(self, silence: float, crash: Cut) -> None:
        """Each task is rescued as a whole or not at all."""
        self.now += timedelta(seconds=silence)
        expired = {task_id: task for task_id, task in self.tasks.items() if self._is_expired(task)}
        is_done = self._survives(crash, lambda: journal.rescue(max_rescues=POLICIES.max_rescues, now=self.now))
        for task_id, task in expired.items():
            row = ScrapeTask.objects.get(pk=task_id)
            assert not is_done or row.state != "EXECUTING"
            if row.state != "EXECUTING":
                self._note_rescue(task)
                assert row.transitions.filter(from_state="EXECUTING", to_state=row.state, at=self.now).exists()

    @rule(worker=st.sampled_from(WORKERS), is_stopping=st.booleans(), asks_operator=st.booleans())
    def others(self, worker: str, is_stopping: bool, asks_operator: bool) -> None:
        """A heartbeat or a stop of a worker, or an operator who retries dead tasks."""
        if asks_operator:
            self._retry_the_dead()
        elif is_stopping:
            self._stop(worker)
        else:
            self._heartbeat(worker)

    # --- invariants, checked after each rule

    @invariant()
    def the_database_agrees(self) -> None:
        tasks = list(ScrapeTask.objects.all())
        refs = {ref.source_event_id: ref for ref in MatchRef.objects.select_related("match")}
        assert sorted(refs) == sorted(self.matches)
        assert Match.objects.count() == len(self.matches)  # I1
        for task in tasks:
            self._is_scheduled_or_leased(task)
            self._is_as_expected(task)
        done = Counter(task.ref_id for task in tasks if task.state == "SUCCESS")
        for key, ref in refs.items():
            assert ref.match.total_scrapes == done[ref.pk] == self.matches[key].scrapes
            self._shows_what_was_read(ref.match, self.matches[key])
            self._has_effects_once(ref.match, self.matches[key])

    def _is_scheduled_or_leased(self, task: ScrapeTask) -> None:
        """I2."""
        if task.state == "PENDING":
            assert task.run_at <= self.now + LONGEST_RETRY
            assert (task.worker_id, task.lease_until) == ("", None)
        elif task.state == "EXECUTING":
            assert task.lease_until is not None
            assert task.lease_until <= self.now + timedelta(seconds=LEASE_SECONDS)

    def _is_as_expected(self, task: ScrapeTask) -> None:
        """I3, of tasks."""
        expected = self.tasks[task.pk]
        assert (task.state, task.fence, task.attempt) == (expected.state, expected.fence, expected.attempt)
        assert (task.charged_attempts, task.rescues) == (expected.charged, expected.rescues)
        assert task.state != "DEAD" or task.reason

    def _shows_what_was_read(self, match: Match, expected: ModelMatch) -> None:
        """I3, of data."""
        assert match.sequence == expected.sequence
        assert not expected.scrapes or match.payload["innings"][-1]["runs"] == expected.runs

    def _has_effects_once(self, match: Match, expected: ModelMatch) -> None:
        """I5."""
        sequences = match.snapshots.order_by("sequence").values_list("sequence", flat=True)
        assert list(sequences) == list(range(1, expected.sequence + 1))
        revisions: dict[str, list[int]] = {}
        shown: dict[str, int | None] = {}
        for event in match.events.order_by("pk"):
            revisions.setdefault(event.event_id, []).append(event.revision)
            if event.is_current and event.action != "retract":
                shown[event.event_id] = event.runs
        assert shown == expected.events
        assert revisions == {id_: list(range(1, last + 1)) for id_, last in expected.revisions.items()}

    # --- helpers

    def _survives(self, crash: Cut, do: Callable[[], object]) -> bool:
        try:
            with crash_at(*crash) if crash else nullcontext():
                do()
        except Crash:
            return False
        return True

    def _discover(self, found: list[str], crash: Cut) -> None:
        before = everything((Match, MatchRef))
        if self._survives(crash, lambda: self._register(found)):
            for key in found:
                self.matches.setdefault(key, ModelMatch())
        else:
            assert everything((Match, MatchRef)) == before

    def _end_with(self, found: Found, claim: Claim, crash: Cut) -> None:
        before = everything()
        if not self._is_current(claim):  # I4
            with pytest.raises(StaleFence):
                self._finish(claim, found)
            assert everything() == before
        elif self._survives(crash, lambda: self._finish(claim, found)):
            self._note_finish(claim, found)
        else:
            assert everything() == before

    def _end_with_error(self, error: Exception, claim: Claim, crash: Cut) -> None:
        before, is_current = everything(), self._is_current(claim)
        if self._survives(crash if is_current else None, lambda: self._fail(claim, error)) and is_current:
            self._note_failure(claim, error)
        else:
            assert everything() == before

    def _heartbeat(self, worker: str) -> None:
        """Sends a heartbeat of a worker that still holds all tasks it ever claimed."""
        claimed = [claim.task_id for claim in self.claims if claim.worker_id == worker]
        until = self.now + timedelta(seconds=LEASE_SECONDS)
        journal.extend_leases(claimed, worker_id=worker, until=until)
        for task_id in claimed:
            if self.tasks[task_id].state == "EXECUTING" and self.tasks[task_id].worker == worker:
                self.tasks[task_id].lease_until = until

    def _stop(self, worker: str) -> None:
        held = [id_ for id_, task in self.tasks.items() if task.state == "EXECUTING" and task.worker == worker]
        assert journal.release(held, worker_id=worker, now=self.now) == len(held)
        for task_id in held:
            task = self.tasks[task_id]
            task.state, task.run_at, task.worker, task.attempt = "PENDING", self.now, "", task.attempt - 1

    def _retry_the_dead(self) -> None:
        for task_id, task in self.tasks.items():
            if task.state != "DEAD":
                continue
            is_allowed = self._open_task_of(task.key) is None
            outcome = journal.retry(task_ids=[task_id], actor="anna", now=self.now)
            assert (outcome.retried == [task_id]) == is_allowed
            if is_allowed:
                task.state, task.run_at, task.worker = "PENDING", self.now, ""
                task.attempt = task.charged = task.rescues = 0

    def _claim(self, task_id: int, worker: str, crash: Cut) -> None:
        """Claims a task; after a crash it is unchanged, or held by a dead worker until its lease expires."""
        before, is_due = everything(JOURNAL), self._is_due(task_id)
        claims: list[Claim | None] = []

        def claim() -> None:
            claims.append(journal.claim(task_id, worker_id=worker, lease_seconds=LEASE_SECONDS, now=self.now))

        is_done = self._survives(crash, claim)
        is_taken = everything(JOURNAL) != before
        assert is_taken == is_due or not (is_done or is_taken)
        if is_taken:
            self._note_claim(task_id, worker)
        if is_done and claims[0] is not None:
            assert (claims[0].fence, claims[0].attempt) == (self.tasks[task_id].fence, self.tasks[task_id].attempt)
            self.claims.append(claims[0])

    def _register(self, found: list[str]) -> None:
        rows = [
            DiscoveredMatch(
                source_event_id=key, url=f"https://crex.example/{key}", sport=Sport.CRICKET, status=Status.LIVE
            )
            for key in found
        ]
        with transaction.atomic():  # as journal.finishing does
            discovery.register(self.source, rows, now=self.now)

    def _new_task(self, key: str) -> journal.NewTask:
        return journal.NewTask(self.source.pk, self._ref(key).pk, Resource.SCORECARD, 0, run_at=self.now)

    def _ref(self, key: str) -> MatchRef:
        return MatchRef.objects.select_related("source", "match").get(source_event_id=key)

    def _open_task_of(self, key: str) -> ModelTask | None:
        return next((task for task in self.tasks.values() if task.key == key and task.is_open), None)

    def _is_due(self, task_id: int) -> bool:
        return self.tasks[task_id].state == "PENDING" and self.tasks[task_id].run_at <= self.now

    def _is_expired(self, task: ModelTask) -> bool:
        return task.state == "EXECUTING" and task.lease_until < self.now

    def _is_current(self, claim: Claim) -> bool:
        task = self.tasks[claim.task_id]
        return task.state == "EXECUTING" and task.fence == claim.fence

    def _note_claim(self, task_id: int, worker: str) -> None:
        task = self.tasks[task_id]
        task.state, task.worker = "EXECUTING", worker
        task.fence, task.attempt = task.fence + 1, task.attempt + 1
        task.lease_until = self.now + timedelta(seconds=LEASE_SECONDS)

    def _note_rescue(self, task: ModelTask) -> None:
        task.rescues += 1
        task.state, task.run_at = ("DEAD" if task.rescues >= POLICIES.max_rescues else "PENDING"), self.now

    def _events_after(self, claim: Claim, found: Found) -> dict[str, int]:
        """Returns the source's whole list of balls in this reading."""
        expected = self.matches[self.tasks[claim.task_id].key]
        events = dict(expected.events)
        if found.corrects and events:
            events[max(events)] += 1
        if found.retracts and events:
            del events[min(events)]
        if found.restores and (lost := expected.revisions.keys() - expected.events.keys()):
            events[max(lost)] = 1
        for number in range(1, found.new_balls + 1):
            events[f"{len(expected.revisions) + number:04}"] = 1
        return events

    def _finish(self, claim: Claim, found: Found) -> None:
        key = self.tasks[claim.task_id].key
        events = [
            ball(int(id_), id=id_, ordinal=None, runs=runs) for id_, runs in self._events_after(claim, found).items()
        ]
        state = chasing(self.matches[key].runs + found.runs)
        payload = payload_of(self._ref(key), state, at=self.now, events=events, events_are_complete=True)
        with journal.finishing(claim, now=self.now):
            attempt = ingest.Attempt(claim.worker_id, self.now, had_failures=claim.attempt > 1, now=self.now)
            assert claim.ref_id is not None
            ingest.apply(payload, ref_id=claim.ref_id, pace=Pace(), attempt=attempt)

    def _note_finish(self, claim: Claim, found: Found) -> None:
        task = self.tasks[claim.task_id]
        task.state = "SUCCESS"
        match, events = self.matches[task.key], self._events_after(claim, found)
        changed = {id_ for id_ in match.events.keys() | events.keys() if match.events.get(id_) != events.get(id_)}
        if changed or found.runs or not match.scrapes:
            match.sequence += 1
        for id_ in changed:
            match.revisions[id_] = match.revisions.get(id_, 0) + 1
        match.runs, match.events, match.scrapes = match.runs + found.runs, events, match.scrapes + 1

    def _fail(self, claim: Claim, error: Exception) -> None:
        with patch("django.utils.timezone.now", return_value=self.now):
            failures.record(claim, error, engine=self.engine)

    def _note_failure(self, claim: Claim, error: Exception) -> None:
        """Applies the decision table, written independently of the code under test."""
        task = self.tasks[claim.task_id]
        if isinstance(error, ResourceLost):
            is_final = task.attempt - task.charged >= MAX_UNCHARGED_ATTEMPTS
        else:
            task.charged += 1
            allowed = {Transient: POLICIES.retry.max_attempts, PayloadRejected: 2, ValueError: 1}[type(error)]
            is_final = task.charged >= allowed
        task.state, task.worker = ("DEAD", task.worker) if is_final else ("PENDING", "")
        row = ScrapeTask.objects.get(pk=claim.task_id)
        assert is_final or self.now <= row.run_at <= self.now + LONGEST_RETRY
        task.run_at = row.run_at


@pytest.mark.both
@pytest.mark.django_db(transaction=True)
@pytest.mark.requirement("ZT-8", "SO-10")
def test_holds_in_every_order_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "_chance", JITTER)
    run_state_machine_as_test(
        JournalMachine,
        settings=settings(
            max_examples=12,
            stateful_step_count=30,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
