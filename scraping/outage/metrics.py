"""The outage in numbers, for whoever looks at this worker's own metrics while the database cannot tell anybody."""

from __future__ import annotations

from typing import Protocol

from prometheus_client import Counter, Gauge


class Spooling(Protocol):
    def __len__(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def disk_bytes(self) -> int: ...


class Keeping(Protocol):
    @property
    def is_away(self) -> bool: ...
    @property
    def spool(self) -> Spooling: ...


outages = Counter("victoryline_store_outages", "Times this worker found the database away.")
_away = Gauge("victoryline_store_away", "1 while this worker cannot reach the database.")
_updates = Gauge("victoryline_spool_updates", "Updates that wait for the database.")
_memory = Gauge("victoryline_spool_memory_bytes", "Memory they take.")
_disk = Gauge("victoryline_spool_disk_bytes", "Disk space they take.")


def watch(keeper: Keeping) -> None:
    """Measured when somebody asks; the worker's latest keeper counts."""
    _away.set_function(lambda: float(keeper.is_away))
    _updates.set_function(lambda: float(len(keeper.spool)))
    _memory.set_function(lambda: float(keeper.spool.memory_bytes))
    _disk.set_function(lambda: float(keeper.spool.disk_bytes))
