"""The sessions of a worker, one a source: who asks gets the one that works, a refused one is forgotten."""

from __future__ import annotations

import asyncio
import contextlib

from scraping.browser.host import BrowserHost
from scraping.browser.session import Session
from scraping.readings import Site


class Sessions:
    """Lives on the loop thread."""

    def __init__(self, host: BrowserHost) -> None:
        self.host = host
        self._options = host.options
        self._by_site: dict[str, Session] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def context_count(self) -> int:
        return sum(session.has_context for session in self._by_site.values())

    @property
    def page_count(self) -> int:
        return sum(session.page_count for session in self._by_site.values())

    async def get(self, site: Site) -> Session:
        """The session at a source; made where there is none, or where the source is now to be read otherwise."""
        session = self._by_site.get(site.key)
        if session is not None and session.site != site:
            self.drop(session)
            session = None
        if session is None:
            session = self._by_site[site.key] = Session(site, self.host, self._options)
        return session

    def is_warm(self, key: str) -> bool:
        """Has a visit earned what direct reads of this source need?"""
        session = self._by_site.get(key)
        return session is not None and session.is_warm

    def drop(self, session: Session) -> None:
        """Forget a session: the next one is a stranger to the source. A newer session stays."""
        if self._by_site.get(session.site.key) is session:
            del self._by_site[session.site.key]
        # Others may be reading through it: they get their answers before it closes.
        closing = asyncio.ensure_future(self._close_later(session))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close_all(self) -> None:
        """Forget every session at once."""
        closing, sessions = tuple(self._closing), tuple(self._by_site.values())
        self._by_site.clear()
        for task in closing:
            task.cancel()
        await asyncio.gather(*closing, return_exceptions=True)
        for session in sessions:
            with contextlib.suppress(Exception):
                await session.close()

    async def stop(self) -> None:
        await self.close_all()
        await self.host.stop()

    async def _close_later(self, session: Session) -> None:
        try:
            await asyncio.sleep(self._options.request_timeout_seconds)
        finally:
            with contextlib.suppress(Exception):
                await session.close()
