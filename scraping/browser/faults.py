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
ASK_SECONDS = 1.0


async def cause_of(failure: ScrapingError, page: Page, *, is_browser_leaving: bool) -> ScrapingError:
    """Chromium says "aborted" of a loading that broke off with its page or browser: then that is the error, not this.

    Else our own faults would be counted against the source.
    """
    if "ERR_ABORTED" not in str(failure):
        return failure
    if is_browser_leaving:
        return ResourceLost("the browser was replaced while the page was loaded", url=failure.url)
    try:
        await bounded(page.evaluate("0"), ASK_SECONDS, "asking an aborted page")
    except Exception as error:  # noqa: BLE001 - only what it says matters
        behind = translate(error, url=failure.url)
        return behind if isinstance(behind, ResourceLost) else failure
    return failure


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
