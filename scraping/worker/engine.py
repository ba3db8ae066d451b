"""State of one worker that its threads share: reader, policies, tasks in progress; and the targets of its tasks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.utils import timezone
from structlog.contextvars import bind_contextvars

from scraping.configuration import policies as configured_policies
from scraping.configuration.policies import Policies
from scraping.errors import NotStored
from scraping.journal import Claim
from scraping.models import MatchLifecycle, MatchRef, ScraperStatus, Source, Stage
from scraping.outage.keeper import OutageKeeper
from scraping.outage.polled_matches import PolledMatches
from scraping.reading.reader import Reader, Target
from scraping.readings import RefInfo, note_source
from scraping.recovery import breakers
from scraping.recovery.breakers.calls import Outcomes
from scraping.sources import adapter_for
from scraping.stats.read_stats import ReadStats
from scraping.stats.traffic import EARLIER, budgets, midnight_after
from scraping.worker.upkeep import DiskGuard

QUIET_POLLS = 12
BUDGET_RECHECK_SECONDS = 60.0  # then a raised traffic budget takes effect
# After a pause, a silence or failed tasks nothing that was cached for the match is used.
UNHEALTHY = (ScraperStatus.STOPPED, ScraperStatus.STALE, ScraperStatus.ERROR)


@dataclass
class HeldTask:
    stage: Stage = Stage.INIT
    since: float = field(default_factory=time.monotonic)
    steps: int = 0  # counted for the watchdog


class Engine:
    """Shared by the task threads and the heartbeat thread of one worker."""

    def __init__(
        self,
        *,
        worker_id: str,
        reader: Reader,
        policies: Policies,
        keeper: OutageKeeper | None = None,
        disk: DiskGuard | None = None,
        read_stats: ReadStats | None = None,
        log_unchanged_every: int = 0,
    ) -> None:
        self.worker_id = worker_id
        self.log_unchanged_every = log_unchanged_every  # see attempt_log
        self.keeper = keeper
        self.matches = keeper.matches if keeper is not None else PolledMatches()
        self.disk = disk
        self.reader = reader
        self.policies = policies
        self._configured = configured_policies.current()
        self.outcomes = Outcomes()
        self.read_stats = read_stats or ReadStats()
        self.traffic = TrafficBudgets()
        self._held: dict[tuple[int, int], HeldTask] = {}  # by task and fence
        self._lock = threading.Lock()

    def reload_policies(self) -> None:
        """Takes over a changed configuration file. Called for new scrapers too."""
        configured_policies.reload()
        if configured_policies.current() is not self._configured:
            self.policies = self._configured = configured_policies.current()

    def shows_unchanged(self, unchanged_polls: int) -> bool:
        """Returns whether the log has a line for this unchanged poll of a match: one of so many."""
        return self.log_unchanged_every > 0 and unchanged_polls % self.log_unchanged_every == 0

    @property
    def takes_work(self) -> bool:
        """False while the database is unreachable or the disk is full: hinted tasks stay in the journal."""
        is_full = self.disk is not None and self.disk.is_short
        return not (is_full or (self.keeper is not None and self.keeper.away.is_set()))

    def lost_store(self, error: Exception) -> None:
        """Reports that the database is unreachable. A payload that it did not accept is spooled."""
        if self.keeper is None:
            return
        if isinstance(error, NotStored):
            self.keeper.not_stored(error.match, error.payload)
        self.keeper.lost(error)

    @contextmanager
    def holding(self, claim: Claim) -> Iterator[None]:
        """Holds the task while the body runs, or until it is released: the heartbeat extends its lease."""
        with self._lock:
            self._held[claim.task_id, claim.fence] = HeldTask()
        try:
            yield
        finally:
            self.release(claim)

    def release(self, claim: Claim) -> None:
        """Ends the holding of a task; idempotent."""
        with self._lock:
            self._held.pop((claim.task_id, claim.fence), None)

    def progress(self, claim: Claim, stage: Stage | None = None) -> None:
        """Sets the stage of a task; without one counts a step within it. Ignored for a task that was released."""
        with self._lock:
            held = self._held.get((claim.task_id, claim.fence))
            if held is not None:
                held.stage = stage or held.stage
                held.steps += 1

    def steps(self) -> dict[str, int]:
        """Returns the progress of each task for the watchdog. Takes no lock: the watchdog must never wait."""
        return {f"task {task_id} (fence {fence})": held.steps for (task_id, fence), held in self._held.copy().items()}

    def stage_of(self, claim: Claim) -> Stage:
        with self._lock:
            held = self._held.get((claim.task_id, claim.fence))
            return held.stage if held is not None else Stage.INIT

    def held_tasks(self, *, longest_seconds: float = float("inf")) -> list[int]:
        """Returns the ids of the tasks in progress, without those that have taken longer than this."""
        oldest = time.monotonic() - longest_seconds
        with self._lock:
            return [task_id for (task_id, _), held in self._held.items() if held.since >= oldest]


class TrafficBudgets:
    """The spent budgets as one worker knows them: loaded by its heartbeat, so that a poll needs no statement."""

    def __init__(self) -> None:
        self._day = EARLIER
        self._spent: frozenset[int] = frozenset()  # ids of sources

    def refresh(self, *, now: datetime) -> None:
        self._day = now.astimezone(UTC).date()
        self._spent = frozenset(pk for pk, budget in budgets(self._day).items() if budget.is_spent)

    def visits_from(self, source_id: int, now: datetime) -> datetime | None:
        """Returns the earliest time of the next visit; None: at any time. Soon, in case the budget is raised.

        Traffic of yesterday does not count, however old the last refresh is.
        """
        if source_id not in self._spent or now.astimezone(UTC).date() != self._day:
            return None
        return min(midnight_after(now), now + timedelta(seconds=BUDGET_RECHECK_SECONDS))


def load_source(claim: Claim, engine: Engine) -> Source:
    """Returns the source of a task. Raises BreakerOpen if its breaker is open."""
    source = Source.objects.select_related("breaker").get(pk=claim.source_id)
    bind_contextvars(source=source.key)
    note_source(source.key)
    breakers.guard(claim.task_id, source, policies=engine.policies, now=timezone.now())
    return source


def load_target(claim: Claim, engine: Engine) -> tuple[MatchRef, Target]:
    """Returns the match of a task and its target. Raises BreakerOpen if a breaker is open."""
    assert claim.ref_id is not None
    ref = MatchRef.objects.select_related("source__breaker", "match", "breaker").get(pk=claim.ref_id)
    return ref, target_of(claim, ref, engine)


def bind_match(ref: MatchRef) -> None:
    """Names the match on every further log line of this attempt."""
    bind_contextvars(match_id=ref.key, source=ref.source.key, source_event_id=ref.source_event_id)


def target_of(claim: Claim, ref: MatchRef, engine: Engine) -> Target:
    bind_match(ref)
    note_source(ref.source.key)
    # The scraper was replaced (see scrapers.restart) or is unhealthy.
    is_unhealthy = ref.match.lifecycle == MatchLifecycle.ACTIVE and ref.match.scraper_status in UNHEALTHY
    is_fresh = is_unhealthy or (bool(ref.read_mode_since) and not ref.read_mode)
    if is_fresh:
        engine.reload_policies()
    breakers.guard(claim.task_id, ref.source, ref, policies=engine.policies, now=timezone.now())
    return Target(
        ref.pk,
        ref.source.site,
        RefInfo(ref.source_event_id, ref.url),
        adapter_for(ref.source.adapter_key),
        is_suspect=claim.charged_attempts > 0,
        is_fresh=is_fresh,
        is_quiet=ref.unchanged_polls >= QUIET_POLLS,
        timeout_factor=claim.timeout_factor,
        visits_from=engine.traffic.visits_from(ref.source_id, timezone.now()),
    )
