"""Access-log records: a tuple while it is queued, then a row of AccessLog and a part of its hour's UsageHour.

Conversions (truncation, numbers, dates) happen here, in the writer's thread and not in the request. Plain statements
and not `bulk_create`: a third of the CPU, which is shared with the requests.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from apiauth.models import AccessLog, UsageHour
from apiauth.usage import MOST, SUMS
from victoryline.lib.bulk_sql import add_up, execute_rows, with_columns
from victoryline.lib.redaction import clean, printable

INSERT = with_columns(
    AccessLog,
    "INSERT INTO {table} ({consumer}, {key_prefix}, {timestamp}, {method}, {endpoint}, {route}, {response_status}, "
    "{data_age_seconds}, {data_state}, {duration_ms}, {request_id}) VALUES {{rows}}",
)
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
    """Writes rows and hourly sums, in the caller's transaction. Anonymous requests have no sums."""
    insert(batch)
    grouped: defaultdict[tuple[int, datetime, str], list[AccessRecord]] = defaultdict(list)
    for record in batch:
        if record.consumer is not None:
            hour = datetime.fromtimestamp(record.at // 3600 * 3600, UTC)
            grouped[record.consumer, hour, record.route[:60]].append(record)
    add_up(
        UsageHour,
        by=("consumer", "hour", "route"),
        sums=SUMS,
        most=MOST,
        rows={key: _sums(several) for key, several in grouped.items()},
    )


def insert(batch: Sequence[AccessRecord]) -> None:
    execute_rows(INSERT, [_row(record) for record in batch])


def _row(record: AccessRecord) -> tuple[Any, ...]:
    path = _plain(record.path, LONGEST_PATH)
    return (
        record.consumer,
        record.key_prefix[:16],
        datetime.fromtimestamp(record.at, UTC),
        _plain(record.method, 8),
        clean(path) if "vl_" in path or "eyJ" in path else path,  # a key or a token put into it by mistake
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


def _sums(several: Sequence[AccessRecord]) -> list[float]:
    """In the order of SUMS and MOST."""
    statuses = Counter(record.status for record in several)
    took = [record.duration_ms for record in several]
    ages = [age for record in several if (age := record.age_seconds) is not None]
    refused = sum(count for status, count in statuses.items() if 400 <= status < 500) - statuses[429]
    failed = sum(count for status, count in statuses.items() if status >= 500)
    counts = (len(several), statuses[304], statuses[429], refused, failed)
    return [*counts, sum(took), len(ages), sum(ages), max(took), max(ages, default=0.0)]
