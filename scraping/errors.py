"""What can go wrong while reading a match, named by what happens next.

ScrapingError
├── Transient      timeout, network, 5xx            -> try again, later each time
├── Blocked        403, 429, challenge page         -> leave the source alone until it lets us in
│   └── RobotsRefused     its robots.txt forbids the page; nothing was sent there
├── AuthExpired    401, lost session                -> one fresh session, then as Blocked
│   └── NoToken           its token service gives none: the session is not to blame, and stays
├── Drift          the page or its JSON has changed -> fallbacks, then a dead letter with evidence
│   ├── LayoutChanged
│   ├── SchemaBreak
│   ├── PayloadRejected   parsed, but not fit to be served (wrong match, goes backwards, holes)
│   └── EgressRefused     the source leads us where we must not go; nothing was sent there
├── Gone           404, 410                         -> final sync, the match is over
├── ResourceLost   browser or driver died           -> replace it, costs the task nothing
│   └── PageCrashed       only this page: the browser is replaced when it happens again
├── StoreAway      our database cannot be reached   -> costs the task nothing
│   └── NotStored         it did not take a reading, which is kept and written later
├── BreakerOpen    the source is left alone for now -> later, as if it had not been tried
│   └── OverBudget        its traffic of today is used up, and only a visit would help
└── StaleFence     somebody else owns the task now  -> drop the work, nothing was written
Anything else is a bug: dead letter with its stack.
"""

# ruff: noqa: N818 - named by what happens next, not by being errors

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scraping.outage.spool import HeldMatch
    from scraping.payloads import Payload


class ErrorClass(StrEnum):
    TRANSIENT = "transient"
    BLOCKED = "blocked"
    AUTH = "auth"
    DRIFT = "drift"
    GONE = "gone"
    RESOURCE = "resource"
    STORE = "store"
    BUG = "bug"


class ScrapingError(Exception):
    """Root of everything that reading a match can raise on purpose."""

    error_class = ErrorClass.BUG
    error_type = "bug"  # the word in error rows and metrics: network, parsing, browser, database, auth

    def __init__(
        self,
        message: str,
        *,
        http_status: int | None = None,
        retry_after_seconds: float | None = None,
        url: str = "",
        evidence: str = "",
    ) -> None:
        super().__init__(message)
        self.http_status = http_status
        self.retry_after_seconds = retry_after_seconds
        self.url = url
        self.evidence = evidence


class Transient(ScrapingError):
    error_class = ErrorClass.TRANSIENT
    error_type = "network"


class ReadTimeout(Transient):
    error_type = "timeout"


class Blocked(ScrapingError):
    error_class = ErrorClass.BLOCKED
    error_type = "blocked"


class RobotsRefused(Blocked):
    error_type = "robots"


class AuthExpired(ScrapingError):
    error_class = ErrorClass.AUTH
    error_type = "auth"


class NoToken(AuthExpired):
    """There is no token to ask with; what is public on the page is."""


class Drift(ScrapingError):
    error_class = ErrorClass.DRIFT
    error_type = "parsing"


class LayoutChanged(Drift):
    error_type = "layout"


class SchemaBreak(Drift):
    error_type = "schema"


class EgressRefused(Drift):
    error_type = "egress"


class PayloadRejected(Drift):
    error_type = "rejected"


class Gone(ScrapingError):
    error_class = ErrorClass.GONE
    error_type = "gone"


class ResourceLost(ScrapingError):
    error_class = ErrorClass.RESOURCE
    error_type = "browser"


class PageCrashed(ResourceLost):
    """The page's own process died; the browser and its other pages live on."""


class StoreAway(ScrapingError):
    error_class = ErrorClass.STORE
    error_type = "database"


class NotStored(StoreAway):
    """Carries the reading that the database did not take, so that it is not lost with the error."""

    def __init__(self, message: str, *, match: HeldMatch, payload: Payload) -> None:
        super().__init__(message)
        self.match = match
        self.payload = payload


class BreakerOpen(ScrapingError):
    """The breaker opened after the task was hinted: it waits until then."""

    error_class = ErrorClass.RESOURCE
    error_type = "breaker_open"

    def __init__(self, message: str, *, until: datetime) -> None:
        super().__init__(message)
        self.until = until


class OverBudget(BreakerOpen):
    """The source may not be visited any more today; whatever can be read directly is read."""

    error_type = "over_budget"


class StaleFence(ScrapingError):
    """Another worker has the task: whatever this one found must not be written."""

    error_class = ErrorClass.RESOURCE
    error_type = "stale_fence"
