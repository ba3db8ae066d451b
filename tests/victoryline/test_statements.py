"""The SQL of a failed database call: in the log line of its error, without values."""

from __future__ import annotations

import json
import logging

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from tests.factories import make_source
from victoryline.lib import logs
from victoryline.lib.statements import shown, statement_of

pytestmark = [pytest.mark.both, pytest.mark.requirement("FR-020")]
SECRET = "hunter2hunter2"
FAILING = f"INSERT INTO nowhere (name, note) VALUES (%s, '{SECRET}')"


@pytest.mark.django_db
class TestStatement:
    def failure(self) -> DatabaseError:
        with pytest.raises(DatabaseError) as raised, transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(FAILING, [SECRET])
        return raised.value

    def test_is_kept_with_the_error_without_values(self) -> None:
        assert statement_of(self.failure()) == {"sql": "INSERT INTO nowhere (name, note) VALUES (%s, '***')"}

    def test_is_found_behind_an_error_of_ours(self) -> None:
        ours = ValueError("the row could not be written")
        ours.__cause__ = self.failure()
        assert statement_of(ours)["sql"].startswith("INSERT INTO nowhere")

    def test_leaves_the_values_of_a_row_out_of_the_message(self) -> None:
        source = make_source("crex")
        with pytest.raises(IntegrityError) as raised, transaction.atomic():
            type(source).objects.create(key=source.key, name=SECRET, base_url="https://a.example")
        assert "UNIQUE" in str(raised.value).upper()
        assert source.key not in str(raised.value)

    @pytest.mark.parametrize("format", ["json", "console"])
    def test_is_in_the_log_line(self, format: str) -> None:
        error = self.failure()
        record = logging.makeLogRecord({"levelno": 40, "levelname": "ERROR", "msg": "Writing failed"})
        record.exc_info = (type(error), error, error.__traceback__)
        line = logs.formatter(format).format(record)
        assert "INSERT INTO nowhere" in line.split("Traceback")[0]
        assert SECRET not in line.replace(FAILING, "")  # the source line of this test is in the traceback
        if format == "json":
            assert json.loads(line)["sql"] == statement_of(error)["sql"]


def test_an_error_without_a_statement_has_none() -> None:
    assert statement_of(ValueError("x")) == {}
    assert statement_of(None) == {}


def test_long_lists_of_placeholders_are_shortened() -> None:
    rows = ", ".join(["(%s, %s, %s, %s)"] * 200)
    assert shown(f"INSERT INTO t (a, b, c, d)\n  VALUES {rows}") == "INSERT INTO t (a, b, c, d) VALUES (...)"
    assert shown("SELECT 1 FROM t WHERE name = 'it''s' AND id = %s") == "SELECT 1 FROM t WHERE name = '***' AND id = %s"
