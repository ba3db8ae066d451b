"""No await without an end: Playwright's `content`, `evaluate`, `close` have no timeout of their own and can hang."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from scraping.errors import ReadTimeout

T = TypeVar("T")


async def bounded(awaitable: Awaitable[T], seconds: float, what: str) -> T:
    """Await, but not longer than this. ReadTimeout says what took too long."""
    try:
        async with asyncio.timeout(seconds):
            return await awaitable
    except TimeoutError as error:
        raise ReadTimeout(f"{what} took longer than {seconds:g} s") from error
