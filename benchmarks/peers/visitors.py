"""The peers of the polls bench. The first is the one that `ratio` compares with."""

from __future__ import annotations

from benchmarks.peers.visitor import HERE, Visitor

SPIDER = HERE / "scrapy_playwright_spider.py"
PLAIN = Visitor("scrapy-playwright", "scrapy-playwright", SPIDER)
TUNED = Visitor("scrapy-playwright, pages reused", "scrapy-playwright", SPIDER, ("--reuse-pages",))
CRAWLEE = Visitor("crawlee", "crawlee", HERE / "crawlee_crawler.py")
VISITORS = (PLAIN, TUNED, CRAWLEE)
