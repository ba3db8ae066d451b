"""The flows that pass crash points. Each calls `ready` just before the step that is interrupted."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db.models import Count, F, Q, Sum
from django.utils import timezone

from scraping import jobs, journal
from scraping.configuration import policies
from scraping.errors import Gone, Transient
from scraping.jobs import operations, submissions
from scraping.jobs.submission_schema import SentEvent, SentInnings, SentMatch
from scraping.models import (
    OPEN_STATES,
    Breaker,
    JobItem,
    Match,
    MatchEvent,
    MatchLifecycle,
    MatchRef,
    Priority,
    ScrapeError,
    ScrapeJob,
    Scraper,
    ScrapeTask,
    Snapshot,
    Source,
    Submission,
    SubmissionState,
    TaskState,
    TaskTransition,
)
from scraping.payloads import Resource, Status, Team, Teams
from scraping.policies.retry import RetryPolicy
from scraping.reading.reader import Reader
from scraping.scheduler.other_tasks import open_submission_tasks
from scraping.scheduler.recover import rescue_expired
from scraping.worker.engine import Engine
from scraping.worker.scrape import scrape
from tests.faults.crash.plain_reader import PlainReader
from tests.scraping.builders import ReaderInTurn
from tests.scraping.due_tasks import open_due_tasks
from victoryline.lib import identity

Ready = Callable[[], None]
SOON = RetryPolicy(max_attempts=5, base_delay_seconds=0.01, max_delay_seconds=0.02)


class BrokenReader(ReaderInTurn):
    """Raises the given error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def scorecard(self, *_: Any, **__: Any) -> Any:
        raise self._error


def engine(reader: Reader | None = None, *, retry: RetryPolicy = SOON) -> Engine:
    used = reader or PlainReader(settings.CONFIG.stadium_url)
    return Engine(worker_id=identity.new_name(), reader=used, policies=replace(policies.current(), retry=retry))


def a_ref() -> MatchRef:
    """Returns a live cricket match with new balls at every step of the clock."""
    return MatchRef.objects.filter(source__key="crex", match__status="live").earliest("pk")


def open_task(ref: MatchRef, resource: Resource = Resource.SCORECARD) -> int:
    now = timezone.now()
    journal.open_tasks([journal.NewTask(ref.source_id, ref.pk, resource, Priority.LIVE, run_at=now)], now=now)
    return ScrapeTask.objects.get(ref=ref, resource=resource, state__in=OPEN_STATES).pk


def open_tasks() -> list[int]:
    """Returns at least one task: the next due match gets its task now."""
    if not ScrapeTask.objects.filter(state__in=OPEN_STATES, ref__isnull=False).exists():
        open_task(a_ref())
    return list(ScrapeTask.objects.filter(state__in=OPEN_STATES, ref__isnull=False).values_list("pk", flat=True))


def scorecard(ready: Ready) -> None:
    task, worker = open_task(a_ref()), engine()
    ready()
    scrape([task], worker)


def together(ready: Ready) -> None:
    """Finishes several unchanged polls in one transaction."""
    refs = list(MatchRef.objects.filter(source__key="crex", match__status="live").order_by("pk"))
    worker = engine()
    for _ in range(2):
        scrape([open_task(ref) for ref in refs], worker)
    tasks = [open_task(ref) for ref in refs]
    assert len(tasks) > 1
    ready()
    scrape(tasks, worker)


def gap(ready: Ready) -> None:
    """Fills a gap of more than one page in the ball feed."""
    ref, worker = a_ref(), engine()
    scrape([open_task(ref)], worker)
    ref.refresh_from_db()
    assert ref.has_gap, "the clock was not moved far enough"
    task = open_task(ref, Resource.COMMENTARY)
    ready()
    scrape([task], worker)


def failing(ready: Ready) -> None:
    task = open_task(a_ref())
    worker = engine(BrokenReader(Transient("the line is down")))
    ready()
    scrape([task], worker)


def dying(ready: Ready) -> None:
    task = open_task(a_ref())
    worker = engine(BrokenReader(Transient("the line is down")), retry=replace(SOON, max_attempts=1))
    Source.objects.update(max_attempts=1)
    ready()
    scrape([task], worker)


def gone(ready: Ready) -> None:
    """Reads a match that the source has removed, for the second time."""
    task = open_task(a_ref())
    worker = engine(BrokenReader(Gone("404 Not Found")))
    scrape([task], worker)
    ScrapeTask.objects.filter(pk=task).update(run_at=timezone.now())
    ready()
    scrape([task], worker)


def silent_worker(ready: Ready, *, rescues: int = 0) -> None:
    """Rescues a task of a worker that has ended."""
    task = open_task(a_ref())
    journal.claim(task, worker_id=a_dead_name(), lease_seconds=15, now=timezone.now())
    ScrapeTask.objects.filter(pk=task).update(rescues=rescues)
    ready()
    rescue_expired(timezone.now())


def silent_worker_once_too_often(ready: Ready) -> None:
    """Rescues a task once more than allowed: it becomes dead."""
    silent_worker(ready, rescues=policies.current().max_rescues)


def rescue() -> dict[str, Any]:
    rescue_expired(timezone.now())
    task = ScrapeTask.objects.filter(ref=a_ref(), resource=Resource.SCORECARD).latest("pk")
    return {"task": task.pk, "state": task.state, "reason": task.reason, "charged": task.charged_attempts}


def a_dead_name() -> str:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    own = identity.new_name()
    return own.replace(f"-{os.getpid()}-", f"-{pid}-")


def due(ready: Ready) -> None:
    """Opens the tasks of all due matches, as the scheduler does."""
    Source.objects.update(min_interval_seconds=0)
    MatchRef.objects.update(next_poll_at=timezone.now())
    ready()
    open_due_tasks(timezone.now())


def by_hand(ready: Ready) -> None:
    """Retries dead tasks, as an operator does."""
    dying(lambda: None)
    task = ScrapeTask.objects.filter(state=TaskState.DEAD).latest("pk").pk
    ready()
    journal.retry(task_ids=[task], actor="ann", now=timezone.now())


def bulk(ready: Ready) -> None:
    """Retries the dead tasks that match a filter."""
    dying(lambda: None)
    ids = list(ScrapeTask.objects.filter(state=TaskState.DEAD).values_list("pk", flat=True))
    operation = operations.begin(
        "scraping.scrapetask", "retry", ids, filter_text="", values={}, actor="ann", now=timezone.now()
    )
    ready()
    operations.work(operation.pk, seconds=0)


def discovery(ready: Ready) -> None:
    """Discovers a match that is not stored yet."""
    ref = a_ref()
    ScrapeJob.objects.filter(items__ref__match=ref.match_id).delete()  # they expect this match
    Match.objects.filter(pk=ref.match_id).delete()
    source, now = Source.objects.get(key="crex"), timezone.now()
    new = journal.NewTask(source.pk, None, Resource.DISCOVERY, Priority.IMMINENT, run_at=now)
    journal.open_tasks([new], now=now)
    task = ScrapeTask.objects.get(resource=Resource.DISCOVERY, state__in=OPEN_STATES)
    worker = engine()
    ready()
    scrape([task.pk], worker)


def job(ready: Ready) -> None:
    """Starts a job with the URLs of two matches."""
    urls = list(MatchRef.objects.filter(source__key="crex").values_list("url", flat=True)[:2])
    ready()
    jobs.start_urls(urls=urls, requested_by="ann", now=timezone.now())


def whole(ready: Ready) -> None:
    """Runs a task of a job: state and all events of a match at once."""
    jobs.start_urls(urls=[a_ref().url], requested_by="ann", now=timezone.now())
    task = ScrapeTask.objects.filter(resource=Resource.FULL, state__in=OPEN_STATES).latest("pk")
    worker = engine()
    ready()
    scrape([task.pk], worker)


def submitting(ready: Ready) -> None:
    """Stores a submission."""
    ready()
    submit(timezone.now().isoformat())


def submitted(ready: Ready) -> None:
    """Ingests two waiting submissions with one task."""
    for number in range(2):
        submit(f"{timezone.now().isoformat()} {number}")
    open_submission_tasks(timezone.now())
    task = ScrapeTask.objects.get(resource=Resource.SUBMISSION, state__in=OPEN_STATES)
    worker = engine()
    ready()
    scrape([task.pk], worker)


def submit(key: str) -> None:
    """Sends a submission with one more run and one more ball than the one before."""
    runs, now = Submission.objects.count() + 1, timezone.now()
    body = SentMatch(
        match_id="ken-nep",
        captured_at=now,
        status=Status.LIVE,
        teams=Teams(team_a=Team(name="Kenya"), team_b=Team(name="Nepal")),
        innings=(SentInnings(number=1, team="team_a", runs=runs, wickets=0, overs=f"{runs // 6}.{runs % 6}"),),
        events=(SentEvent(id=f"1-{runs}", kind="runs", runs=1),),
    )
    sender = submissions.Submitter("partner", "Partner")
    submissions.accept([body], sender=sender, key=key, body_hash=key[:64], now=now)


FLOWS: dict[str, Callable[[Ready], None]] = {
    flow.__name__: flow
    for flow in (
        *(
            scorecard,
            together,
            gap,
            failing,
            dying,
            gone,
            silent_worker,
            silent_worker_once_too_often,
            due,
            by_hand,
            bulk,
            discovery,
            job,
            whole,
            submitting,
            submitted,
        ),
    )
}


def recover() -> None:
    """Runs the steps of scheduler and worker, without waiting for the clock, until everything is read and complete."""
    Source.objects.update(max_attempts=None, min_interval_seconds=0)
    worker = engine()
    for source in Source.objects.filter(is_enabled=True, key="crex"):
        now = timezone.now()
        new = journal.NewTask(source.pk, None, Resource.DISCOVERY, Priority.IMMINENT, run_at=now)
        journal.open_tasks([new], now=now)
    for _ in range(6):
        rescue_expired(timezone.now())
        operations.work_off(timezone.now())
        Breaker.objects.update(open_until=timezone.now())
        MatchRef.objects.update(next_poll_at=timezone.now())
        open_due_tasks(timezone.now())
        open_submission_tasks(timezone.now())
        for ref in MatchRef.objects.filter(events_through__lt=F("events_seen")):
            open_task(ref, Resource.COMMENTARY)
        ScrapeTask.objects.filter(state=TaskState.PENDING).update(run_at=timezone.now())
        for task in ScrapeTask.objects.filter(state=TaskState.PENDING).order_by("pk").values_list("pk", flat=True):
            scrape([task], worker)
        if not ScrapeTask.objects.filter(state__in=OPEN_STATES).exists() and not _holes():
            break
    jobs.close_finished(now=timezone.now())


def _holes() -> bool:
    return MatchRef.objects.filter(Q(events_through__lt=F("events_seen")) | Q(captured_at=None)).exists()


def written_rows() -> dict[str, Any]:
    """Returns everything that a step writes, except the claim. It changes only if the step was completed."""
    counted: dict[str, Any] = {
        model.__name__: model._default_manager.count()
        for model in (
            MatchRef,
            Match,
            MatchEvent,
            Snapshot,
            ScrapeError,
            TaskTransition,
            ScrapeTask,
            Scraper,
            ScrapeJob,
            JobItem,
            Submission,
        )
    }
    counted["submitted"] = Submission.objects.exclude(state=SubmissionState.ACCEPTED).count()
    counted |= Match.objects.aggregate(
        sequences=Sum("sequence"),
        scrapes=Sum("total_scrapes"),
        failures=Sum("total_failures"),
        completed=Count("pk", filter=Q(lifecycle=MatchLifecycle.COMPLETED)),
    )
    counted |= ScrapeTask.objects.aggregate(
        rescues=Sum("rescues"),
        charged=Sum("charged_attempts"),
        ended=Count("pk", filter=~Q(state__in=OPEN_STATES)),
        dead=Count("pk", filter=Q(state=TaskState.DEAD)),
    )
    counted |= MatchRef.objects.aggregate(through=Sum("events_through"), seen=Sum("events_seen"))
    counted |= Scraper.objects.aggregate(updates=Sum("total_updates"))
    counted |= Breaker.objects.aggregate(calls=Sum("total_calls"))
    return counted
