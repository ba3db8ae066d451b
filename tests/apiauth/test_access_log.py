"""Who asked for what, and how old the answer was."""

from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from apiauth import access_writer, retention
from apiauth.access_writer import AccessWriter
from apiauth.models import AccessLog, Consumer
from tests.absence import known_to_be_away  # noqa: F401 - a fixture
from tests.api_fixtures import Caller
from tests.factories import NOW, make_match, make_ref

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("FR-028")]


def row(**fields) -> AccessLog:
    values = {"timestamp": NOW, "method": "GET", "endpoint": "/api/v1/matches", "response_status": 200}
    return AccessLog(**values | {"request_id": "r"} | fields)


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

    def test_is_written_for_refusals_too(self, anonymous, caller: Caller) -> None:
        anonymous.get("/api/v1/matches")
        Consumer.objects.update(is_active=False)
        caller.get("/api/v1/matches")
        nobody, locked_out = AccessLog.objects.order_by("pk")
        assert (nobody.response_status, nobody.consumer) == (401, None)
        assert (locked_out.response_status, locked_out.consumer) == (401, caller.key.consumer)

    def test_is_not_written_for_open_pages(self, anonymous) -> None:
        anonymous.get("/api/schema")
        assert not AccessLog.objects.exists()

    @pytest.mark.parametrize("path", ["/api/v1/matches/%00", "/api/v1/matches/%ED%A0%80", "/api/v1/" + "x" * 3000])
    def test_survives_any_path(self, anonymous, path: str) -> None:
        assert anonymous.get(path).status_code in {401, 404}
        assert AccessLog.objects.count() == 1


class TestWriter:
    def test_stores_what_waits_in_batches(self) -> None:
        writer = AccessWriter()
        writer._waiting.extend(row(duration_ms=number) for number in range(250))
        assert writer.flush() == 250
        assert list(AccessLog.objects.order_by("pk").values_list("duration_ms", flat=True)) == list(range(250))

    @pytest.mark.fault
    @pytest.mark.parametrize(
        "error", [OperationalError("server closed the connection"), InterfaceError("connection already closed")]
    )
    def test_keeps_rows_in_order_while_the_database_is_away(
        self, monkeypatch: pytest.MonkeyPatch, error: Exception
    ) -> None:
        writer = AccessWriter()
        writer._waiting.extend(row(duration_ms=number) for number in range(3))
        with monkeypatch.context() as away:
            away.setattr(AccessLog.objects, "bulk_create", Mock(side_effect=error))
            assert writer.flush() == 0
        assert writer.flush() == 3
        assert list(AccessLog.objects.order_by("pk").values_list("duration_ms", flat=True)) == [0, 1, 2]

    @pytest.mark.fault
    @pytest.mark.requirement("NFR-015", "EC-2")
    def test_is_quiet_and_bounded_through_a_long_outage_and_complete_after_it(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        writer = AccessWriter(max_waiting=300)
        writer._start = lambda: None
        with monkeypatch.context() as away:
            away.setattr(AccessLog.objects, "bulk_create", Mock(side_effect=OperationalError("refused")))
            for number in range(290):
                writer.write(row(duration_ms=number))
                writer.flush()
        assert [record.action for record in caplog.records] == ["access_log_waits"]
        assert writer.flush() == 290

    @pytest.mark.fault
    @pytest.mark.usefixtures("known_to_be_away")
    def test_at_its_end_waits_for_no_database_that_is_away(self, caplog: pytest.LogCaptureFixture) -> None:
        writer = AccessWriter()
        writer._waiting.extend(row() for _ in range(3))
        caplog.clear()
        writer._last_flush()
        assert AccessLog.objects.count() == 0
        assert [(record.action, record.dropped_count) for record in caplog.records] == [("access_log_dropped", 3)]

    @pytest.mark.fault
    def test_drops_the_oldest_beyond_the_bound_and_counts_them(self, caplog: pytest.LogCaptureFixture) -> None:
        before = access_writer.dropped_total._value.get()
        writer = AccessWriter(max_waiting=5)
        writer._start = lambda: None  # the thread would write behind the test's transaction
        for number in range(8):
            writer.write(row(duration_ms=number))
        assert writer.flush() == 5
        assert AccessLog.objects.order_by("pk").first().duration_ms == 3
        assert access_writer.dropped_total._value.get() - before == 3
        assert [record.action for record in caplog.records] == ["access_log_dropped"]

    def test_one_bad_row_does_not_take_its_neighbours_with_it(self) -> None:
        writer = AccessWriter()
        writer._waiting.extend([row(), row(response_status=None), row()])
        assert writer.flush() == 2
        assert AccessLog.objects.count() == 2


class TestThread:
    @pytest.mark.django_db(transaction=True)
    def test_writes_by_itself_within_a_second_or_so(self, caller: Caller, settings) -> None:
        settings.ACCESS_LOG_IS_SYNCHRONOUS = False
        caller.get("/api/v1/matches")
        deadline = timezone.now() + timedelta(seconds=10)
        while not AccessLog.objects.exists():
            assert timezone.now() < deadline


class TestRetention:
    def test_removes_what_is_older_than_30_days(self) -> None:
        AccessLog.objects.bulk_create(row(timestamp=NOW - timedelta(days=days)) for days in (0, 29, 31, 400))
        assert retention.prune(NOW) == 2
        assert AccessLog.objects.count() == 2

    def test_removes_a_little_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("victoryline.lib.retention.BATCH", 2)
        monkeypatch.setattr("victoryline.lib.retention.MOST_BATCHES", 2)
        AccessLog.objects.bulk_create(row(timestamp=NOW - timedelta(days=40)) for _ in range(5))
        assert retention.prune(NOW) == 4
        assert retention.prune(NOW) == 1
