"""Jobs on the command line: start a round or a list of URLs, show progress."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import close_old_connections
from django.utils import timezone

from scraping import jobs
from scraping.models import JobKind, ScrapeJob
from victoryline.lib.operators import rehearsal

REQUESTED_BY = "command line"
REFRESH_SECONDS = 0.5
ENDED = (jobs.JobState.COMPLETE, jobs.JobState.INCOMPLETE, jobs.JobState.FAILED)
COUNT_LABELS = {jobs.Standing.PENDING: "waiting", jobs.Standing.FAILED: "to be retried"}


class Command(BaseCommand):
    help = (
        "Start and show jobs. Examples: job round sofascore tournament=325 season=87678 round=12 --watch; "
        "job urls URL ...; job show 7"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        show = verbs.add_parser("show", help="Show a job: expected, done, missing and why.")
        show.add_argument("job_id", type=int, metavar="JOB")
        start_round = verbs.add_parser("round", help="Read all matches of a round. An open round is not started twice.")
        start_round.add_argument("source", help="The key of the source, such as sofascore.")
        start_round.add_argument("round", nargs="+", metavar="NAME=NUMBER", help="The round's name at this source.")
        start_round.add_argument("--matches", type=int, help="Number of matches; a list with another one is rejected.")
        urls = verbs.add_parser("urls", help="Read matches by URL.")
        urls.add_argument("urls", nargs="+", metavar="URL", help="A match page.")
        for start in (start_round, urls):
            start.add_argument("--dry-run", action="store_true", help="Check the request; start nothing.")
            start.add_argument("--key", default="", help="Idempotency key: the same key is always the same job.")
        for shown in (show, start_round, urls):
            shown.add_argument("--json", action="store_true", help="One JSON object instead of lines.")
            shown.add_argument("--watch", action="store_true", help="Show the progress until the job has ended.")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        getattr(self, f"_{verb}")(**options)

    def _round(self, *, source: str, round: list[str], matches: int | None, **options: Any) -> None:
        if matches is not None and matches < 1:
            raise CommandError(f"--matches is {matches}; it must be 1 or more")
        self._start(options, jobs.start_round, source_key=source, asked=_numbers(round), matches=matches)

    def _urls(self, *, urls: list[str], **options: Any) -> None:
        self._start(options, jobs.start_urls, urls=urls)

    def _start(self, options: dict[str, Any], start: Any, **asked: Any) -> None:
        call = {"requested_by": REQUESTED_BY, "idempotency_key": options["key"], "now": timezone.now()}
        try:
            with rehearsal(is_dry_run=options["dry_run"]):
                started = start(**asked, **call)
        except jobs.KeyReused as refusal:
            raise CommandError(str(refusal)) from refusal
        except jobs.Refused as refusal:
            reasons = "\n".join(f"  {reason}" for reason in refusal.reasons)
            raise CommandError(f"Nothing was started.\n{reasons}") from refusal
        if options["dry_run"]:
            self.stdout.write(f"Would start: {started.job.name}." if started.is_new else "It is open already.")
            return
        known = "" if started.is_new else " It existed already; nothing new was started."
        known += f" It begins when there is memory: {started.shortage}." if started.shortage else ""
        self.stdout.write(f"Job {started.job.pk}: {started.job.name}.{known}")
        self._show(job_id=started.job.pk, **options)

    def _show(self, *, job_id: int, watch: bool, **options: Any) -> None:
        view = self._watched(job_id) if watch else _view(job_id)
        self.stdout.write(json.dumps(_document(view)) if options["json"] else "\n".join(_lines(view)))
        if watch and view.state is not jobs.JobState.COMPLETE:
            raise CommandError(
                f"Job {job_id} ended {view.state.value}. All data that was read is stored. When the cause is fixed: "
                f"manage.py task retry --job {job_id}"
            )

    def _watched(self, job_id: int) -> jobs.JobView:
        shown = ""
        while True:
            view = _view(job_id)
            line = progress_line(view)
            if line != shown:
                self.stdout.write(line)
                self.stdout.flush()
                shown = line
            if view.job.finished_at is not None or view.state in ENDED:
                return view
            close_old_connections()
            time.sleep(REFRESH_SECONDS)


def progress_line(view: jobs.JobView) -> str:
    if view.state in (jobs.JobState.DISCOVERING, jobs.JobState.FAILED):
        state = "listing its matches" if view.state is jobs.JobState.DISCOVERING else "its matches are unknown"
        return f"{state}: {view.problem}" if view.problem else state
    counted = ", ".join(
        f"{view.counts[one]} {COUNT_LABELS.get(one, one.value.replace('_', ' '))}"
        for one in jobs.Standing
        if view.counts[one]
    )
    return f"{view.has_all} of {view.expected}: {counted}"


def _view(job_id: int) -> jobs.JobView:
    job = ScrapeJob.objects.exclude(kind=JobKind.WATCH).select_related("source").filter(pk=job_id).first()
    if job is None:
        raise CommandError(f"There is no job {job_id}. The admin lists them.")
    return jobs.view(job)


def _lines(view: jobs.JobView) -> list[str]:
    job = view.job
    ended = f", ended {job.finished_at:%Y-%m-%d %H:%M:%S} UTC" if job.finished_at else ""
    lines = [
        f"Job {job.pk} ({view.state.value}): {job.name}",
        f"requested by {job.requested_by}, started {job.created_at:%Y-%m-%d %H:%M:%S} UTC{ended}",
        progress_line(view),
    ]
    if view.missing:
        lines.append("missing:")
        lines += [
            f"  {one.ref.key}  {one.standing.value:<9}  {one.ref.match}{f': {one.reason}' if one.reason else ''}"
            for one in view.missing
        ]
    return lines


def _document(view: jobs.JobView) -> dict[str, Any]:
    missing = [{"match": one.ref.key, "state": one.standing.value, "reason": one.reason} for one in view.missing]
    counts = {one.value: number for one, number in view.counts.items()}
    return {"job": view.job.pk, "state": view.state.value, "expected": view.expected, **counts, "missing": missing}


def _numbers(pairs: list[str]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for pair in pairs:
        name, _, number = pair.partition("=")
        if not (name and number.isascii() and number.isdigit()):
            raise CommandError(f"Nothing was started. {pair!r} is not a name and a number, such as round=12")
        numbers[name] = int(number[:20])
    return numbers
