"""The scheduler as a process of its own. Any number may run; one leads, the others are on standby."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from monitoring.alerts.channels import configured
from monitoring.alerts.delivery import DeliveryThreads
from monitoring.metrics.exposition import start_worker_metrics
from victoryline.engine_process import make_loop, on_signals, stall_limits, stop_seconds
from victoryline.lib import availability, identity
from victoryline.lib.hint_broker import install_broker
from victoryline.lib.logs import set_process
from victoryline.lib.watchdog import Sign, Watchdog


class Command(BaseCommand):
    help = "Run the scheduler: due work, hints, rescue, watchdogs. Start more than one for standby."

    def handle(self, *args: Any, **options: Any) -> None:
        config = settings.CONFIG
        set_process(service="scheduler")
        install_broker(config.redis_url)
        if start_worker_metrics(config):
            availability.database.watch()  # metrics and health checks must not wait for it
        loop, watchdog = make_loop(config, holder=identity.new_name()), Watchdog()

        def stop() -> None:
            loop.stop()
            watchdog.end_within(stop_seconds(config))

        on_signals(stop)
        watchdog.watch(Sign(loop.pulse.reads("the scheduler"), stall_limits(config).store_seconds))
        watchdog.start()
        deliveries = DeliveryThreads(configured(config))
        deliveries.start()
        loop.run()
        deliveries.stop()
