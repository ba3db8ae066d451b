"""What one worker has counted, for whoever looks at its own metrics: what no table keeps.

Published by the heartbeat, so that a poll pays nothing for it. What tables keep (bytes and reads by source) is told by
every process from there, and not here once more.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.dispatch import receiver
from prometheus_client import REGISTRY, Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from scraping.signals import read_mode_changed

SHOWN_SECONDS = 600.0  # a match that was not read for so long is another worker's, or over
MOST_MATCHES = 2000

_requests = Counter(
    "scraper_requests", "Requests made, by the browser's resource type or the way of reading.", ["type"]
)
_blocked = Counter("scraper_requests_blocked", "Requests of pages that were not let through.", ["type"])
_changes = Counter(
    "scraper_read_mode_changes", "Matches that are read another way than before.", ["source", "from", "to"]
)
_missing = Counter("integrity_required_missing", "Wanted fields that a source left out.", ["source", "field"])


def publish(
    requests: Mapping[str, int],
    blocked: Mapping[str, int],
    missing: Mapping[tuple[str, str], int],
) -> None:
    for kind, number in requests.items():
        _requests.labels(kind).inc(number)
    for kind, number in blocked.items():
        _blocked.labels(kind).inc(number)
    for (source, field), number in missing.items():
        _missing.labels(source, field).inc(number)


@receiver(read_mode_changed)
def count_change(sender: object, *, source: str, **change: Any) -> None:
    _changes.labels(source, change["from"], change["to"]).inc()


class NullRates(Collector):
    """Of every match that this worker has read lately: how much of what was wanted its latest payload lacked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: OrderedDict[str, tuple[float, float]] = OrderedDict()  # by match: when, and the rate

    def put(self, key: str, rate: float) -> None:
        with self._lock:
            self._latest[key] = time.monotonic(), rate
            self._latest.move_to_end(key)
            if len(self._latest) > MOST_MATCHES:
                self._latest.popitem(last=False)

    def describe(self) -> Iterable[Metric]:
        return [GaugeMetricFamily("integrity_null_rate", "Share of the wanted fields that a match's payload lacks.")]

    def collect(self) -> Iterator[Metric]:
        oldest = time.monotonic() - SHOWN_SECONDS
        with self._lock:
            latest = [(key, rate) for key, (at, rate) in self._latest.items() if at >= oldest]
        rates = GaugeMetricFamily(
            "integrity_null_rate", "Share of the wanted fields that a match's payload lacks.", labels=["match_id"]
        )
        for key, rate in latest:
            rates.add_metric([key], rate)
        yield rates


null_rates = NullRates()
REGISTRY.register(null_rates)
