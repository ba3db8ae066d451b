"""Access-log records: a tuple while it is queued, then a row of AccessLog and a part of its hour's UsageHour.

Conversions (truncation, numbers, dates) happen here, in the writer's thread and not in the request. Plain statements
and not `bulk_create`: a third of the CPU, which is shared with the requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import connection

from apiauth.models import AccessLog, UsageHour
from victoryline.lib.bulk_sql import add_up
from victoryline.lib.redaction import clean, printable

COLUMNS = (
    "consumer_id", "key_prefix", "timestamp", "method", "endpoint", "route", "response_status", "data_age_seconds",
    "data_state", "duration_ms", "request_id",
)  # fmt: skip
SUMS = (
    "requests", "not_modified", "throttled", "refused", "failed", "duration_ms_total", "aged", "age_seconds_total",
)  # fmt: skip
MOST = ("duration_ms_most", "age_seconds_most")
ONE_ROW = f"({', '.join(['%s'] * len(COLUMNS))})"
INSERT = f'INSERT INTO "{AccessLog._meta.db_table}" ({", ".join(COLUMNS)}) VALUES '  # noqa: S608, SLF001  our own names
LONGEST_PATH = 200
LARGEST_MS = 2_147_483_647


class AccessRecord(NamedTuple):
    """Made by the request, of values that exist already. `age` is the header's text."""

    at: float
    consumer: int | None
    key_prefix: str
    method: str
    path: str
    route: str
    status: int
    age: str | None
    state: str
    seconds: float
    request_id: str

    @property
    def age_seconds(self) -> float | None:
        try:
            return None if self.age is None else float(self.age)
        except ValueError:
            return None

    @property
    def duration_ms(self) -> int:
        return min(round(self.seconds * 1000), LARGEST_MS)


def store(batch: Sequence[AccessRecord]) -> None:
    """Writes rows and hourly sums, in the caller's transaction."""
    insert(batch)
    add_up(UsageHour, by=("consumer", "hour", "route"), sums=SUMS, most=MOST, rows=_sums(batch))


def insert(batch: Sequence[AccessRecord]) -> None:
    rows = [_row(record) for record in batch]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # psycopg2's executemany sends one statement a row, and waits for each.
            cursor.execute(INSERT + ", ".join([ONE_ROW] * len(rows)), [value for row in rows for value in row])
        else:
            cursor.executemany(INSERT + ONE_ROW, rows)


def _row(record: AccessRecord) -> tuple[Any, ...]:
    return (
        record.consumer,
        record.key_prefix[:16],
        connection.ops.adapt_datetimefield_value(datetime.fromtimestamp(record.at, UTC)),
        _plain(record.method, 8),
        _address(record.path),
        record.route[:60],
        record.status,
        record.age_seconds,
        record.state[:10],
        record.duration_ms,
        record.request_id,
    )


def _plain(text: str, length: int) -> str:
    """Truncates; replaces unprintable characters, which are rare, by the slower function."""
    cut = text[:length]
    return cut if cut.isascii() and cut.isprintable() else printable(cut, length)


def _address(path: str) -> str:
    """Returns the path without a key or a token that a caller has put into it by mistake."""
    shown = _plain(path, LONGEST_PATH)
    return clean(shown) if "vl_" in path or "eyJ" in path else shown


def _sums(batch: Sequence[AccessRecord]) -> dict[tuple[int, datetime, str], list[float]]:
    """Returns sums by consumer, hour and route, in the order of SUMS and MOST. Strangers have no sums."""
    grouped: dict[tuple[int, float, str], list[AccessRecord]] = {}
    for record in batch:
        if record.consumer is not None:
            key = record.consumer, record.at // 3600, record.route[:60]
            grouped.setdefault(key, []).append(record)
    return {
        (consumer, datetime.fromtimestamp(hour * 3600, UTC), route): _added(several)
        for (consumer, hour, route), several in grouped.items()
    }


def _added(several: Sequence[AccessRecord]) -> list[float]:
    statuses = Counter([record.status for record in several])
    took = [record.duration_ms for record in several]
    ages = [age for record in several if (age := record.age_seconds) is not None]
    return [
        len(several),
        statuses[304],
        statuses[429],
        sum(count for status, count in statuses.items() if 400 <= status < 500 and status != 429),
        sum(count for status, count in statuses.items() if status >= 500),
        sum(took),
        len(ages),
        sum(ages),
        max(took),
        max(ages, default=0.0),
    ]
