"""The numbers that steer scraping, taken once from the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings

from scraping.models import Source
from scraping.resilience.backoff import RetryPolicy
from scraping.resilience.breaker import BreakerPolicy
from scraping.resilience.budget import BudgetPolicy
from scraping.resilience.drift import DriftPolicy
from scraping.resilience.interval import Pace
from scraping.resilience.window import WindowPolicy

if TYPE_CHECKING:
    from victoryline.env import Config


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


@cache
def current() -> Policies:
    return from_config(settings.CONFIG)


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
