"""What the pool tells Prometheus. Of this process alone: every process has a pool of its own."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

# A healthy pool lends within a millisecond; 0.1 s is the most that an average may be, 30 s the end of patience.
WAIT = Histogram(
    "db_pool_wait_seconds",
    "Time until a caller had a database connection, or was refused one.",
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 10, 30),
)
CONNECTIONS = Gauge("db_pool_connections", "Database connections of this process, in use and idle.", ["state"])
LOST = Counter("db_pool_lost", "Connections that were never given back.")
