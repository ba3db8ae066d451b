"""The access log: its rows, its writer, its hourly sums and its retention."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import jwt
import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client
from django.utils import timezone

from apiauth import access_log, access_records, keys, tokens
from apiauth.access_log import AccessWriter
from apiauth.access_records import AccessRecord
from apiauth.models import AccessLog, Consumer, UsageHour
from tests.api_fixtures import Caller
from tests.factories import NOW, make_match, make_ref
from tests.patience import stretched
from tests.unreachable_database import known_to_be_away  # noqa: F401 - a fixture
from victoryline import retention
from victoryline.lib import pg_wait

ONE = AccessRecord(
    at=NOW.timestamp(),
    consumer=None,
    key_prefix="",
    method="GET",
    path="/api/v1/matches",
    route="matches",
    status=200,
    age=None,
    state="",
    seconds=0.0,
    request_id="r",
)
pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("FR-028")]


def row(**fields) -> AccessLog:
    values = {"timestamp": NOW, "method": "GET", "endpoint": "/api/v1/matches", "response_status": 200}
    return AccessLog(**values | {"request_id": "r"} | fields)


def record(**fields: Any) -> AccessRecord:
    return ONE._replace(**fields)


def numbered(count: int) -> list[AccessRecord]:
    """Returns records that differ by their duration."""
    return [record(seconds=number / 1000) for number in range(count)]


class TestRow:
    def test_names_consumer_endpoint_time_status_and_data_age(self, caller: Caller) -> None:
        before = timezone.now()
        ref = make_ref(make_match(now=before - timedelta(seconds=7)))
        caller.get(f"/api/v1/matches/{ref.match_id}", X_Request_Id="mine-1")
        logged = AccessLog.objects.get()
        assert logged.consumer == caller.key.consumer
        assert (logged.method, logged.endpoint) == ("GET", f"/api/v1/matches/{ref.match_id}")
        assert (logged.response_status, logged.request_id) == (200, "mine-1")
        assert before <= logged.timestamp <= timezone.now()
        assert 7 <= logged.data_age_seconds < 60

    def test_names_route_key_and_state(self, caller: Caller) -> None:
        ref = make_ref(make_match(now=timezone.now()))
        caller.get(f"/api/v1/matches/{ref.match_id}")
        logged = AccessLog.objects.get()
        assert (logged.route, logged.key_prefix, logged.data_state) == ("match", caller.key.prefix, "fresh")

    def test_of_a_304_has_the_age_of_the_data(self, caller: Caller) -> None:
        ref = make_ref(make_match(now=timezone.now() - timedelta(seconds=5)))
        address = f"/api/v1/matches/{ref.match_id}"
        caller.get(address, If_None_Match=caller.get(address)["ETag"])
        logged = AccessLog.objects.last()
        assert (logged.response_status, logged.data_state) == (304, "fresh")
        assert 5 <= logged.data_age_seconds < 60

    def test_is_written_when_the_view_fails(self, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            "apiauth.api.usage_view.usage.last_days", Mock(side_effect=RuntimeError("a mistake of ours"))
        )
        assert caller.get("/api/v1/usage").status_code == 500
        logged = AccessLog.objects.get()
        assert (logged.response_status, logged.route, logged.consumer) == (500, "usage", caller.key.consumer)

    def test_is_written_for_unknown_addresses(self, caller: Caller, anonymous: Client) -> None:
        caller.get("/api/v1/nothing")
        anonymous.get("/api/v9/matches")
        anonymous.get("/api/v1/matches", headers={"Host": "other.example"})
        anonymous.post("/token/generate-token", {"api_key": "x" * 300_000}, content_type="application/json")
        found = AccessLog.objects.order_by("pk").values_list("response_status", "route")
        assert list(found) == [(404, ""), (404, ""), (400, ""), (413, "generate-token")]
        assert [each.consumer for each in AccessLog.objects.order_by("pk")[:2]] == [caller.key.consumer, None]

    @pytest.mark.parametrize("path", ["/api/docs/nothing", "/api/schema2", "/token", "/token/", "/cricket-data2"])
    def test_is_written_for_addresses_with_a_known_prefix(self, caller: Caller, path: str) -> None:
        assert caller.get(path).status_code == 404
        assert AccessLog.objects.get().consumer == caller.key.consumer

    def test_is_written_for_a_caller_beyond_the_limit(self, caller: Caller, settings) -> None:
        settings.CONFIG = settings.CONFIG.model_copy(update={"rate_limit_standard_per_minute": 1})
        caller.get("/api/v1/matches")
        caller.get("/api/v1/matches")
        assert list(AccessLog.objects.order_by("pk").values_list("response_status", flat=True)) == [200, 429]

    def test_names_the_key_that_was_refused(self, caller: Caller, anonymous: Client) -> None:
        now, prefix = timezone.now(), caller.key.prefix
        forged = jwt.encode({"key": prefix}, "a signing key that is not ours, and long enough", algorithm="HS256")
        expired = tokens.make(caller.key, now - timedelta(days=2)).text
        keys.revoke(prefix=prefix, now=now)
        for token in (caller.token, expired, forged, "rubbish", "a.b.c"):
            assert anonymous.get("/api/v1/matches", headers={"Authorization": f"Bearer {token}"}).status_code == 401
        anonymous.post("/token/generate-token", headers={"X-API-Key": caller.issued.text})
        anonymous.post("/token/generate-token", {"api_key": caller.issued.text}, content_type="application/json")
        logged = AccessLog.objects.order_by("pk").values_list("key_prefix", flat=True)
        assert list(logged) == [prefix, prefix, prefix, "", "", prefix, prefix]

    def test_redacts_secrets_in_an_address(self, caller: Caller, anonymous: Client) -> None:
        anonymous.get(f"/api/v1/{caller.issued.text}")
        secret = caller.issued.text[-43:]
        assert secret not in AccessLog.objects.get().endpoint

    def test_is_written_for_refusals_too(self, anonymous, caller: Caller) -> None:
        anonymous.get("/api/v1/matches")
        Consumer.objects.update(is_active=False)
        caller.get("/api/v1/matches")
        anonymous_row, inactive_row = AccessLog.objects.order_by("pk")
        assert (anonymous_row.response_status, anonymous_row.consumer) == (401, None)
        assert (inactive_row.response_status, inactive_row.consumer) == (401, caller.key.consumer)

    @pytest.mark.parametrize("path", ["/api/schema", "/api/docs", "/api/docs/"])
    def test_is_not_written_for_open_pages(self, anonymous, path: str) -> None:
        assert anonymous.get(path).status_code == 200
        assert not AccessLog.objects.exists()

    @pytest.mark.parametrize("path", ["/api/v1/matches/%00", "/api/v1/matches/%ED%A0%80", "/api/v1/" + "x" * 3000])
    def test_survives_any_path(self, anonymous, path: str) -> None:
        assert anonymous.get(path).status_code in {401, 404}
        assert AccessLog.objects.count() == 1


class TestWriter:
    def test_stores_queued_records_in_batches(self) -> None:
        writer = AccessWriter()
        writer._waiting.extend(numbered(1250))
        assert writer.flush() == 1250
        assert list(AccessLog.objects.order_by("pk").values_list("duration_ms", flat=True)) == list(range(1250))

    @pytest.mark.fault
    @pytest.mark.parametrize(
        "error", [OperationalError("server closed the connection"), InterfaceError("connection already closed")]
    )
    def test_keeps_rows_in_order_while_the_database_is_away(
        self, monkeypatch: pytest.MonkeyPatch, error: Exception
    ) -> None:
        writer = AccessWriter()
        writer._waiting.extend(numbered(3))
        with monkeypatch.context() as away:
            away.setattr(access_records, "insert", Mock(side_effect=error))
            assert writer.flush() == 0
        assert writer.flush() == 3
        assert list(AccessLog.objects.order_by("pk").values_list("duration_ms", flat=True)) == [0, 1, 2]

    @pytest.mark.fault
    @pytest.mark.requirement("NFR-015", "EC-2")
    def test_is_bounded_during_a_long_outage_and_complete_after_it(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        writer = AccessWriter(max_waiting=300)
        writer._start = lambda: None
        with monkeypatch.context() as away:
            away.setattr(access_records, "insert", Mock(side_effect=OperationalError("refused")))
            for one in numbered(290):
                writer.write(one)
                writer.flush()
        assert not caplog.records  # `availability` reports the outage once, for all
        assert writer.flush() == 290

    @pytest.mark.fault
    @pytest.mark.usefixtures("known_to_be_away")
    def test_stop_reports_rows_lost_to_an_unreachable_database(self, caplog: pytest.LogCaptureFixture) -> None:
        before, writer = access_log.dropped_total._value.get(), AccessWriter()
        writer._waiting.extend(numbered(3))
        caplog.clear()
        writer._last_flush()
        assert [record.action for record in caplog.records] == ["access_log_dropped"]
        assert caplog.records[-1].dropped_count == 3
        assert access_log.dropped_total._value.get() - before == 3

    @pytest.mark.fault
    def test_stop_reports_rows_lost_to_a_database_that_just_went_away(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        writer = AccessWriter()
        writer._waiting.extend(numbered(3))
        monkeypatch.setattr(access_log, "connection", Mock())  # it belongs to the test
        monkeypatch.setattr(access_records, "insert", Mock(side_effect=OperationalError("refused")))
        writer._last_flush()
        assert [record.action for record in caplog.records] == ["access_log_dropped"]

    @pytest.mark.fault
    def test_stop_does_not_wait_for_a_frozen_database(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(access_log, "LAST_SECONDS", 0.01)
        writer, is_storing, thaws = AccessWriter(), threading.Event(), threading.Event()

        def freeze(batch: list[AccessRecord]) -> None:
            is_storing.set()
            assert thaws.wait(stretched(30))

        monkeypatch.setattr(writer, "_store_together", freeze)
        writer._waiting.extend(numbered(2))
        before = access_log.dropped_total._value.get()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(writer.flush)
            assert is_storing.wait(stretched(30))
            writer._waiting.append(numbered(3)[2])
            writer._last_flush()
            thaws.set()
        assert access_log.dropped_total._value.get() - before == 1

    def test_stop_waits_for_its_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        writer, is_at_it, goes_on = AccessWriter(), threading.Event(), threading.Event()
        stored: list[AccessRecord] = []

        def store(batch: list[AccessRecord]) -> None:
            is_at_it.set()
            assert goes_on.wait(stretched(30))
            stored.extend(batch)

        monkeypatch.setattr(writer, "_store_together", store)
        writer._waiting.extend(numbered(2))
        with ThreadPoolExecutor(1) as pool:
            pool.submit(writer.flush)
            assert is_at_it.wait(stretched(30))
            lock = writer._flushing
            writer._flushing = Mock(release=lock.release)
            writer._flushing.acquire = lambda timeout: goes_on.set() or lock.acquire(timeout=30)
            writer._last_flush()
            written_when_it_ended = list(stored)
            goes_on.set()
        assert written_when_it_ended == numbered(2)

    @pytest.mark.fault
    def test_stop_limits_the_wait_for_the_database(self, monkeypatch: pytest.MonkeyPatch) -> None:
        writer, waits = AccessWriter(), Mock()
        monkeypatch.setattr(writer, "_store_together", lambda _: waits(pg_wait._thread.seconds))
        monkeypatch.setattr(access_log, "connection", Mock())  # it belongs to the test
        writer._waiting.extend(numbered(1))
        writer._last_flush()
        waits.assert_called_once_with(access_log.LAST_SECONDS)

    @pytest.mark.fault
    def test_drops_the_oldest_beyond_the_bound_and_counts_them(self, caplog: pytest.LogCaptureFixture) -> None:
        before = access_log.dropped_total._value.get()
        writer = AccessWriter(max_waiting=5)
        writer._start = lambda: None  # the thread would write behind the test's transaction
        for one in numbered(8):
            writer.write(one)
        assert writer.flush() == 5
        assert AccessLog.objects.order_by("pk").first().duration_ms == 3
        assert access_log.dropped_total._value.get() - before == 3
        assert [record.action for record in caplog.records] == ["access_log_dropped"]

    def test_records_lost_by_a_bug_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before, writer = access_log.dropped_total._value.get(), AccessWriter()
        writer._waiting.extend(numbered(3))
        monkeypatch.setattr(access_records, "insert", Mock(side_effect=RuntimeError("a mistake of ours")))
        with pytest.raises(RuntimeError):
            writer.flush()
        assert access_log.dropped_total._value.get() - before == 3

    def test_one_invalid_row_does_not_lose_the_others(self) -> None:
        writer = AccessWriter()
        writer._waiting.extend([record(), record(status=None), record()])
        assert writer.flush() == 2
        assert AccessLog.objects.count() == 2

    @pytest.mark.django_db(transaction=True)
    def test_of_a_deleted_consumer_has_no_consumer(self) -> None:
        writer = AccessWriter()
        writer._waiting.extend([record(), record(consumer=987_654)])
        assert writer.flush() == 2
        assert list(AccessLog.objects.values_list("consumer", flat=True)) == [None, None]
        assert not UsageHour.objects.exists()


class TestSums:
    """Sums by hour, consumer and route, written in the transaction of the rows."""

    def mixed(self, consumers: list[int], count: int) -> list[AccessRecord]:
        draw = random.Random(7)
        return [
            record(
                at=(NOW + timedelta(minutes=draw.randrange(200))).timestamp(),
                consumer=draw.choice([*consumers, None]),
                route=draw.choice(["match", "matches", ""]),
                status=draw.choice([200, 200, 304, 400, 404, 429, 500, 503]),
                age=draw.choice([None, "3", "11", "rubbish"]),
                seconds=draw.random() / 10,
            )
            for _ in range(count)
        ]

    def test_agree_with_the_rows(self, caller: Caller, operator: Caller) -> None:
        for batch in (700, 300):  # the second adds to what is there
            writer = AccessWriter()
            writer._waiting.extend(self.mixed([caller.key.consumer_id, operator.key.consumer_id], batch))
            assert writer.flush() == batch
        assert sums_of_rows() == sums_of_hours()
        assert sum(found[0] for found in sums_of_hours().values()) > 600

    @pytest.mark.fault
    def test_count_nothing_twice_if_the_database_goes_away_during_an_invalid_batch(
        self, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An invalid row makes the writer insert row by row; the database goes away at the third row."""
        writer, insert, calls = AccessWriter(), access_records.insert, []

        def leaves(batch: list[AccessRecord]) -> None:
            calls.append(batch)
            if len(calls) == 4:
                raise OperationalError("server closed the connection")
            insert(batch)

        mine = record(consumer=caller.key.consumer_id)
        writer._waiting.extend([mine, mine, mine, record(status=None), mine])
        monkeypatch.setattr(access_records, "insert", leaves)
        assert writer.flush() == 2
        assert writer.flush() == 2
        assert AccessLog.objects.count() == 4
        assert UsageHour.objects.get().requests == 4

    @pytest.mark.django_db(transaction=True)
    def test_of_several_processes_are_added_to_each_other(self, caller: Caller) -> None:
        def write(_: int) -> int:
            writer = AccessWriter()
            writer._waiting.extend(self.mixed([caller.key.consumer_id], 150))
            try:
                return writer.flush()
            finally:
                connection.close()

        with ThreadPoolExecutor(4) as writers:
            assert list(writers.map(write, range(4))) == [150] * 4
        assert sums_of_rows() == sums_of_hours()

    def test_have_a_longer_retention_than_the_rows(self, caller: Caller) -> None:
        for days in (0, 31, 399, 401):
            UsageHour.objects.create(consumer=caller.key.consumer, hour=NOW - timedelta(days=days), route="match")
        assert retention.prune(NOW) == 1


def sums_of_rows() -> dict[Any, tuple[Any, ...]]:
    """Returns the sums computed from the rows."""
    grouped: dict[Any, list[AccessLog]] = {}
    for one in AccessLog.objects.exclude(consumer=None):
        hour = one.timestamp.replace(minute=0, second=0, microsecond=0)
        grouped.setdefault((one.consumer_id, hour, one.route), []).append(one)
    return {key: counted(rows) for key, rows in grouped.items()}


def counted(rows: list[AccessLog]) -> tuple[Any, ...]:
    statuses = [one.response_status for one in rows]
    ages = [one.data_age_seconds for one in rows if one.data_age_seconds is not None]
    took = [one.duration_ms for one in rows]
    return (
        len(rows),
        statuses.count(304),
        statuses.count(429),
        statuses.count(400) + statuses.count(404),
        statuses.count(500) + statuses.count(503),
        sum(took),
        max(took),
        len(ages),
        round(sum(ages)),
        max(ages, default=0),
    )


def sums_of_hours() -> dict[Any, tuple[Any, ...]]:
    columns = (
        "requests", "not_modified", "throttled", "refused", "failed", "duration_ms_total", "duration_ms_most", "aged",
    )  # fmt: skip
    return {
        (row.consumer_id, row.hour, row.route): (
            *(getattr(row, name) for name in columns),
            round(row.age_seconds_total),
            row.age_seconds_most,
        )
        for row in UsageHour.objects.all()
    }


class TestThread:
    @pytest.mark.django_db(transaction=True)
    def test_writes_within_about_a_second(self, caller: Caller, settings) -> None:
        settings.ACCESS_LOG_IS_SYNCHRONOUS = False
        caller.get("/api/v1/matches")
        deadline = timezone.now() + timedelta(seconds=10)
        while not AccessLog.objects.exists():
            assert timezone.now() < deadline

    @pytest.mark.django_db(transaction=True)
    def test_returns_its_connection_even_when_it_fails(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(_: object) -> None:
            assert AccessLog.objects.count() == 0
            raise ValueError("failed")

        writer = AccessWriter()
        writer._waiting.append(ONE)
        monkeypatch.setattr(access_records, "store", fail)

        def run() -> bool:
            writer._flush_and_disconnect(writer.flush)
            return connection.connection is None

        with ThreadPoolExecutor(1) as another:
            assert another.submit(run).result()
        assert "access_log_failed" in [getattr(each, "action", "") for each in caplog.records]


class TestRetention:
    def test_removes_rows_older_than_30_days(self) -> None:
        AccessLog.objects.bulk_create(row(timestamp=NOW - timedelta(days=days)) for days in (0, 29, 31, 400))
        assert retention.prune(NOW) == 2
        assert AccessLog.objects.count() == 2

    def test_removes_rows_in_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(retention, "ACCESS_LOG_BATCH", 2)
        monkeypatch.setattr("victoryline.lib.retention.MAX_BATCHES", 2)
        AccessLog.objects.bulk_create(row(timestamp=NOW - timedelta(days=40)) for _ in range(5))
        assert retention.prune(NOW) == 4
        assert retention.prune(NOW) == 1
