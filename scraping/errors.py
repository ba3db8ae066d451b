"""Every way in which reading a match can fail: the exceptions, their classes, and the one table of what follows.

ScrapingError
├── Transient             network, 5xx
│   └── ReadTimeout       the source or the page did not respond in time
├── Blocked               403, 429
│   ├── RobotsRefused     robots.txt forbids the page; no request was sent
│   └── Challenged        a bot challenge in place of the page
├── AuthExpired           401, expired session
│   └── NoToken           the token service returned no token; the session is not at fault and is kept
├── Drift                 the page or its JSON has changed
│   ├── LayoutChanged
│   ├── SchemaBreak
│   ├── PayloadRejected   parsed, but failed validation (wrong match, score goes backwards, missing parts)
│   └── EgressRefused     a request to a host outside the source's list was refused before it was sent
├── Gone                  404, 410
├── ResourceLost          browser or driver died
│   └── PageCrashed       only this page; the browser is replaced if it happens again
├── StoreAway             the database is unreachable
│   └── NotStored         carries the payload that could not be written; it goes to the spool
├── BreakerOpen           the source must not be read now; the task is postponed, the attempt does not count
│   └── OverBudget        the source's daily traffic is used up and only a visit would help
└── StaleFence            another worker owns the task now; nothing is written
Any other exception is a bug.

CONTRIBUTING.md has the recipe for a new error class. tests/scraping/test_error_classes.py fails for a forgotten place.
"""

# ruff: noqa: N818 - named by what happens next, not by being errors

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scraping.outage.spool import HeldMatch
    from scraping.payloads import Payload


class ErrorClass(StrEnum):
    TRANSIENT = "transient"
    BLOCKED = "blocked"
    CHALLENGE = "challenge"
    AUTH = "auth"
    DRIFT = "drift"
    GONE = "gone"
    RESOURCE = "resource"
    STORE = "store"
    BUG = "bug"


class ErrorType(StrEnum):
    """The kind of an error as reports and metrics count it (DM-5, FR-015); the class says what follows."""

    NETWORK = "network"
    PARSING = "parsing"
    BROWSER = "browser"
    DATABASE = "database"
    AUTH = "auth"


@dataclass(frozen=True, kw_only=True)
class ErrorRule:
    """All consequences of one error class. Fields without a default must be decided for every new class."""

    error_type: ErrorType
    attempts: int | None  # then the task is dead; None: as many as the source's retry policy allows
    first_pause_seconds: float | None  # doubles with every attempt; None: the source's retry policy
    longest_pause_seconds: float | None  # jitter included; a longer Retry-After wins; None: the source's retry policy
    is_charged: bool  # counts as an attempt. False for faults of our own, which retry without jitter
    # Counts against the breakers of the match and of the source, and slows the match down. A charged class without it
    # counts as a good call of the source.
    feeds_breaker: bool
    pauses_match: bool  # a failed attempt of this class counts towards pausing the match
    rotates_session: bool
    keeps_evidence: bool  # of every attempt; evidence of the attempt a task dies of is always kept
    is_soft: bool  # may end without an operator's action; reported as soft or hard in the metrics
    advice: str  # for operators, beside the dead task and in the alert
    first_retry_at_once: bool = False
    completes_match: bool = False  # the last attempt ends the match instead of leaving a dead letter
    skips_task: bool = False  # the last attempt ends the task as skipped; there is nothing to repair or to retry


MAX_UNCHARGED_ATTEMPTS = 10  # a page that kills every browser must end somewhere

_BLOCKED = ErrorRule(
    error_type=ErrorType.NETWORK,
    attempts=None,
    first_pause_seconds=15.0,  # a source that refuses us needs a longer pause than a network error
    longest_pause_seconds=60.0,  # a live match waits no longer of itself
    is_charged=True,
    feeds_breaker=True,
    pauses_match=True,
    rotates_session=True,
    keeps_evidence=True,
    is_soft=True,
    advice="The source refuses our requests. Raise the source's minimum interval, or use another way out (proxies).",
)
_RESOURCE = ErrorRule(
    error_type=ErrorType.BROWSER,
    attempts=MAX_UNCHARGED_ATTEMPTS,
    first_pause_seconds=0.2,
    longest_pause_seconds=15.0,
    is_charged=False,
    feeds_breaker=False,
    pauses_match=False,
    rotates_session=False,
    keeps_evidence=False,
    is_soft=True,
    advice="The fault is ours: a browser or a worker was lost repeatedly. "
    "Check the workers' memory, and the engine's log at that time.",
)
_TRANSIENT = ErrorRule(
    error_type=ErrorType.NETWORK,
    attempts=None,
    first_pause_seconds=None,
    longest_pause_seconds=None,
    is_charged=True,
    feeds_breaker=True,
    pauses_match=True,
    rotates_session=False,
    keeps_evidence=False,
    is_soft=True,
    advice="The source was slow or unreachable; the data served has not changed. "
    "Check whether it answers now (its breaker, its other matches).",
)
ERROR_RULES: dict[ErrorClass, ErrorRule] = {
    ErrorClass.TRANSIENT: _TRANSIENT,
    ErrorClass.BLOCKED: _BLOCKED,
    ErrorClass.CHALLENGE: replace(
        _BLOCKED,
        attempts=2,  # the second one in a fresh session
        pauses_match=False,  # it is skipped and tried again after a minute; five minutes would be too long
        is_soft=False,
        skips_task=True,
        advice="The source shows a bot challenge, and a fresh session did not pass it; its sessions are kept. "
        "Open its page in the evidence. Raise its minimum interval, use other proxies, or disable the source.",
    ),
    ErrorClass.AUTH: replace(
        _BLOCKED,
        error_type=ErrorType.AUTH,
        keeps_evidence=False,
        first_retry_at_once=True,  # with a fresh session; after that as for BLOCKED
        advice="The source requires a session that we could not get. Check whether its page opens without a login.",
    ),
    ErrorClass.DRIFT: replace(
        _TRANSIENT,
        error_type=ErrorType.PARSING,
        attempts=2,
        keeps_evidence=True,
        is_soft=False,
        first_retry_at_once=True,  # through another read mode
        advice="The page or its answers have changed, or failed validation; the last good state is still served. "
        "Compare the evidence with the source's selectors and its adapter in scraping/sources, correct them, deploy.",
    ),
    ErrorClass.GONE: replace(
        _TRANSIENT,
        attempts=2,
        feeds_breaker=False,
        pauses_match=False,
        is_soft=False,
        completes_match=True,
        advice="The source no longer has the match. Check whether its address has changed.",
    ),
    ErrorClass.RESOURCE: _RESOURCE,
    ErrorClass.STORE: replace(
        _RESOURCE,
        error_type=ErrorType.DATABASE,
        advice="Our database refused the write. Check it with manage.py doctor.",
    ),
    ErrorClass.BUG: replace(
        _TRANSIENT,
        error_type=ErrorType.PARSING,  # nearly always in the code that reads what a source has sent
        attempts=1,
        feeds_breaker=False,
        keeps_evidence=True,
        is_soft=False,
        advice="This is a bug in our code; the stack shows where. Fix it and deploy.",
    ),
}

SOURCE_FAULTS = frozenset(one for one, rule in ERROR_RULES.items() if rule.feeds_breaker)
OUR_FAULTS = frozenset(one for one, rule in ERROR_RULES.items() if not rule.is_charged)


class ScrapingError(Exception):
    error_class = ErrorClass.BUG
    error_code = "bug"  # in error rows and metrics: the error more exactly than by its class

    def __init__(
        self,
        message: str,
        *,
        http_status: int | None = None,
        retry_after_seconds: float | None = None,
        url: str = "",
        evidence: str = "",
        selector: str = "",  # selectors or JSON paths that found nothing
    ) -> None:
        super().__init__(message)
        self.http_status = http_status
        self.retry_after_seconds = retry_after_seconds
        self.url = url
        self.evidence = evidence
        self.selector = selector


class Transient(ScrapingError):
    error_class = ErrorClass.TRANSIENT
    error_code = "network"


class ReadTimeout(Transient):
    error_code = "timeout"


class Blocked(ScrapingError):
    error_class = ErrorClass.BLOCKED
    error_code = "blocked"


class RobotsRefused(Blocked):
    error_code = "robots"


class Challenged(Blocked):
    """A page or a body that asks for proof of a person, in place of the data."""

    error_class = ErrorClass.CHALLENGE
    error_code = "challenge"


class AuthExpired(ScrapingError):
    error_class = ErrorClass.AUTH
    error_code = "auth"


class NoToken(AuthExpired):
    """There is no token. Public endpoints and the page can still be read."""


class Drift(ScrapingError):
    error_class = ErrorClass.DRIFT
    error_code = "parsing"


class LayoutChanged(Drift):
    error_code = "layout"


class SchemaBreak(Drift):
    error_code = "schema"


class EgressRefused(Drift):
    error_code = "egress"


class PayloadRejected(Drift):
    error_code = "rejected"


class Gone(ScrapingError):
    error_class = ErrorClass.GONE
    error_code = "gone"


class ResourceLost(ScrapingError):
    error_class = ErrorClass.RESOURCE
    error_code = "browser"


class PageCrashed(ResourceLost):
    """The page's renderer process died; the browser and its other pages still run."""


class StoreAway(ScrapingError):
    error_class = ErrorClass.STORE
    error_code = "database"


class NotStored(StoreAway):
    """Carries the payload that the database did not accept, so that the spool can keep it."""

    def __init__(self, message: str, *, match: HeldMatch, payload: Payload) -> None:
        super().__init__(message)
        self.match = match
        self.payload = payload


class BreakerOpen(ScrapingError):
    """The breaker opened after the task was hinted; the task is postponed until `until`."""

    error_class = ErrorClass.RESOURCE
    error_code = "breaker_open"

    def __init__(self, message: str, *, until: datetime) -> None:
        super().__init__(message)
        self.until = until


class OverBudget(BreakerOpen):
    """The source's traffic budget of today is spent: no visits, direct reads go on."""

    error_code = "over_budget"


class StaleFence(ScrapingError):
    """Another worker owns the task: the result of this attempt must not be written."""

    error_class = ErrorClass.RESOURCE
    error_code = "stale_fence"


_STATUS_ERRORS: dict[int, type[ScrapingError]] = {
    401: AuthExpired,
    403: Blocked,
    404: Gone,
    408: Transient,
    410: Gone,
    425: Transient,
    429: Blocked,
}


def error_for_status(status: int) -> type[ScrapingError] | None:
    """Returns the error for an HTTP status, sent as status or inside a body; None for statuses that have none."""
    return _STATUS_ERRORS.get(status) or (Transient if status >= 500 else None)
