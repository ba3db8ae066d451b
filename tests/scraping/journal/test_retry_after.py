"""The Retry-After header of a source."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scraping.readings import MAX_RETRY_AFTER_SECONDS, retry_after_seconds

NOW = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("7", 7.0),
        ("0", 0.0),
        ("31536000", MAX_RETRY_AFTER_SECONDS),
        ("9" * 40, MAX_RETRY_AFTER_SECONDS),
        ("Sat, 10 Jan 2026 12:01:30 GMT", 90.0),
        ("Sat, 10 Jan 2026 11:00:00 GMT", 0.0),
        ("Sat, 10 Jan 2099 11:00:00 GMT", MAX_RETRY_AFTER_SECONDS),
        ("²", None),
        ("-5", None),
        ("soon", None),
        ("Sat, 10 Jan 99999999999999999999 12:00:00 GMT", None),
        ("Sat, 10 Jan 2026 12:00:00 +99999999999999999999", None),
    ],
)
def test_is_understood_and_bounded(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, now=NOW) == seconds
