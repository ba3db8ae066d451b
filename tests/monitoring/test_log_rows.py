"""ERROR and CRITICAL log lines as rows: each one, redacted, written after an outage too, kept for 30 days."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.utils import timezone
from structlog.contextvars import bound_contextvars

from monitoring import log_rows
from monitoring.log_rows import RowHandler
from monitoring.models import LogEntry
from victoryline import retention

pytestmark = [pytest.mark.both, pytest.mark.django_db(transaction=True), pytest.mark.requirement("NFR-017")]
logger = logging.getLogger("victoryline.tests.rows")
SECRET = "hunter2hunter2"


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Iterator[RowHandler]:
    """A handler whose thread does not run: the test writes."""
    made = RowHandler()
    monkeypatch.setattr(made, "_start_thread", lambda: None)
    monkeypatch.setattr(log_rows, "FLUSH_SECONDS", 0)
    logger.addHandler(made)
    yield made
    logger.removeHandler(made)


def test_an_error_is_a_row_with_its_context_and_stack(handler: RowHandler) -> None:
    with bound_contextvars(match_id="crex_13KM", job_id=3):
        try:
            raise ValueError(f"password={SECRET}")
        except ValueError:
            logger.exception("Reading failed", extra={"action": "attempt_failed"})
    logger.critical("Stalled")
    logger.warning("Only a warning")
    assert handler.write_waiting() == 2
    error, critical = LogEntry.objects.order_by("pk")
    assert (error.level, critical.level) == ("ERROR", "CRITICAL")
    assert (error.event, error.action, error.match_id) == ("Reading failed", "attempt_failed", "crex_13KM")
    assert abs(timezone.now() - error.timestamp) < timedelta(minutes=10)
    assert error.line["job_id"] == 3
    assert "ValueError" in error.line["stack_trace"]
    assert SECRET not in str(error.line)


def test_lines_wait_while_the_database_is_away(handler: RowHandler) -> None:
    def refuse(*_: object) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    logger.error("first")
    logger.error("second")
    with connection.execute_wrapper(refuse), pytest.raises(OperationalError):
        handler.write_waiting()
    logger.error("third")
    assert handler.write_waiting() == 3
    assert list(LogEntry.objects.order_by("pk").values_list("event", flat=True)) == ["first", "second", "third"]


def test_a_flood_is_limited_and_counted(handler: RowHandler, monkeypatch: pytest.MonkeyPatch) -> None:
    minute = iter([1.0] * 6 + [61.0])
    monkeypatch.setattr(log_rows, "MAX_A_MINUTE", 2)
    monkeypatch.setattr(log_rows.time, "monotonic", lambda: next(minute))
    for number in range(5):
        logger.error("error %d", number)
    logger.critical("the system fails")
    logger.error("error 5")
    monkeypatch.undo()
    assert handler.write_waiting() == 4
    kept = [(row.event, row.line.get("left_out_before")) for row in LogEntry.objects.order_by("pk")]
    assert kept == [("error 0", None), ("error 1", None), ("the system fails", 3), ("error 5", None)]


def test_the_thread_writes_and_flush_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_rows, "FLUSH_SECONDS", 60)
    made = RowHandler()
    logger.addHandler(made)
    try:
        logger.error("written by the thread")
        made.flush()
    finally:
        logger.removeHandler(made)
    assert LogEntry.objects.get().event == "written by the thread"


def test_are_kept_for_thirty_days() -> None:
    now = timezone.now()
    for age in (29, 31):
        LogEntry.objects.create(timestamp=now - timedelta(days=age), level="ERROR", event=f"{age}", line={})
    assert retention.prune(now) == 1
    assert LogEntry.objects.get().event == "29"
