"""DATABASES from the configuration: SQLite in WAL mode by default, PostgreSQL behind a pool when a URL is given."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from victoryline.env import Config


def databases(config: Config) -> dict[str, dict[str, Any]]:
    return {"default": _postgresql(config) if config.database_url else _sqlite(config)}


def _sqlite(config: Config) -> dict[str, Any]:
    # IMMEDIATE takes the write lock when a transaction begins: under many writers DEFERRED fails most of them with
    # "database is locked", because it asks for the lock only after it has read.
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": config.var_dir / "victoryline.sqlite3",
        "OPTIONS": {
            "timeout": 30,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-16000;",
        },
    }


def _postgresql(config: Config) -> dict[str, Any]:
    url = urlsplit(config.database_url)
    return {
        "ENGINE": "dj_db_conn_pool.backends.postgresql",
        "NAME": unquote(url.path.lstrip("/")),
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": url.hostname or "",
        "PORT": str(url.port or ""),
        "OPTIONS": {
            "connect_timeout": 5,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "options": "-c statement_timeout=30000 -c lock_timeout=10000 -c idle_in_transaction_session_timeout=60000",
            **dict(parse_qsl(url.query)),
        },
        "POOL_OPTIONS": {
            "POOL_SIZE": config.db_connection_pool_size,
            "MAX_OVERFLOW": config.db_pool_max - config.db_connection_pool_size,
            "RECYCLE": config.db_pool_lifetime_seconds,
            "TIMEOUT": config.db_connection_timeout_seconds,
            "PRE_PING": True,
        },
    }
