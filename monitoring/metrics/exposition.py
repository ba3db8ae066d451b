"""Serves metrics: on the web at /metrics, and by every worker and scheduler on a port of its own.

All metrics of the work are read from the database when Prometheus asks. Counters inside a process would be wrong: work
is done in workers, requests arrive at the web, and there may be several of each. The price is two dozen queries a
scrape, every 15 seconds. Labels stay bounded: only matches that are not archived.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from django.conf import settings
from django.db import connections
from django.utils import timezone
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from monitoring.health.evaluation import Evaluation
from monitoring.metrics.families import families, gauge
from monitoring.queries import DatabaseReadError, database_read
from victoryline.configuration import Config
from victoryline.lib import availability

logger = logging.getLogger(__name__)


class DatabaseCollector(Collector):
    """`closes_connections`: for prometheus_client's server, which answers every scrape in a new thread."""

    def __init__(self, *, closes_connections: bool = False) -> None:
        self._closes_connections = closes_connections

    def describe(self) -> Iterable[Metric]:
        return []  # without this, registering would query the database

    def collect(self) -> Iterator[Metric]:
        """While the database is away, only the two `up` gauges are exported."""
        found = self._read(Evaluation(timezone.now()))
        yield gauge("victoryline_database_up", "1: the database answers.", [(bool(found),)])
        if url := settings.CONFIG.redis_url:
            is_up = not availability.redis(url).is_away()
            yield gauge("victoryline_redis_up", "1: Redis answers, or was not asked yet.", [(is_up,)])
        yield from found

    def _read(self, evaluation: Evaluation) -> list[Metric]:
        try:
            with database_read():
                return list(families(evaluation))
        except DatabaseReadError as error:
            if error.__cause__ is not None:
                logger.warning(
                    "Metrics without the database: %s", error.__cause__, extra={"action": "metrics_store_away"}
                )
            return []
        finally:
            if self._closes_connections:
                connections.close_all()


def registry(*, closes_connections: bool = False) -> CollectorRegistry:
    """Returns the metrics of the database and of this process (requests, Python, the database driver)."""
    both = CollectorRegistry(auto_describe=False)
    both.register(DatabaseCollector(closes_connections=closes_connections))
    both.register(REGISTRY)
    return both


_web = registry()


def render() -> bytes:
    return generate_latest(_web)


def start_worker_metrics(config: Config) -> bool:
    """Returns False when metrics are off, or when the port is taken: a worker runs without metrics then."""
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
