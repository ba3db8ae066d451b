"""Playwright's errors, sorted into ours by what happens next."""

from __future__ import annotations

import re

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page
from playwright.async_api import TimeoutError as PlaywrightTimeout

from scraping.browser.bounded import bounded
from scraping.errors import PageCrashed, ReadTimeout, ResourceLost, ScrapingError, Transient

_LOST = (
    "has been closed",
    "connection closed",
    "target closed",
    "browser closed",
    "context disposed",
    "context was destroyed",
    "failed to open a new tab",
    "pipe closed",
    "event loop is closed",
)
_CRASHED = ("target crashed", "page crashed")
CRASH_SECONDS = 1.0


async def has_crashed(page: Page, failure: ScrapingError) -> bool:
    """Was it the page's own end that broke off its loading? Chromium then says no more than that it was aborted."""
    if "ERR_ABORTED" not in str(failure):
        return False
    try:
        await bounded(page.evaluate("0"), CRASH_SECONDS, "asking an aborted page")
    except Exception as error:  # noqa: BLE001 - only what it says matters
        return any(words in str(error).lower() for words in _CRASHED)
    return False


def translate(error: Exception, *, url: str) -> ScrapingError:
    """The error of ours that says the same; our own pass through."""
    if isinstance(error, ScrapingError):
        return error
    message = re.split(r"\n(?:Call log|Browser logs|=+ logs)", str(error))[0].strip()[:400]
    if isinstance(error, PlaywrightTimeout):
        return ReadTimeout(message, url=url)
    if any(words in message.lower() for words in _CRASHED):
        return PageCrashed(message, url=url)
    if any(words in message.lower() for words in _LOST):
        return ResourceLost(message, url=url)
    if isinstance(error, PlaywrightError | ConnectionError | OSError):
        return Transient(message, url=url)
    raise error
