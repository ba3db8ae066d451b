"""One request as the access log keeps it: a tuple while it waits, then a row and a part of its hour's sums.

Whatever takes time (cutting, reading numbers, dates) is done here, behind the request's back. Plain statements and not
`bulk_create`: a third of the work, and that work shares one interpreter with the requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import connection

from apiauth.models import AccessLog, UsageHour
from victoryline.lib.bulk_sql import add_up
from victoryline.lib.redaction import clean
from victoryline.lib.request_id import printable

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


class Attempt(NamedTuple):
    """What a request notes: nothing but references to what is there already. `age` is the header's text."""

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


def store(batch: Sequence[Attempt]) -> None:
    """Rows and sums. The caller holds the transaction that makes both of them true, or neither."""
    insert(batch)
    add_up(UsageHour, by=("consumer", "hour", "route"), sums=SUMS, most=MOST, rows=_sums(batch))


def insert(batch: Sequence[Attempt]) -> None:
    rows = [_row(attempt) for attempt in batch]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Its driver sends executemany as one statement a row, and waits for each.
            cursor.execute(INSERT + ", ".join([ONE_ROW] * len(rows)), [value for row in rows for value in row])
        else:
            cursor.executemany(INSERT + ONE_ROW, rows)


def _row(attempt: Attempt) -> tuple[Any, ...]:
    return (
        attempt.consumer,
        attempt.key_prefix[:16],
        connection.ops.adapt_datetimefield_value(datetime.fromtimestamp(attempt.at, UTC)),
        _plain(attempt.method, 8),
        _address(attempt.path),
        attempt.route[:60],
        attempt.status,
        attempt.age_seconds,
        attempt.state[:10],
        attempt.duration_ms,
        attempt.request_id,
    )


def _plain(text: str, length: int) -> str:
    """Almost everything is plain already; what isn't takes the longer way."""
    cut = text[:length]
    return cut if cut.isascii() and cut.isprintable() else printable(cut, length)


def _address(path: str) -> str:
    """A key or a token that somebody put into an address by mistake is not kept."""
    shown = _plain(path, LONGEST_PATH)
    return clean(shown) if "vl_" in path or "eyJ" in path else shown


def _sums(batch: Sequence[Attempt]) -> dict[tuple[int, datetime, str], list[float]]:
    """By consumer, hour and route, in the order of SUMS and MOST. Who isn't known has no sums."""
    grouped: dict[tuple[int, float, str], list[Attempt]] = {}
    for attempt in batch:
        if attempt.consumer is not None:
            key = attempt.consumer, attempt.at // 3600, attempt.route[:60]
            grouped.setdefault(key, []).append(attempt)
    return {
        (consumer, datetime.fromtimestamp(hour * 3600, UTC), route): _added(several)
        for (consumer, hour, route), several in grouped.items()
    }


def _added(several: Sequence[Attempt]) -> list[float]:
    statuses = Counter([attempt.status for attempt in several])
    took = [attempt.duration_ms for attempt in several]
    ages = [age for attempt in several if (age := attempt.age_seconds) is not None]
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
