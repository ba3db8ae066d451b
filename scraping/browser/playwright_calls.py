"""Playwright calls: every await gets a timeout, and every error becomes one of ours.

Guards against awaits that never return: Playwright's `content`, `evaluate`, `title` and `close` have no timeout of
their own and can hang for ever, for example after the driver has died.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from typing import TypeVar

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page
from playwright.async_api import TimeoutError as PlaywrightTimeout

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
ABORTED_PAGE_SECONDS = 1.0

T = TypeVar("T")


async def with_timeout(awaitable: Awaitable[T], seconds: float, operation: str) -> T:
    """Awaits for at most this long; the ReadTimeout names the operation."""
    try:
        async with asyncio.timeout(seconds):
            return await awaitable
    except TimeoutError as error:
        raise ReadTimeout(f"{operation} took longer than {seconds:g} s") from error


async def underlying_error(failure: ScrapingError, page: Page, *, is_browser_leaving: bool) -> ScrapingError:
    """Returns the loss of page or browser that lies behind an aborted load; else the failure itself.

    Chromium reports "aborted" for both; without this, our own faults would count against the source.
    """
    if "ERR_ABORTED" not in str(failure):
        return failure
    if is_browser_leaving:
        return ResourceLost("the browser was replaced while the page was loaded", url=failure.url)
    try:
        await with_timeout(page.evaluate("0"), ABORTED_PAGE_SECONDS, "evaluating in an aborted page")
    except Exception as error:  # noqa: BLE001 - only its message matters
        behind = translate_error(error, url=failure.url)
        return behind if isinstance(behind, ResourceLost) else failure
    return failure


def translate_error(error: Exception, *, url: str) -> ScrapingError:
    """Returns the ScrapingError for an error of Playwright or the network; raises any other error."""
    if isinstance(error, ScrapingError):
        return error
    message = re.split(r"\n(?:Call log|Browser logs|=+ logs)", str(error))[0].strip()[:400]
    if isinstance(error, PlaywrightTimeout):
        return ReadTimeout(message, url=url)
    if any(text in message.lower() for text in _CRASHED):
        return PageCrashed(message, url=url)
    if any(text in message.lower() for text in _LOST):
        return ResourceLost(message, url=url)
    if isinstance(error, PlaywrightError | ConnectionError | OSError):
        return Transient(message, url=url)
    raise error
