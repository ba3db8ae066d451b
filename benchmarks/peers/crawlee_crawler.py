"""The peer: crawlee's PlaywrightCrawler visiting the same match pages, for a time.

Runs in its own virtual environment (crawlee.txt) and imports nothing of VictoryLine. Tuned for speed:
one browser with one shared context that is never retired, exactly the given number of pages at once (its
autoscaling would start with one), stylesheets, images and fonts blocked in its own way (inside Chromium, which is
cheaper than routing), everything kept in memory, no generated fingerprints, no session pool, no retries, no robots.txt,
and the state taken from the page's own data blob as soon as the document is there. A page is opened and closed for
every request: it has no other mode.
"""

import argparse
import asyncio
import itertools
import json
import logging
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

from crawlee import ConcurrencySettings, Request
from crawlee.browsers import BrowserPool, PlaywrightBrowserPlugin
from crawlee.crawlers import (
    BasicCrawlingContext,
    PlaywrightCrawler,
    PlaywrightCrawlingContext,
    PlaywrightPreNavCrawlingContext,
)
from crawlee.storage_clients import MemoryStorageClient

# Last, so that no module of this folder hides a package of its name.
sys.path.append(str(Path(__file__).parent))

from crex_page import ARGUMENTS, Window

A_LONG_TIME = timedelta(hours=1)


def make_crawler(chromium: str, pages: int) -> PlaywrightCrawler:
    plugin = PlaywrightBrowserPlugin(
        browser_launch_options={
            "executable_path": chromium,
            "headless": True,
            "chromium_sandbox": os.geteuid() != 0,
            "args": ARGUMENTS,
        },
        max_open_pages_per_browser=2 * pages,  # one that is closing must not bring a second browser
    )
    return PlaywrightCrawler(
        browser_pool=BrowserPool(
            [plugin], retire_browser_after_page_count=1_000_000, browser_inactive_threshold=A_LONG_TIME
        ),
        goto_options={"wait_until": "domcontentloaded"},
        concurrency_settings=ConcurrencySettings(
            min_concurrency=pages, max_concurrency=pages, desired_concurrency=pages
        ),
        storage_client=MemoryStorageClient(),
        use_session_pool=False,
        retry_on_blocked=False,
        max_request_retries=0,
        respect_robots_txt_file=False,
        configure_logging=False,
    )


async def crawl(chosen: argparse.Namespace) -> None:
    window = Window(chosen.output, seconds=chosen.seconds, pages=chosen.pages)
    matches = itertools.cycle(json.loads(chosen.matches.read_text(encoding="utf-8")))
    numbers = itertools.count()
    crawler = make_crawler(chosen.chromium, chosen.pages)

    def next_request() -> Request:
        match = next(matches)
        return Request.from_url(match["url"], unique_key=str(next(numbers)), user_data={"key": match["key"]})

    @crawler.pre_navigation_hook
    async def block(context: PlaywrightPreNavCrawlingContext) -> None:
        context.request.user_data["asked_at"] = time.time()
        await context.block_requests()

    @crawler.router.default_handler
    async def take(context: PlaywrightCrawlingContext) -> None:
        blob = await context.page.locator("script#app-root-state").text_content()
        data = context.request.user_data
        window.read(str(data["key"]), float(str(data["asked_at"])), blob or "")
        await go_on()

    @crawler.failed_request_handler
    async def failed(context: BasicCrawlingContext, error: Exception) -> None:
        window.failed(str(context.request.user_data["key"]), str(error))
        await go_on()

    async def go_on() -> None:
        if window.is_over():
            crawler.stop("the time is over")
        else:
            await crawler.add_requests([next_request()])

    # Always a few more waiting than are under way, so that no page waits for the next request to be written.
    await crawler.run([next_request() for _ in range(2 * chosen.pages)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=Path, required=True, help="JSON list of {key, url}")
    parser.add_argument("--output", type=Path, required=True, help="one JSON line a visit")
    parser.add_argument("--chromium", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--pages", type=int, default=8)
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(crawl(parser.parse_args()))


if __name__ == "__main__":
    main()
