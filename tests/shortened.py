"""Settings of the systems that fault tests and benchmarks start: the real ones, with other values for some constants.

These constants have no setting, and tests cannot wait as long. The environment has their values under the names below.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from django.apps import AppConfig

from victoryline.lib import crash
from victoryline.settings import *  # noqa: F403
from victoryline.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.shortened.Shortened"]
# Of the policies of scraping; of the part that the group is named after.
POLICIES = {
    "": {"MAX_RESCUES": "max_rescues", "PAUSE_SECONDS": "pause_seconds", "TASK_LEASE_SECONDS": "lease_seconds"},
    "window": {
        "SOURCE_BREAKER_WINDOW_SECONDS": "window_seconds",
        "SOURCE_BREAKER_MIN_CALLS": "min_calls",
        "SOURCE_BREAKER_MIN_SECONDS": "min_bad_seconds",
    },
    "drift": {"DRIFT_RETRY_SECONDS": "retry_seconds"},
}
BROWSER = {"BROWSER_MAX_PAGES": "max_pages", "BROWSER_HUNG_SECONDS": "hung_seconds"}
CONSTANTS = {
    "MIN_FREE_DISK_MB": ("victoryline.lib.files", "MIN_FREE_DISK_MB"),
    "RATE_LIMIT_TOKENS_PER_MINUTE": ("apiauth.api.token_view", "TOKENS_PER_MINUTE"),
    "SCHEDULER_TICK_SECONDS": ("victoryline.engine_process", "SCHEDULER_TICK_SECONDS"),
    "STALL_SECONDS": ("victoryline.engine_process", "STALL_SECONDS"),
    "TOKEN_DEGRADED_SECONDS": ("scraping.worker.upkeep", "TOKEN_DEGRADED_SECONDS"),
}


def given(names: dict[str, str]) -> dict[str, Any]:
    return {field: float(os.environ[name]) for name, field in names.items() if os.environ.get(name)}


class Shortened(AppConfig):
    """The last app, so that everything that it changes is loaded."""

    name = "tests.shortened"

    def ready(self) -> None:
        from scraping.browser import health
        from scraping.configuration import policies

        crash.arm(os.environ.get("CRASH_AT", ""))
        made = policies.from_config

        def from_config(config: Any) -> Any:
            parts = {part: replace(getattr(made(config), part), **given(POLICIES[part])) for part in POLICIES if part}
            return replace(made(config), **parts, **given(POLICIES[""]))

        policies.from_config = from_config
        health.RecyclePolicy = partial(health.RecyclePolicy, **given(BROWSER))  # type: ignore[assignment, misc]
        for name, (module, constant) in CONSTANTS.items():
            if os.environ.get(name):
                kind = type(getattr(import_module(module), constant))
                setattr(import_module(module), constant, kind(float(os.environ[name])))
