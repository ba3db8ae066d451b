"""Unknown values: counted in memory, written periodically, kept while the database is away."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError

from scraping.models import UnknownValue
from scraping.payloads import Payload, UnrecognizedValue
from scraping.stats import read_stats
from scraping.stats.read_stats import ReadStats
from tests.factories import make_ref, make_source
from tests.scraping.builders import later, payload_of

pytestmark = [pytest.mark.both, pytest.mark.django_db]


@pytest.fixture
def counts() -> ReadStats:
    make_source("crex")
    return ReadStats()


def read(*values: str) -> Payload:
    words = tuple(UnrecognizedValue(path="status.code", value=value) for value in values)
    return payload_of(make_ref(), payload_schema="crex.match.v1", unknown=words)


def rows() -> dict[str, int]:
    return dict(UnknownValue.objects.order_by("value").values_list("value", "times_seen"))


def test_counts_repeated_values(counts: ReadStats) -> None:
    for value in ("93", "93", "94"):
        counts.unknown("crex", read(value))
    assert counts.flush(now=later(0)) == 2
    counts.unknown("crex", read("93"))
    assert counts.flush(now=later(40)) == 1
    assert rows() == {"93": 3, "94": 1}
    row = UnknownValue.objects.get(value="93")
    assert (row.path, row.payload_schema, row.first_seen_at, row.last_seen_at) == (
        "status.code",
        "crex.match.v1",
        later(0),
        later(40),
    )


def test_is_written_every_half_minute(counts: ReadStats, django_assert_num_queries: Any) -> None:
    counts.unknown("crex", read("93"))
    counts.flush(now=later(0))
    counts.unknown("crex", read("93"))
    with django_assert_num_queries(0):
        assert counts.flush(now=later(5)) == 0
    assert counts.flush(now=later(6), is_last=True) == 1
    assert rows() == {"93": 2}


def test_known_values_need_no_statement(counts: ReadStats, django_assert_num_queries: Any) -> None:
    counts.unknown("crex", read())
    with django_assert_num_queries(0):
        assert counts.flush(now=later(0)) == 0


def test_a_failed_write_is_repeated(counts: ReadStats, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any) -> int:
        raise OperationalError("away")

    counts.unknown("crex", read("93"))
    with monkeypatch.context() as broken:
        broken.setattr(read_stats, "_write", away)
        with pytest.raises(OperationalError):
            counts.flush(now=later(0))
    assert counts.flush(now=later(1)) == 1
    assert rows() == {"93": 1}


def test_counts_and_rows_are_bounded(counts: ReadStats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_stats, "MAX_UNKNOWN", 3)
    monkeypatch.setattr(read_stats, "MAX_UNKNOWN_ROWS", 3)
    counts.unknown("crex", read(*"abcdef"))
    counts.flush(now=later(0))
    assert rows() == {"a": 1, "b": 1, "c": 1}
    counts.unknown("crex", read("x", "a"))
    counts.flush(now=later(60))
    assert rows() == {"a": 2, "b": 1, "c": 1}


def test_values_of_a_deleted_source_are_dropped(counts: ReadStats) -> None:
    counts.unknown("deleted", read("93"))
    assert counts.flush(now=later(0)) == 0
