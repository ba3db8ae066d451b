"""The scheduler as a process of its own. Any number may run; one leads, the others are on standby."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from monitoring.alerts.channels import configured
from monitoring.alerts.delivery import DeliveryThreads
from monitoring.metrics.exposition import start_worker_metrics
from scraping.scheduler.loop import SchedulerLoop
from victoryline.engine_process import make_loop, on_signals, stall_limits, stop_seconds
from victoryline.lib import availability, identity
from victoryline.lib.hint_broker import install_broker
from victoryline.lib.logs import set_process
from victoryline.lib.watchdog import Sign, Watchdog


class Command(BaseCommand):
    help = "Run the scheduler: due work, hints, rescue, watchdogs. Start more than one for standby."

    def handle(self, *args: Any, **options: Any) -> None:
        set_process(service="scheduler")
        install_broker(settings.CONFIG.redis_url)
        if start_worker_metrics(settings.CONFIG):
            availability.database.watch()  # metrics and health checks must not wait for it
        loop = make_loop(settings.CONFIG, holder=identity.new_name())
        watchdog = Watchdog()
        on_signals(lambda: _stop(loop, watchdog))
        watchdog.watch(Sign(loop.pulse.reads("the scheduler"), stall_limits(settings.CONFIG).store_seconds))
        watchdog.start()
        couriers = DeliveryThreads(configured(settings.CONFIG))
        couriers.start()
        loop.run()
        couriers.stop()


def _stop(loop: SchedulerLoop, watchdog: Watchdog) -> None:
    loop.stop()
    watchdog.end_within(stop_seconds(settings.CONFIG))
