"""The peer scrapy-playwright: visits the same match pages for a time.

Runs in its own virtual environment (scrapy-playwright.txt) and imports nothing of VictoryLine. Two modes:

- plain, as its documentation shows it: `meta={"playwright": True}`, a page is opened and closed for every request;
- `--reuse-pages`: pages stay open between visits, with the browser's own headers (by default those of every request are
  rewritten). Its documentation offers both; about a third less CPU.

Both modes are tuned for speed: one browser, one shared context, the given number of pages at once, the resources
blocked that VictoryLine blocks, no throttle, no retries, no robots.txt, and the state taken from the page's data blob
as soon as the document is loaded.
"""

import argparse
import itertools
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import CloseSpider
from scrapy.http import Response

# Last, so that no module of this folder hides a package of its name.
sys.path.append(str(Path(__file__).parent))

from crex_page import ARGUMENTS, BLOCKED_TYPES, Window


def abort(request: Any) -> bool:
    return request.resource_type in BLOCKED_TYPES


class Matches(scrapy.Spider):
    """Keeps `pages` visits under way."""

    name = "matches"

    def __init__(self, matches: list[dict[str, str]], pages: int, reuse: bool, window: Window) -> None:
        super().__init__()
        self._matches = itertools.cycle(matches)
        self._pages, self._reuse, self._window = pages, reuse, window

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for _ in range(self._pages):
            yield self._next()

    def _next(self, page: Any = None) -> scrapy.Request:
        match = next(self._matches)
        meta: dict[str, Any] = {
            "playwright": True,
            "playwright_page_goto_kwargs": {"wait_until": "domcontentloaded"},
            "playwright_include_page": self._reuse,
            "key": match["key"],
            "asked_at": time.time(),
        }
        if page is not None:
            meta["playwright_page"] = page
        return scrapy.Request(match["url"], self.parse, errback=self.failed, dont_filter=True, meta=meta)

    def parse(self, response: Response) -> Iterator[scrapy.Request]:
        blob = response.css("script#app-root-state::text").get() or ""
        self._window.read(response.meta["key"], response.meta["asked_at"], blob)
        yield self._go_on(response.meta.get("playwright_page"))

    def failed(self, failure: Any) -> Iterator[scrapy.Request]:
        self._window.failed(failure.request.meta["key"], str(failure.value))
        yield self._go_on(failure.request.meta.get("playwright_page"))

    def _go_on(self, page: Any) -> scrapy.Request:
        if self._window.is_over():
            raise CloseSpider("the time is over")
        return self._next(page)


def settings(chromium: str, pages: int, *, reuse: bool) -> dict[str, Any]:
    handler = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
    return {
        "DOWNLOAD_HANDLERS": {"http": handler, "https": handler},
        "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
        "PLAYWRIGHT_LAUNCH_OPTIONS": {
            "executable_path": chromium,
            "headless": True,
            "chromium_sandbox": os.geteuid() != 0,
            "args": ARGUMENTS,
        },
        "PLAYWRIGHT_ABORT_REQUEST": abort,
        **({"PLAYWRIGHT_PROCESS_REQUEST_HEADERS": None} if reuse else {}),
        "PLAYWRIGHT_MAX_PAGES_PER_CONTEXT": pages,
        "CONCURRENT_REQUESTS": pages,
        "CONCURRENT_REQUESTS_PER_DOMAIN": pages,
        "DOWNLOAD_DELAY": 0,
        "RETRY_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "COOKIES_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "WARNING",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=Path, required=True, help="JSON list of {key, url}")
    parser.add_argument("--output", type=Path, required=True, help="one JSON line a visit")
    parser.add_argument("--chromium", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--pages", type=int, default=8)
    parser.add_argument("--reuse-pages", action="store_true")
    chosen = parser.parse_args()
    process = CrawlerProcess(settings(chosen.chromium, chosen.pages, reuse=chosen.reuse_pages))
    process.crawl(
        Matches,
        matches=json.loads(chosen.matches.read_text(encoding="utf-8")),
        pages=chosen.pages,
        reuse=chosen.reuse_pages,
        window=Window(chosen.output, seconds=chosen.seconds, pages=chosen.pages),
    )
    process.start()


if __name__ == "__main__":
    main()
