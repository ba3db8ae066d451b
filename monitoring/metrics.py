"""Where metrics are served: on the web at /metrics, and by every worker and scheduler on a port of its own."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from prometheus_client import REGISTRY, CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from monitoring.collector import JournalCollector
from victoryline.configuration import Config

logger = logging.getLogger(__name__)


class _ProcessMetrics(Collector):
    """What this process knows of itself: requests, Python, the database driver (django_prometheus registers there)."""

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        yield from REGISTRY.collect()


def registry(*, closes_connections: bool = False) -> CollectorRegistry:
    both = CollectorRegistry(auto_describe=False)
    both.register(JournalCollector(closes_connections=closes_connections))
    both.register(_ProcessMetrics())
    return both


_web = registry()


def render() -> bytes:
    return generate_latest(_web)


def start_worker_metrics(config: Config) -> bool:
    """False when metrics are off, or when the port is taken: a worker that works is worth more than its metrics."""
    if not config.enable_prometheus_metrics:
        return False
    try:
        start_http_server(config.prometheus_port, config.metrics_bind, registry(closes_connections=True))
    except OSError as error:
        logger.warning(
            "Metrics are not served: %s:%s is not free (%s). Set PROMETHEUS_PORT to another port.",
            config.metrics_bind,
            config.prometheus_port,
            error.strerror,
            extra={"action": "metrics_port_taken", "port": config.prometheus_port},
        )
        return False
    logger.info(
        "Metrics on http://%s:%s/metrics", config.metrics_bind, config.prometheus_port, extra={"action": "metrics"}
    )
    return True
