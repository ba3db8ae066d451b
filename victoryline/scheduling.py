"""The scheduler's loop with the steps of all apps: the place where they meet."""

from __future__ import annotations

from django.conf import settings

from scraping.scheduler.loop import SchedulerLoop, load_steps
from victoryline.env import Config


def make_loop(config: Config, *, holder: str) -> SchedulerLoop:
    return SchedulerLoop(
        load_steps(settings.SCHEDULER_STEPS),
        holder=holder,
        tick_seconds=config.scheduler_tick_seconds,
        lease_seconds=config.leader_lease_seconds,
    )
