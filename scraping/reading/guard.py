"""Around every reading: the session it goes through, what robots.txt says, and what its failure means for both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from scraping.browser.session import Session
from scraping.browser.sessions import Sessions
from scraping.errors import (
    ERROR_RULES,
    Drift,
    NoToken,
    PageCrashed,
    ReadTimeout,
    ResourceLost,
    ScrapingError,
    error_for_status,
)
from scraping.reading.robots import Robots
from scraping.reading.target import Observer
from scraping.readings import PAGE, Document, Endpoint, Reading, Site, evidence_from, report_stage
from scraping.sources.challenge import is_challenge

FORBIDDEN = 403
CHALLENGE_BYTES = 200_000  # a page that asks whether we are human is a small one


class Guard:
    """Lives on the loop thread."""

    def __init__(self, sessions: Sessions, observer: Observer | None) -> None:
        self.sessions = sessions
        self._observer = observer
        self._robots = Robots()

    async def read(
        self,
        site: Site,
        required: tuple[Endpoint, ...],
        read: Callable[[Session], Awaitable[Reading]],
        *,
        urls: tuple[str, ...],
        is_last_chance: bool = False,
        uses_browser: bool = True,
    ) -> Reading:
        """Read through the source's session. A lost or hung browser gets replaced, a refused session forgotten.

        `urls`: what is asked for, and must be allowed by the site's robots.txt.
        `is_last_chance`: the same session ran out of time before; if it does so again, another one is tried.
        """
        session = await self.sessions.get(site, is_visit=uses_browser)
        await self._robots.check(session.wire, site, *urls)
        report_stage("BROWSER_READY")
        try:
            reading = await read(session)
            if site.selectors:
                reading = replace(reading, selectors=site.selectors)
            self.observe(site, reading)
            with evidence_from(reading):
                return checked(reading, required)
        except PageCrashed as error:  # the browser lives on, unless this comes too often
            self.sessions.host.report_fault(session.generation, str(error))
            raise
        except ResourceLost as error:
            self.sessions.host.report_lost(session.generation, str(error))
            raise
        except ReadTimeout as error:
            if uses_browser and not await self.sessions.host.probe():
                raise ResourceLost("the browser hung and is being replaced") from None
            if is_last_chance:
                self.sessions.drop(session, cause=error)
            raise
        except ScrapingError as error:
            if ERROR_RULES[error.error_class].rotates_session and not isinstance(error, NoToken):
                self.sessions.drop(session, cause=error)
            raise

    def observe(self, site: Site, reading: Reading) -> None:
        if self._observer is not None:
            self._observer.reading(site.key, reading)


def looks_wrong(page: Document | None, *, is_suspect: bool) -> bool:
    """Is a picture of it worth its milliseconds? Not of every page: most are never looked at again."""
    if is_suspect or page is None:
        return is_suspect
    if page.status == FORBIDDEN:
        return True
    return len(page.body) < CHALLENGE_BYTES and is_challenge(page.text())


def checked(reading: Reading, endpoints: tuple[Endpoint, ...]) -> Reading:
    """Raise for the page or a required document that came with an error; leave out any other such document."""
    needed = {PAGE} | {endpoint.name for endpoint in endpoints if endpoint.is_required}
    errors: dict[str, ScrapingError] = {
        name: error for name, document in reading.documents.items() if (error := error_for(document)) is not None
    }
    for name in needed & errors.keys():
        raise errors[name]
    return replace(reading, documents={name: one for name, one in reading.documents.items() if name not in errors})


def error_for(document: Document) -> ScrapingError | None:
    """Returns the error that the document's HTTP status means; None for a good one."""
    if document.status < 300:
        return None
    kind = error_for_status(document.status) or Drift
    return kind(
        f"{document.name} answered {document.status}",
        http_status=document.status,
        url=document.url,
        retry_after_seconds=document.retry_after_seconds,
        evidence=document.text()[:2000],
    )
