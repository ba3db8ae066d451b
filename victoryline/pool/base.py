"""The database backend: takes connections from the pool and returns them where Django opens and closes them."""

from __future__ import annotations

import os
import threading
from typing import Any

from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base

from victoryline.pool.connections import CONNECTIONS, Pool

_pools: dict[tuple[object, ...], Pool] = {}
_lock = threading.Lock()


CONNECTIONS.labels("in_use").set_function(lambda: sum(pool.in_use for pool in list(_pools.values())))
CONNECTIONS.labels("idle").set_function(lambda: sum(pool.idle for pool in list(_pools.values())))


class DatabaseWrapper(base.DatabaseWrapper):
    """One per thread; `connection` is psycopg2's own object while it is lent."""

    _taken_from: Pool | None = None

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        limits = self.settings_dict.get("POOL")
        if limits is None or self.alias == NO_DB_ALIAS:
            return super().get_new_connection(conn_params)
        self.isolation_level = base.IsolationLevel.READ_COMMITTED  # type: ignore[attr-defined]  # PostgreSQL's default
        pool = self._pool(conn_params)
        taken = pool.take()
        self._taken_from = pool
        return taken

    def close_pool(self) -> None:
        """Django calls it before a test database is copied or dropped."""
        with _lock:
            pool = _pools.pop(self._key(self.get_connection_params()), None)
        if pool is not None:
            pool.close()

    def _close(self) -> None:
        if self._taken_from is None:
            super()._close()  # type: ignore[misc]  # unknown to the stubs
        elif self.connection is not None:
            # Returned and forgotten at once, also inside a transaction: another thread may get it next.
            pool, taken, self._taken_from, self.connection = self._taken_from, self.connection, None, None
            with self.wrap_database_errors:
                pool.give(taken)

    def _pool(self, conn_params: dict[str, Any]) -> Pool:
        key = self._key(conn_params)
        with _lock:
            if key not in _pools:
                connect = base.DatabaseWrapper(self.settings_dict, self.alias).get_new_connection
                _pools[key] = Pool(lambda: connect(conn_params), self.settings_dict["POOL"])
                _pools[key].start_upkeep()
            return _pools[key]

    def _key(self, conn_params: dict[str, Any]) -> tuple[object, ...]:
        """Processes must not share a connection, nor databases a pool."""
        return os.getpid(), self.alias, *(conn_params.get(name) for name in ("dbname", "user", "host", "port"))
