"""Responses and browser errors become error classes: tables of cases."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from scraping.browser.playwright_calls import translate_error
from scraping.errors import (
    AuthExpired,
    Blocked,
    Challenged,
    Drift,
    Gone,
    PageCrashed,
    ReadTimeout,
    ResourceLost,
    ScrapingError,
    Transient,
)
from scraping.reading.access import error_for, without_failed_documents
from scraping.readings import Document, Reading, ReadMode, RefInfo
from tests.factories import NOW


class TestDocuments:
    """The error class of an HTTP status."""

    @pytest.mark.parametrize(
        ("status", "expected"),
        [
            (200, None),
            (204, None),
            (302, Drift),
            (400, Drift),
            (401, AuthExpired),
            (403, Blocked),
            (404, Gone),
            (408, Transient),
            (410, Gone),
            (418, Drift),
            (425, Transient),
            (429, Blocked),
            (500, Transient),
            (503, Transient),
            (599, Transient),
        ],
    )
    def test_becomes_an_error(self, status: int, expected: type[ScrapingError] | None) -> None:
        error = error_for(Document("live", "https://x/live", status, "text/plain", b"", retry_after_seconds=7))
        assert type(error) is (expected or type(None))
        assert error is None or (error.http_status, error.url, error.retry_after_seconds) == (
            status,
            "https://x/live",
            7,
        )

    @pytest.mark.requirement("FS-9")
    @pytest.mark.parametrize("status", [403, 429, 503])
    @pytest.mark.parametrize(
        ("body", "is_challenge"),
        [
            (b"<title>Just a moment...</title>", True),
            (b'{"error":{"code":403,"reason":"challenge"}}', True),
            (b"<title>403 Forbidden</title>", False),
            (b'{"error":{"code":403,"reason":"Forbidden"}}', False),
            (b"", False),
        ],
    )
    def test_a_refusal_may_be_a_challenge(self, status: int, body: bytes, is_challenge: bool) -> None:
        error = error_for(Document("live", "https://x/live", status, "", body, retry_after_seconds=7))
        assert error is not None
        assert isinstance(error, Challenged) is is_challenge
        assert (error.http_status, error.retry_after_seconds) == (status, 7)

    @pytest.mark.parametrize(
        ("documents", "expected"),
        [
            ({"page": 200, "live": 200, "feed": 200}, {"page", "live", "feed"}),
            ({"page": 200, "live": 200, "feed": 500}, {"page", "live"}),
            ({"live": 200}, {"live"}),
            ({"page": 503, "live": 200}, Transient),
            ({"page": 200, "live": 403}, Blocked),
        ],
    )
    def test_only_what_is_required_fails_a_reading(self, documents: dict[str, int], expected: Any) -> None:
        answers = {name: Document(name, "https://x", status, "", b"") for name, status in documents.items()}
        reading = Reading(RefInfo("13KM", "https://x"), ReadMode.VISIT, NOW, answers)
        if isinstance(expected, set):
            assert set(without_failed_documents(reading, ["live"]).documents) == expected
        else:
            with pytest.raises(expected):
                without_failed_documents(reading, ["live"])

    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            (PlaywrightError("Target page, context or browser has been closed"), ResourceLost),
            (PlaywrightError("Connection closed while reading from the driver"), ResourceLost),
            (PlaywrightError("Page crashed"), PageCrashed),
            (PlaywrightError("net::ERR_CONNECTION_RESET at https://x"), Transient),
            (PlaywrightError("net::ERR_NAME_NOT_RESOLVED at https://x"), Transient),
            (PlaywrightTimeout("Timeout 30000ms exceeded"), ReadTimeout),
            (ConnectionResetError("reset"), Transient),
            (Blocked("challenge"), Blocked),
        ],
    )
    def test_browser_errors_are_classified(self, error: Exception, expected: type[ScrapingError]) -> None:
        assert type(translate_error(error, url="https://x")) is expected

    def test_a_bug_stays_a_bug(self) -> None:
        with pytest.raises(KeyError):
            translate_error(KeyError("x"), url="https://x")
