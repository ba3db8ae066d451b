"""Shows how far a job is."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from scraping import jobs
from scraping.management.jobs import JobCommand, progress_line
from scraping.models import JobKind, ScrapeJob

LISTED = 20


class Command(JobCommand):
    help = "Show a job: what it expects, what is done, what is missing and why. Without a number: the latest jobs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("job_id", nargs="?", type=int, metavar="JOB")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["job_id"] is not None:
            self.show(options["job_id"], watch=options["watch"], json=options["json"])
            return
        latest = ScrapeJob.objects.exclude(kind=JobKind.WATCH).select_related("source").order_by("-pk")[:LISTED]
        for view in jobs.views(latest):
            self.stdout.write(f"{view.job.pk}  {view.state.value:<11}  {view.job.name}  {progress_line(view)}")
        if not latest:
            self.stdout.write("There are no jobs yet. `manage.py scrape_round` or `scrape_urls` starts one.")
