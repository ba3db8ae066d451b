"""Ask workers for a fresh browser, and wait until they have it."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from scraping.models import WorkerOrder
from scraping.recovery import worker_commands
from victoryline.lib.operators import name_of

LOOK_SECONDS = 0.5


class Command(BaseCommand):
    help = "Replace the browsers of all workers, or of one, when the visits under way are done. Reads go on meanwhile."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "worker", nargs="?", default="", help="A worker's name, as the console shows it (Health, Workers)."
        )
        parser.add_argument("--reason", default="asked for at the command line")
        parser.add_argument("--by", default="", help="Who asks; written into the audit. Default: the login name.")
        parser.add_argument("--seconds", type=float, default=60.0, help="How long to wait for it.")

    def handle(self, *args: Any, worker: str, reason: str, by: str, seconds: float, **options: Any) -> None:
        asked = worker_commands.recycle(worker, reason=reason, actor=name_of(by), now=timezone.now())
        if not asked.workers:
            others = (
                ", ".join(worker_commands.workers_at_work(timezone.now())) or "none. Start one: manage.py run_worker"
            )
            raise CommandError(f"No worker{f' {worker}' * bool(worker)} is at work. At work: {others}")
        waiting = WorkerOrder.objects.filter(worker_id__in=asked.workers, kind="recycle_browser", done_at__isnull=True)
        open_ids = set(waiting.values_list("pk", flat=True)) | set(asked.orders)
        self.stdout.write(f"Asked {', '.join(asked.workers)}.")
        end = time.monotonic() + seconds
        while open_ids and time.monotonic() < end:
            for order in WorkerOrder.objects.filter(pk__in=open_ids, done_at__isnull=False):
                self.stdout.write(f"{order.worker_id}: {order.outcome}")
                open_ids.discard(order.pk)
            time.sleep(LOOK_SECONDS if open_ids else 0)
        if open_ids:
            raise CommandError(f"{len(open_ids)} not done within {seconds:g} s; they stay asked for. See the audit.")
