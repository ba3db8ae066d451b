"""Reads the database of a running system, SQLite or PostgreSQL, without using the system's own code."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import psycopg2

from tests.servers import PostgresServer


class Database(Protocol):
    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Returns the rows of a SELECT; the values replace %s in the SQL."""
        ...


class SqliteFile:
    def __init__(self, path: Path) -> None:
        self._path = path

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=10)) as connection:
            return connection.execute(sql.replace("%s", "?"), values).fetchall()


class PostgresDatabase:
    def __init__(self, url: str) -> None:
        self._url = url

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(psycopg2.connect(self._url, connect_timeout=5)) as connection, connection.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall()


def new_database(server: PostgresServer, name: str) -> str:
    """Creates an empty database with this name and returns its URL."""
    with closing(psycopg2.connect(server.url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            cursor.execute(f"CREATE DATABASE {name}")
    return server.url.rpartition("/")[0] + f"/{name}"


@dataclass(frozen=True)
class StoredMatch:
    """A match and its reference at one source."""

    ref_id: int
    match_id: int
    site: str
    key: str
    status: str
    sequence: int
    captured_at: float
    payload: dict[str, Any]
    has_gap: bool

    @property
    def name(self) -> tuple[str, str]:
        return self.site, self.key


_MATCHES = """
    SELECT r.id, m.id, s.key, r.source_event_id, m.status, m.sequence, m.last_scraper_update, m.payload,
           CASE WHEN r.events_through < r.events_seen THEN 1 ELSE 0 END
    FROM match_external_refs r
    JOIN matches m ON m.id = r.match_id
    JOIN scraping_source s ON s.id = r.source_id
    ORDER BY r.id
"""


def matches(database: Database) -> list[StoredMatch]:
    return [
        StoredMatch(ref, match, site, key, status, sequence, seconds(at), document(payload), bool(gap))
        for ref, match, site, key, status, sequence, at, payload, gap in database.rows(_MATCHES)
    ]


def seconds(moment: str | datetime | None) -> float:
    """Returns a stored time as unix seconds; 0 for none."""
    if moment is None:
        return 0.0
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def as_stored(database: Database, at: float) -> str | datetime:
    """Returns a time in the form that the database compares."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(database, SqliteFile) else moment


def document(value: str | dict[str, Any]) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(value) if isinstance(value, str) else value
    return loaded
