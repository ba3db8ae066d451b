"""I8, I9: breakers are probed again, and ended work leaves nothing behind."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db.models import Count, Exists, F, OuterRef, Q

from monitoring.invariants.journal import waiting_too_long
from monitoring.invariants.rules import CheckContext, rule
from scraping.journal import evidence
from scraping.models import (
    OPEN_STATES,
    POLLED_LIFECYCLES,
    Breaker,
    BreakerState,
    Evidence,
    Forced,
    JobItem,
    MatchLifecycle,
    ScrapeJob,
    ScrapeTask,
    TaskState,
    Worker,
)
from victoryline.lib import identity

CLOSE_BY_HAND = "Is a scheduler running? `manage.py breaker` shows the breaker; close it by hand if the source works."
START_AGAIN = "Start the job again with the same parameters: what is complete is skipped."
STRAY_HOURS = 3
IN_FLIGHT_SECONDS = 10  # a task that meets an open breaker is put back at once; an older one passed it


@rule("I8", "breakers", CLOSE_BY_HAND)
def stuck_breakers(context: CheckContext) -> Iterator[str]:
    """An open breaker is probed when its time is over."""
    # The open time is over, a task waits for it, and no probe is sent
    over = Breaker.objects.filter(state=BreakerState.OPEN, open_until__lt=context.overdue).exclude(
        forced=Forced.OPEN, forced_until__gt=context.now
    )
    tried = ScrapeTask.objects.filter(state__in=OPEN_STATES, ref=OuterRef("ref"))
    of_refs = over.filter(
        ref__is_watched=True,
        ref__match__lifecycle__in=POLLED_LIFECYCLES,
        ref__source__is_enabled=True,
        ref__next_poll_at__lt=context.overdue,
    ).filter(~Exists(tried))
    waiting = ScrapeTask.objects.filter(
        pk__in=waiting_too_long(context).order_by().values("pk"), source=OuterRef("source")
    )
    of_sources = over.filter(source__is_enabled=True).filter(Exists(waiting))
    for name, until in of_refs.union(of_sources).values_list("name", "open_until"):
        yield f"breaker {name} should have let a probe through since {until:%H:%M:%S}"


@rule("I8", "probes", CLOSE_BY_HAND)
def unprobed_breakers(context: CheckContext) -> Iterator[str]:
    """A half-open breaker is probed. Half open, without a probe for longer than the bound, while a task waits."""
    half_open = Breaker.objects.filter(state=BreakerState.HALF_OPEN, last_state_change__lt=context.overdue)
    waiting = ScrapeTask.objects.filter(state=TaskState.PENDING, run_at__lt=context.overdue, source__is_enabled=True)
    free = waiting.exclude(ref__match__lifecycle=MatchLifecycle.PAUSED).exclude(
        ref__breaker__state=BreakerState.OPEN, ref__breaker__open_until__gt=context.now
    )
    for breaker in half_open:
        is_tried = any(datetime.fromisoformat(until) > context.overdue for until in breaker.probes.values())
        own = Q(ref=breaker.ref_id) if breaker.ref_id else Q(source=breaker.source_id)
        if not is_tried and free.filter(own).exists():
            yield f"breaker {breaker.name} is half open since {breaker.last_state_change:%H:%M:%S}, and has no probe"


@rule("I8", "silence", "Keep the worker's log: this must not happen. The data needs no repair.")
def breached_breakers(context: CheckContext) -> Iterator[str]:
    """No request goes through an open breaker but its probes."""
    held = ScrapeTask.objects.filter(
        state=TaskState.EXECUTING, started_at__lt=context.ago(seconds=IN_FLIGHT_SECONDS)
    ).exclude(ref__isnull=True)
    opened = held.filter(
        ref__breaker__state=BreakerState.OPEN,
        ref__breaker__last_state_change__lt=F("started_at"),
        ref__breaker__open_until__gt=F("started_at"),
    ).exclude(ref__breaker__forced=Forced.CLOSED, ref__breaker__forced_until__gt=context.now)
    for task in opened.select_related("ref__breaker"):
        breaker: Breaker = task.ref.breaker  # type: ignore[union-attr]  # tasks without a ref are left out above
        if str(task.pk) not in breaker.probes:
            yield f"task {task.pk} was begun at {task.started_at:%H:%M:%S} through the open breaker {breaker.name}"


@rule("I9", "holders", "The leading scheduler reclaims such tasks: is one running?")
def dead_holders(context: CheckContext) -> Iterator[str]:
    """No task is held by a dead worker."""
    held = ScrapeTask.objects.filter(state=TaskState.EXECUTING, started_at__lt=context.overdue)
    alive = Worker.objects.filter(worker_id=OuterRef("worker_id"), heartbeat_at__gte=context.overdue)
    for pk, holder in held.filter(~Exists(alive)).values_list("pk", "worker_id").order_by("pk"):
        fate = "has ended" if identity.is_gone(holder) else "sends no heartbeat any more"
        yield f"task {pk} is held by worker {holder}, which {fate}"


@rule(
    "I9",
    "evidence",
    "They only take space: `manage.py prune` removes them. Is a scheduler running, which does so by itself?",
)
def stray_evidence(context: CheckContext) -> Iterator[str]:
    """Every file of evidence belongs to a failure."""
    # Files whose row was never committed are deleted later; only files of this machine are checked
    root, old = settings.STORAGE_DIR, context.ago(hours=STRAY_HOURS).timestamp()
    names = {str(path.relative_to(root)) for path in evidence.files() if _is_file_from_before(path, old)}
    for name in sorted(names - set(Evidence.objects.values_list("path", flat=True))):
        yield f"file {name} belongs to no failure"


def _is_file_from_before(path: Path, at: float) -> bool:
    try:
        return path.is_file() and path.stat().st_mtime < at
    except FileNotFoundError:  # deleted meanwhile
        return False


@rule("I9", "job items", START_AGAIN)
def empty_items(context: CheckContext) -> Iterator[str]:
    """Every match that a job expects has a task, an outcome, or a reason."""
    # Retention deletes a task only after its outcome was recorded in the item
    lost = JobItem.objects.filter(task__isnull=True, skipped_because="", outcome="")
    for pk, job_id, ref_id in lost.values_list("pk", "job_id", "ref_id").order_by("pk"):
        yield f"item {pk} of job {job_id} (reference {ref_id}) has neither task, outcome nor a reason to be skipped"


@rule("I9", "expected", START_AGAIN)
def shrunken_jobs(context: CheckContext) -> Iterator[str]:
    """A job expects everything that was submitted."""
    # The job's parameters have the requested number of matches, or the list of addresses
    discovered = ScrapeJob.objects.filter(discovered_at__isnull=False).annotate(expected=Count("items"))
    for pk, asked, expected in discovered.values_list("pk", "parameters", "expected").order_by("pk"):
        wanted = asked.get("matches") or len(asked.get("urls", ()))
        if wanted > expected:
            yield f"job {pk} was submitted for {wanted} matches and expects only {expected}"


@rule("I9", "jobs", "The leading scheduler closes and reopens jobs: is one running?")
def unfinished_jobs(context: CheckContext) -> Iterator[str]:
    """A finished job has no open task."""
    unfinished = JobItem.objects.filter(job=OuterRef("pk"), task__state__in=OPEN_STATES)
    early = ScrapeJob.objects.filter(finished_at__lt=context.overdue).filter(Exists(unfinished))
    for pk in early.values_list("pk", flat=True).order_by("pk"):
        yield f"job {pk} is finished and has open tasks"
