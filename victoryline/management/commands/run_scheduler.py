"""The scheduler as a process of its own. Any number may run; one leads, the others stand by."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from monitoring.alerts.channels import configured
from monitoring.alerts.courier import Couriers
from monitoring.metrics import start_worker_metrics
from scraping.scheduler.loop import SchedulerLoop
from victoryline.broker import install
from victoryline.lib import identity, presence
from victoryline.lib.logs import set_process
from victoryline.lib.watchdog import Sign, Watchdog
from victoryline.process_life import on_signals, patience, stop_seconds
from victoryline.scheduling import make_loop


class Command(BaseCommand):
    help = "Run the scheduler: due work, hints, rescue, watchdogs. Start more than one for standby."

    def handle(self, *args: Any, **options: Any) -> None:
        set_process(service="scheduler")
        install(settings.CONFIG.redis_url)
        if start_worker_metrics(settings.CONFIG):
            presence.database.watch()  # so that metrics, and with them health checks, don't wait for an outage to end
        loop = make_loop(settings.CONFIG, holder=identity.new_name())
        watchdog = Watchdog()
        on_signals(lambda: _stop(loop, watchdog))
        watchdog.watch(Sign(loop.pulse.reads("the scheduler"), patience(settings.CONFIG).store_seconds))
        watchdog.start()
        couriers = Couriers(configured(settings.CONFIG))
        couriers.start()
        loop.run()
        couriers.stop()


def _stop(loop: SchedulerLoop, watchdog: Watchdog) -> None:
    loop.stop()
    watchdog.end_within(stop_seconds(settings.CONFIG))
