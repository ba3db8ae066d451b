"""The policies of scraping, from the configuration: at the start, and again when its file has changed.

A recovery calls `reload` first (US2.2), so that a fresh scraper uses changed settings. An invalid file changes nothing:
the current values stay in use, and the log names the problems.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from scraping.models import Source
from scraping.policies.breaker import BreakerPolicy
from scraping.policies.drift import DriftPolicy
from scraping.policies.interval import Pace
from scraping.policies.retry import RetryPolicy
from scraping.policies.source_breaker import WindowPolicy
from victoryline.configuration import ConfigError
from victoryline.lib.files import WatchedFile
from victoryline.lib.units import MEGABYTE

if TYPE_CHECKING:
    from victoryline.configuration import Config

logger = logging.getLogger(__name__)
SETTLE_SECONDS = 1.0  # since the file was last written

# A source's breaker depends on its window, not on failures in a row, which concern a single match.
SOURCE_BREAKER = BreakerPolicy(failure_threshold=0, timeout_seconds=900.0, success_threshold=3, probes=3)


@dataclass(frozen=True)
class Policies:
    discovery_interval_seconds: float
    max_lifetime_seconds: float
    staleness_threshold_seconds: float
    retry: RetryPolicy
    breaker: BreakerPolicy
    pace: Pace
    lease_seconds: float = 15.0  # for which a worker owns a task without a heartbeat
    max_rescues: int = 3  # workers that may die while running a task before it becomes a dead letter
    pause_after_failures: int = 5  # failed attempts of a match in a row
    pause_seconds: float = 300.0
    memory_soft_limit_bytes: float = float("inf")
    hint_again_seconds: float = 5.0  # after which an unclaimed task is announced again
    poll_group_size: int = 24  # polls that a worker thread runs and commits together
    source_breaker: BreakerPolicy = SOURCE_BREAKER
    window: WindowPolicy = field(default_factory=WindowPolicy)
    drift: DriftPolicy = field(default_factory=DriftPolicy)

    def retry_for(self, source: Source) -> RetryPolicy:
        """Returns the retry policy with the overrides of the source."""
        return replace(
            self.retry,
            max_attempts=source.max_attempts or self.retry.max_attempts,
            base_delay_seconds=source.retry_base_seconds or self.retry.base_delay_seconds,
            jitter_seconds=source.retry_jitter_seconds,
        )


class _Current:
    def __init__(self) -> None:
        self.policies: Policies | None = None
        self.file = WatchedFile(settle_seconds=SETTLE_SECONDS)
        self.lock = threading.Lock()


_current = _Current()


def current() -> Policies:
    if _current.policies is None:
        _current.policies = from_config(settings.CONFIG)
    return _current.policies


def reload() -> bool:
    """Loads the configuration again if its file has changed; returns True if policies changed.

    One stat call if nothing has changed: cheap enough for every recovery and every heartbeat.
    """
    path: Path | None = settings.CONFIG.config_file
    if path is None:
        return False
    with _current.lock:
        if not _current.file.has_changed(path):
            return False
        before = current()
        try:
            after = _current.policies = from_config(settings.LOAD_CONFIG())
        except ConfigError as error:
            logger.error(  # noqa: TRY400 - the problems are the message; a traceback adds nothing
                "%s cannot be used: %s. The current values stay in use. Correct the file, and it is read again",
                path.name,
                "; ".join(error.problems),
                extra={"action": "configuration_refused"},
            )
            return False
    pairs = ((one.name, getattr(before, one.name), getattr(after, one.name)) for one in fields(Policies))
    changes = [f"{name} {old} is now {new}" for name, old, new in pairs if old != new]
    if changes:
        logger.warning("%s was read again: %s", path.name, "; ".join(changes), extra={"action": "configuration_taken"})
    return bool(changes)


def from_config(config: Config) -> Policies:
    return Policies(
        discovery_interval_seconds=config.discovery_interval_seconds,
        max_lifetime_seconds=config.scraper_max_lifetime_hours * 3600.0,
        staleness_threshold_seconds=config.staleness_threshold_seconds,
        retry=RetryPolicy(
            config.retry_max_attempts + 1,  # the setting counts retries
            config.retry_base_delay_seconds,
            config.retry_max_delay_seconds,
        ),
        breaker=BreakerPolicy(
            config.circuit_breaker_threshold,
            config.circuit_breaker_timeout_seconds,
            config.circuit_breaker_success_threshold,
        ),
        pace=Pace(
            config.polling_interval_seconds,
            config.break_interval_seconds,
            is_adaptive=config.enable_adaptive_polling,
            detects_phases=config.enable_match_state_detection,
            error_calm_seconds=config.error_calm_seconds,
            break_after_polls=config.break_after_polls,
            break_after_polls_in_play=config.break_after_polls_in_play,
        ),
        memory_soft_limit_bytes=float(config.memory_soft_limit_mb * MEGABYTE),
        source_breaker=replace(SOURCE_BREAKER, timeout_seconds=config.source_breaker_cooldown_seconds),
    )
