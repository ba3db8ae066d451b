"""The numbers that steer scraping, from the configuration: at the start, and again when its file has changed.

`reload` is what a recovery begins with (US2.2): a fresh start takes what an operator has changed meanwhile. A file that
cannot be used changes nothing: the numbers in use go on, and the log says what is wrong.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from scraping.models import Source
from scraping.policies.breaker import BreakerPolicy
from scraping.policies.drift import DriftPolicy
from scraping.policies.interval import Pace
from scraping.policies.retry import RetryPolicy
from scraping.policies.retry_budget import BudgetPolicy
from scraping.policies.source_breaker import WindowPolicy
from victoryline.lib.variables import ConfigError

if TYPE_CHECKING:
    from victoryline.env import Config

logger = logging.getLogger(__name__)
MEGABYTE = 1024 * 1024
SETTLED_SECONDS = 1.0  # since the file was written last

# A source's breaker is judged by its window, never by failures in a row: those say something about one match.
SOURCE_BREAKER = BreakerPolicy(failure_threshold=0, timeout_seconds=900.0, success_threshold=3, probes=3)


@dataclass(frozen=True)
class Policies:
    lease_seconds: float
    max_rescues: int
    hint_again_seconds: float
    discovery_interval_seconds: float
    pause_after_failures: int
    pause_seconds: float
    max_lifetime_seconds: float
    staleness_threshold_seconds: float
    archive_after_hours: float
    retry: RetryPolicy
    breaker: BreakerPolicy
    pace: Pace
    memory_soft_limit_bytes: float = float("inf")
    poll_group_size: int = 24
    source_breaker: BreakerPolicy = SOURCE_BREAKER
    window: WindowPolicy = field(default_factory=WindowPolicy)
    budget: BudgetPolicy = field(default_factory=BudgetPolicy)
    drift: DriftPolicy = field(default_factory=DriftPolicy)

    def retry_for(self, source: Source) -> RetryPolicy:
        """A source may have its own patience."""
        return RetryPolicy(
            max_attempts=source.max_attempts or self.retry.max_attempts,
            base_delay_seconds=source.retry_base_seconds or self.retry.base_delay_seconds,
            max_delay_seconds=self.retry.max_delay_seconds,
        )


class _InUse:
    """Of this process: its policies, and the state of the file that they were last taken from."""

    def __init__(self) -> None:
        self.policies: Policies | None = None
        self.stamp: tuple[int, int, int] | None = None
        self.lock = threading.Lock()


_in_use = _InUse()


def current() -> Policies:
    if _in_use.policies is None:
        _in_use.policies = from_config(settings.CONFIG)
    return _in_use.policies


def reload() -> bool:
    """Take the configuration anew if its file has changed; True if the numbers are others now.

    One look at the file where nothing has changed: cheap enough for every recovery and every heartbeat.
    """
    path: Path | None = settings.CONFIG.config_file
    if path is None:
        return False
    with _in_use.lock:
        stamp = _stamp(path)
        if stamp == _in_use.stamp or _may_be_half_written(stamp):
            return False
        _in_use.stamp = stamp
        return _take(path)


def _take(path: Path) -> bool:
    before = current()
    try:
        after = from_config(settings.LOAD_CONFIG())
    except ConfigError as error:
        logger.error(  # noqa: TRY400 - the problems are the message; where they were found helps nobody
            "%s cannot be used: %s. Nothing has changed: the numbers in use go on. Correct the file, and it is taken",
            path.name,
            "; ".join(error.problems),
            extra={"action": "configuration_refused"},
        )
        return False
    changed = [one.name for one in fields(Policies) if getattr(before, one.name) != getattr(after, one.name)]
    if not changed:
        return False
    _in_use.policies = after
    logger.warning(
        "%s was taken anew: %s", path.name, _told(before, after, changed), extra={"action": "configuration_taken"}
    )
    return True


def _told(before: Policies, after: Policies, changed: list[str]) -> str:
    return "; ".join(f"{name} {getattr(before, name)} is now {getattr(after, name)}" for name in changed)


def _stamp(path: Path) -> tuple[int, int, int]:
    """Another inode, time or size: another file. Zeros for one that is gone, so that its loss is told once."""
    try:
        seen = path.stat()
    except OSError:
        return 0, 0, 0
    return seen.st_ino, seen.st_mtime_ns, seen.st_size


def _may_be_half_written(stamp: tuple[int, int, int]) -> bool:
    """Half a file may well be valid, and say less. Whoever asks next takes the whole of it."""
    return 0 <= time.time() - stamp[1] / 1e9 < SETTLED_SECONDS


def from_config(config: Config) -> Policies:
    return Policies(
        lease_seconds=config.task_lease_seconds,
        max_rescues=config.max_rescues,
        hint_again_seconds=config.hint_again_seconds,
        discovery_interval_seconds=config.discovery_interval_seconds,
        pause_after_failures=config.pause_after_failures,
        pause_seconds=config.pause_seconds,
        max_lifetime_seconds=config.scraper_max_lifetime_hours * 3600.0,
        staleness_threshold_seconds=config.staleness_threshold_seconds,
        archive_after_hours=config.archive_after_hours,
        retry=RetryPolicy(config.retry_max_attempts, config.retry_base_delay_seconds, config.retry_max_delay_seconds),
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
        ),
        memory_soft_limit_bytes=float(config.memory_soft_limit_mb * MEGABYTE),
        poll_group_size=config.poll_group_size,
        source_breaker=BreakerPolicy(
            failure_threshold=0,
            timeout_seconds=config.source_breaker_cooldown_seconds,
            success_threshold=config.source_breaker_probes,
            probes=config.source_breaker_probes,
        ),
        window=WindowPolicy(
            config.source_breaker_window_seconds,
            config.source_breaker_min_calls,
            config.source_breaker_bad_percent,
            config.source_breaker_min_seconds,
        ),
        budget=BudgetPolicy(config.retry_budget_percent),
        drift=DriftPolicy(
            drop_points=config.drift_drop_percent,
            failures=config.drift_failures,
            retry_seconds=config.drift_retry_seconds,
        ),
    )
