"""Sessions and proxies in numbers. By source only: a proxy is nobody's label."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

opened = Counter("scraper_sessions", "Sessions that were begun at a source.", ["source", "geo"])
ended = Counter("scraper_sessions_ended", "Sessions that were given up, by why.", ["source", "cause"])
all_quarantined = Counter(
    "scraper_proxies_exhausted", "Times a session had to take a proxy in quarantine, for all of them were.", ["source"]
)
quarantined = Gauge("scraper_proxies_quarantined", "Proxies that a source has turned away lately.", ["source"])
