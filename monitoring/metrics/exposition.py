"""Serves metrics from memory: every process its own, and the leading scheduler those of the whole system too.

Guards sums against figures that several processes export: what is read from the database has one exporter, and anything
else is counted by the process that did it. For people, and for installations that scrape only the web, a web process
also has a page with everything; Prometheus is configured to read the page of the process (`?scope=process`). Guards the
database and the API against scrapes: the page is rendered by the publisher's thread while it is asked for
(`health.publisher`), and a scrape reads the bytes.
"""

from __future__ import annotations

import logging
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6

from django.conf import settings
from django.db import connections
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, disable_created_metrics, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from monitoring import access
from monitoring.health.evaluation import Evaluation
from monitoring.health.publisher import Published, PublishedDocument, publisher
from monitoring.metrics.families import families, gauge
from monitoring.queries import DatabaseReadError, database_read
from victoryline.configuration import Config
from victoryline.lib import availability

logger = logging.getLogger(__name__)

FRESH_SECONDS = 2.0
MAX_AGE_SECONDS = 4.9  # NFR-016
ENGINE_SECONDS = 1.0
HEADER_LINES = 2  # of a metric: # HELP and # TYPE
OF_THE_SYSTEM, OF_OURS = b"\nscraper_grade{", b"\nvictoryline_database_up "
disable_created_metrics()  # type: ignore[no-untyped-call]  # a third of the counters' lines, and read by no rule


class Stores(Collector):
    """Whether this process reaches the database and Redis."""

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        is_up = not availability.database.is_away()
        yield gauge("victoryline_database_up", "1: the database answers.", [(is_up,)])
        if url := settings.CONFIG.redis_url:
            is_up = not availability.redis(url).is_away()
            yield gauge("victoryline_redis_up", "1: Redis answers, or was not asked yet.", [(is_up,)])


REGISTRY.register(Stores())


class SystemFigures(Collector):
    """The figures of the whole system; none while the database is away."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation

    def collect(self) -> list[Metric]:
        try:
            with database_read():
                return list(families(self._evaluation))
        except DatabaseReadError as error:
            if error.__cause__ is not None:
                logger.warning(
                    "Metrics without the database: %s", error.__cause__, extra={"action": "metrics_store_away"}
                )
            return []


class MetricsPage:
    """The page of this process. `is_leading`: whether it also exports the figures of the whole system."""

    def __init__(self) -> None:
        self.is_leading: Callable[[], bool] = lambda: False

    def build(self, evaluation: Evaluation) -> Published:
        system = generate_latest(SystemFigures(evaluation)) if self.is_leading() else b""
        body = (system + generate_latest(REGISTRY)).replace(b".0\n", b"\n")  # shorter, and the same numbers
        return Published(body, 200, evaluation.now)

    def build_whole(self, evaluation: Evaluation) -> Published:
        """The page of this process, with that of the embedded engine or else the figures of the whole system."""
        own = generate_latest(REGISTRY)
        engine = _engine_page(settings.CONFIG)
        system = b"" if OF_THE_SYSTEM in engine else generate_latest(SystemFigures(evaluation))
        return Published(_joined(own, engine + system).replace(b".0\n", b"\n"), 200, evaluation.now)


def _engine_page(config: Config) -> bytes:
    """Returns the page of the engine of an embedded system; nothing elsewhere, or while the engine is away."""
    if config.database_url:
        return b""
    host = f"[{config.metrics_bind}]" if ":" in config.metrics_bind else config.metrics_bind
    request = urllib.request.Request(f"http://{host}:{config.prometheus_port}/metrics")
    if config.metrics_token:
        request.add_header("Authorization", f"Bearer {config.metrics_token}")
    try:
        with urllib.request.urlopen(request, timeout=ENGINE_SECONDS) as answer:  # noqa: S310 - the same
            body: bytes = answer.read()
    except OSError:  # also an HTTP error
        return b""
    return body if OF_OURS in body else b""  # else another program has the port


def _joined(own: bytes, other: bytes) -> bytes:
    """Joins two pages. A metric that both processes have, such as their memory, is that of `own`."""
    families = {family.split(b" ", 1)[0]: family for family in _families(other)}
    families |= {
        name: family
        for family in _families(own)
        if (name := family.split(b" ", 1)[0]) not in families or family.count(b"\n") > HEADER_LINES
    }
    return b"".join(b"# HELP " + family for family in families.values())


def _families(page: bytes) -> list[bytes]:
    return [family.removesuffix(b"\n") + b"\n" for family in (b"\n" + page).split(b"\n# HELP ")[1:]]


page = MetricsPage()
published = PublishedDocument("", page.build, fresh_seconds=FRESH_SECONDS, max_age_seconds=MAX_AGE_SECONDS)
whole = PublishedDocument("", page.build_whole, fresh_seconds=FRESH_SECONDS, max_age_seconds=MAX_AGE_SECONDS)


class MetricsServer(ThreadingHTTPServer):
    daemon_threads = True


class MetricsRequest(BaseHTTPRequestHandler):
    timeout = 10  # of a client that sends nothing
    server_version, sys_version = "VictoryLine", ""

    def do_GET(self) -> None:
        if not access.may_read_metrics(self.client_address[0], self.headers.get("Authorization", "")):
            self.send_response(401)
            self.send_header("WWW-Authenticate", access.METRICS_CHALLENGE)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        try:
            body = published.get().body
        finally:
            connections.close_all()  # of the first request, which builds the page itself
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE_LATEST)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing: Prometheus asks all the time."""


def start_server(config: Config) -> bool:
    """Serves a worker's or scheduler's metrics.

    Returns False when metrics are off, or when the port is taken: the process runs without metrics then.
    """
    if not config.enable_prometheus_metrics:
        return False
    MetricsServer.address_family = AF_INET6 if ":" in config.metrics_bind else AF_INET
    try:
        server = MetricsServer((config.metrics_bind, config.prometheus_port), MetricsRequest)
    except OSError as error:
        logger.warning(
            "Metrics are not served: %s:%s is not free (%s). Set PROMETHEUS_PORT to another port.",
            config.metrics_bind,
            config.prometheus_port,
            error.strerror,
            extra={"action": "metrics_port_taken", "port": config.prometheus_port},
        )
        return False
    publisher.enable()
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    logger.info(
        "Metrics on http://%s:%s/metrics", config.metrics_bind, config.prometheus_port, extra={"action": "metrics"}
    )
    return True
