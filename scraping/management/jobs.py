"""What the commands about jobs share: how a job is printed, followed, and refused."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from json import dumps

from django.core.management.base import BaseCommand, CommandError
from django.db import close_old_connections

from scraping import jobs
from scraping.models import JobKind, ScrapeJob

REQUESTED_BY = "command line"
LOOK_SECONDS = 0.5
BAR = 30
WORDS = (
    (jobs.Standing.DONE, "done"),
    (jobs.Standing.SKIPPED, "skipped"),
    (jobs.Standing.EXECUTING, "in work"),
    (jobs.Standing.PENDING, "waiting"),
    (jobs.Standing.FAILED, "to be tried again"),
    (jobs.Standing.DEAD, "dead"),
    (jobs.Standing.GIVEN_UP, "given up"),
)


class JobCommand(BaseCommand):
    """A command that ends with a job to show, and with `--watch` when the job has ended."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--watch", action="store_true", help="Stay until it has ended, and show how far it is.")
        parser.add_argument("--json", action="store_true", help="Print the job as one JSON object, as the API has it.")

    def tell_started(self, started: jobs.Started, *, watch: bool, json: bool) -> None:
        if not json:
            known = "" if started.is_new else " It was there already, so nothing new was started."
            self.stdout.write(f"Job {started.job.pk}: {started.job.name}.{known}")
        self.show(started.job.pk, watch=watch, json=json)

    def show(self, job_id: int, *, watch: bool, json: bool) -> None:
        view = self._watched(job_id, quiet=json) if watch else look(job_id)
        self.stdout.write(dumps(jobs.document(view)) if json else "\n".join(lines_of(view)))
        if watch and view.state is not jobs.JobState.COMPLETE:
            raise CommandError(
                f"Job {job_id} ended {view.state.value}. What is there is safe. When the cause is gone: "
                f"manage.py retry_failed --job {job_id}"
            )

    def _watched(self, job_id: int, *, quiet: bool) -> jobs.JobView:
        said = ""
        while True:
            view = look(job_id)
            now = progress_line(view)
            if now != said and not quiet:
                self.stdout.write(now)
                self.stdout.flush()
                said = now
            if view.job.finished_at is not None or view.state in ENDED:
                return view
            close_old_connections()
            time.sleep(LOOK_SECONDS)


ENDED = (jobs.JobState.COMPLETE, jobs.JobState.INCOMPLETE, jobs.JobState.FAILED)


def look(job_id: int) -> jobs.JobView:
    job = ScrapeJob.objects.exclude(kind=JobKind.WATCH).select_related("source").filter(pk=job_id).first()
    if job is None:
        raise CommandError(f"There is no job {job_id}. `manage.py job` lists those that there are.")
    return jobs.view(job)


def refused(refusal: jobs.Refused | jobs.KeyReused) -> CommandError:
    if isinstance(refusal, jobs.KeyReused):
        return CommandError(str(refusal))
    return CommandError("Nothing was started.\n" + "\n".join(f"  {reason}" for reason in refusal.reasons))


def progress_line(view: jobs.JobView) -> str:
    progress = view.progress
    if view.state in (jobs.JobState.DISCOVERING, jobs.JobState.FAILED):
        said = "looking up its matches" if view.state is jobs.JobState.DISCOVERING else "its matches are not known"
        return f"{said}: {view.problem}" if view.problem else said
    filled = round(BAR * progress.percent / 100)
    counted = ", ".join(f"{progress.counts[one]} {word}" for one, word in WORDS if progress.counts[one])
    return f"[{'#' * filled}{'.' * (BAR - filled)}] {progress.has_all} of {progress.expected}: {counted}"


def lines_of(view: jobs.JobView) -> list[str]:
    job = view.job
    ended = f", ended {job.finished_at:%Y-%m-%d %H:%M:%S} UTC" if job.finished_at else ""
    lines = [
        f"Job {job.pk} ({view.state.value}): {job.name}",
        f"asked for by {job.requested_by}, started {job.created_at:%Y-%m-%d %H:%M:%S} UTC{ended}",
        progress_line(view),
    ]
    if view.missing:
        lines.append("missing:")
        lines += [f"  {one.key}  {one.standing.value:<9}  {one.title}{_because(one)}" for one in view.missing]
    return lines


def _because(item: jobs.ItemView) -> str:
    return f": {item.reason}" if item.reason else ""
