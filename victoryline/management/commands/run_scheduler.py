"""The scheduler as a process of its own. Any number may run; one leads, the others stand by."""

from __future__ import annotations

import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from monitoring.metrics import start_worker_metrics
from scraping import identity
from victoryline.broker import install
from victoryline.lib.logs import set_process
from victoryline.scheduling import make_loop


class Command(BaseCommand):
    help = "Run the scheduler: due work, hints, rescue, watchdogs. Start more than one for standby."

    def handle(self, *args: Any, **options: Any) -> None:
        set_process(service="scheduler")
        install(settings.CONFIG.redis_url)
        start_worker_metrics(settings.CONFIG)
        loop = make_loop(settings.CONFIG, holder=identity.new_name())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: loop.stop())
        loop.run()
