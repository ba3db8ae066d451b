"""DATABASES from the configuration: SQLite in WAL mode by default, PostgreSQL behind a pool when a URL is given."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from victoryline.configuration import Config
from victoryline.pool.connections import Limits

CONNECT_SECONDS = 5


def databases(config: Config) -> dict[str, dict[str, Any]]:
    return {"default": _postgresql(config) if config.database_url else _sqlite(config)}


def _sqlite(config: Config) -> dict[str, Any]:
    file = config.var_dir / "victoryline.sqlite3"
    file.touch(mode=0o600)  # whichever command is the first; SQLite gives its other files the same mode
    # IMMEDIATE takes the write lock when a transaction begins: under many writers DEFERRED fails most of them with
    # "database is locked", because it takes the lock only after its first read.
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": file,
        "OPTIONS": {
            "timeout": 30,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-16000;",
        },
    }


def _postgresql(config: Config) -> dict[str, Any]:
    url = urlsplit(config.database_url)
    answer_ms = config.db_answer_seconds * 1000
    server_settings = {
        # Shorter than the client's timeouts: the server reports the reason and undoes the statement.
        "statement_timeout": answer_ms * 3 // 4,
        "lock_timeout": answer_ms // 2,
        "idle_in_transaction_session_timeout": 60_000,
        # Our statements take milliseconds. PostgreSQL's JIT compiles those that it expects to take long, a quarter of a
        # second each time, and the scheduler runs such a query twice a second.
        "jit": "off",
    }
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
            "options": " ".join(f"-c {name}={value}" for name, value in server_settings.items()),
            **dict(parse_qsl(url.query)),
        },
        "POOL": Limits(
            maximum=2 * config.db_connection_pool_size,
            kept=config.db_connection_pool_size,
            minimum=config.db_connection_pool_size // 2,
            wait_seconds=config.db_connection_timeout_seconds,
        ),
    }
