"""The scheduler as a process of its own. Any number may run; one leads, the others are on standby."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from monitoring import log_rows
from monitoring.metrics import exposition
from victoryline.engine_process import on_signals, start_scheduler, stop_seconds
from victoryline.lib import availability, identity
from victoryline.lib.hint_broker import install_broker
from victoryline.lib.logs import set_process
from victoryline.lib.watchdog import Watchdog


class Command(BaseCommand):
    help = "Run the scheduler: due work, hints, rescue, watchdogs. Start more than one for standby."

    def handle(self, *args: Any, **options: Any) -> None:
        config = settings.CONFIG
        set_process(service="scheduler")
        log_rows.install()
        install_broker(config.redis_url)
        if exposition.start_server(config):
            availability.database.watch()  # metrics and health checks must not wait for it
        stopping, watchdog = on_signals(), Watchdog()
        stop_scheduler = start_scheduler(config, identity.new_name(), watchdog)
        watchdog.start()
        stopping.wait()
        seconds = stop_seconds(config)
        watchdog.end_within(seconds)
        stop_scheduler(seconds)
