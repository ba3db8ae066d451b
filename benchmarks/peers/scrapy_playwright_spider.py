"""The peer: scrapy-playwright visiting the same match pages, again and again, for a time.

Runs in an environment of its own (scrapy-playwright.txt) and imports nothing of VictoryLine. Configured as well as we
know how: one browser, one shared context, the resources blocked that VictoryLine blocks, no throttle, no retries, no
robots.txt, the browser's own headers (the default rewrites those of every request), pages that stay open from one visit
to the next (about a third less CPU; --fresh-pages is the plain way), and the state taken from the page's own data blob
as soon as the document is there, so that nothing is waited for that is not needed.
"""

import argparse
import itertools
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import CloseSpider
from scrapy.http import Response

BLOCKED_TYPES = {"image", "media", "font", "stylesheet"}
CODES = (("&g;", ">"), ("&l;", "<"), ("&s;", "'"), ("&q;", '"'), ("&a;", "&"))  # as the page's own script undoes them


def abort(request: Any) -> bool:
    return request.resource_type in BLOCKED_TYPES


class Matches(scrapy.Spider):
    """Keeps `pages` visits under way. The clock starts when each has been done twice: browser and pages are warm."""

    name = "matches"

    def __init__(self, matches: list[dict[str, str]], seconds: float, pages: int, reuse: bool, output: Path) -> None:
        super().__init__()
        self._matches = itertools.cycle(matches)
        self._seconds, self._pages, self._reuse = seconds, pages, reuse
        self._output = output.open("w", encoding="utf-8")
        self._done, self._began = 0, 0.0

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
        try:
            self._write(key=response.meta["key"], asked_at=response.meta["asked_at"], **state_of(response))
        except (ValueError, KeyError, IndexError, TypeError) as error:
            self._write(key=response.meta["key"], error=f"{type(error).__name__}: {error}")
        yield self._go_on(response.meta.get("playwright_page"))

    def failed(self, failure: Any) -> Iterator[scrapy.Request]:
        self._write(key=failure.request.meta["key"], error=str(failure.value)[:300])
        yield self._go_on(failure.request.meta.get("playwright_page"))

    def _go_on(self, page: Any) -> scrapy.Request:
        self._done += 1
        now = time.time()
        if self._began and now > self._began + self._seconds:
            raise CloseSpider("the time is over")
        if not self._began and self._done >= 2 * self._pages:
            self._began = now
            self._write(window=[now, now + self._seconds])
        return self._next(page)

    def _write(self, **line: Any) -> None:
        self._output.write(json.dumps({"at": time.time(), **line}) + "\n")
        self._output.flush()


def state_of(response: Response) -> dict[str, Any]:
    """The same that VictoryLine takes from a match: teams, scores, last ball, and the newest page of balls."""
    text = response.css("script#app-root-state::text").get() or ""
    for code, character in CODES:
        text = text.replace(code, character)
    state = json.loads(text)
    live = next(value for name, value in state.items() if name.endswith("/getSV3"))
    feed = next(value for name, value in state.items() if name.endswith("/getBallFeeds"))
    return {"teams": live["a"], "scores": [live["j"], live["k"]], "last_ball": live["B"], "events": len(feed)}


def settings(chromium: str, pages: int) -> dict[str, Any]:
    handler = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
    return {
        "DOWNLOAD_HANDLERS": {"http": handler, "https": handler},
        "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
        "PLAYWRIGHT_LAUNCH_OPTIONS": {
            "executable_path": chromium,
            "headless": True,
            "chromium_sandbox": os.geteuid() != 0,
            "args": ["--disable-gpu", "--disable-extensions", "--disable-dev-shm-usage", "--mute-audio"],
        },
        "PLAYWRIGHT_ABORT_REQUEST": abort,
        "PLAYWRIGHT_PROCESS_REQUEST_HEADERS": None,
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
    parser.add_argument("--fresh-pages", action="store_true")
    chosen = parser.parse_args()
    process = CrawlerProcess(settings(chosen.chromium, chosen.pages))
    process.crawl(
        Matches,
        matches=json.loads(chosen.matches.read_text(encoding="utf-8")),
        seconds=chosen.seconds,
        pages=chosen.pages,
        reuse=not chosen.fresh_pages,
        output=chosen.output,
    )
    process.start()


if __name__ == "__main__":
    main()
