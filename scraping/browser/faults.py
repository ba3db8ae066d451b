"""Playwright's errors, sorted into ours by what happens next."""

from __future__ import annotations

import re

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from scraping.errors import ReadTimeout, ResourceLost, ScrapingError, Transient

_LOST = (
    "has been closed",
    "connection closed",
    "target closed",
    "target crashed",
    "page crashed",
    "browser closed",
    "context disposed",
    "context was destroyed",
    "failed to open a new tab",
    "pipe closed",
    "event loop is closed",
)


def translate(error: Exception, *, url: str) -> ScrapingError:
    """The error of ours that says the same; our own pass through."""
    if isinstance(error, ScrapingError):
        return error
    message = re.split(r"\n(?:Call log|Browser logs|=+ logs)", str(error))[0].strip()[:400]
    if isinstance(error, PlaywrightTimeout):
        return ReadTimeout(message, url=url)
    if any(words in message.lower() for words in _LOST):
        return ResourceLost(message, url=url)
    if isinstance(error, PlaywrightError | ConnectionError | OSError):
        return Transient(message, url=url)
    raise error
