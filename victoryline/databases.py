"""DATABASES from the configuration: SQLite in WAL mode by default, PostgreSQL behind a pool when a URL is given."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from victoryline.env import Config
from victoryline.pool.limits import Limits

CONNECT_SECONDS = 5
# Our statements take milliseconds. PostgreSQL compiles those that it expects to take long, which takes a quarter of a
# second each time: the scheduler asks such a question twice a second.
NO_COMPILING = "-c jit=off"


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
        "ENGINE": "victoryline.pool",
        "NAME": unquote(url.path.lstrip("/")),
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": url.hostname or "",
        "PORT": str(url.port or ""),
        "OPTIONS": {
            "connect_timeout": CONNECT_SECONDS,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "options": f"{_server_limits(config)} {NO_COMPILING}",
            **dict(parse_qsl(url.query)),
        },
        "POOL": Limits(
            maximum=config.db_pool_max,
            kept=min(config.db_connection_pool_size, config.db_pool_max),
            minimum=min(config.db_pool_min, config.db_connection_pool_size, config.db_pool_max),
            wait_seconds=config.db_connection_timeout_seconds,
            idle_seconds=config.db_pool_idle_seconds,
            lifetime_seconds=config.db_pool_lifetime_seconds,
        ),
    }


def _server_limits(config: Config) -> str:
    """The server gives up before we do: then it says why, and knows that the statement had no effect."""
    answer_ms = config.db_answer_seconds * 1000
    return (
        f"-c statement_timeout={answer_ms * 3 // 4} -c lock_timeout={answer_ms // 2} "
        "-c idle_in_transaction_session_timeout=60000"
    )
