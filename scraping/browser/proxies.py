"""Which proxy a session goes through: the good one that rested longest; one that failed is left alone for a while.

Guards against burning a proxy that the source has had enough of, and against doing without any when all are burnt.
Policy only, nothing is sent here; `now` is in monotonic seconds. A proxy's credentials leave this module in its `url`
alone: everything else (rows, logs, metrics, errors) knows it by its hash.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from urllib.parse import quote, unquote, urlsplit

from scraping.browser.profile import is_known_country
from scraping.errors import AuthExpired, Blocked, ReadTimeout, ScrapingError, Transient

LONGEST_QUARANTINE_SECONDS = 86_400.0
TIMEOUTS_IN_A_ROW = 2  # one may be the weather
BURNT_SESSIONS = 3  # of a provider's gateway: it has other addresses, unless it is the gateway that is bad
LIFETIME_SPARE_SECONDS = 600.0  # a session outlives its time until the next visit brings another


class ProxyError(ValueError):
    """A proxy that cannot be used as it is written. Says which one by its place: its address holds a password."""


class Mode(StrEnum):
    STICKY = "sticky"
    ROTATING = "rotating"


class Cause(StrEnum):
    """Why a read through a proxy failed, as far as the proxy may have to do with it."""

    REFUSED = "refused"  # 403, 429, a challenge: this address is not welcome
    NO_ANSWER = "no_answer"  # a timeout, a connection that breaks
    SESSION = "session"  # 401: the session has run out; the address is as good as any
    OTHER = "other"  # the source's or our own fault


@dataclass(frozen=True)
class Proxy:
    host: str
    port: int
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    country: str = ""
    scheme: str = "http"
    is_gateway: bool = False  # of a provider: each session id is another address behind it

    @property
    def hash(self) -> str:
        """What it is known by wherever people look."""
        return hashlib.sha256(f"{self.host}:{self.port}:{self.username}".encode()).hexdigest()[:12]

    @property
    def url(self) -> str:
        """With user and password: for the connection only."""
        user = f"{quote(self.username, safe='')}:{quote(self.password, safe='')}@" if self.username else ""
        return f"{self.scheme}://{user}{self.host}:{self.port}"

    def for_session(self, session_id: str, *, seconds: float) -> Proxy:
        """As one session uses it: a gateway is told in the password which address to keep, and for how long."""
        if not self.is_gateway:
            return self
        name = hashlib.sha256(session_id.encode()).hexdigest()[:8]  # it takes eight letters and digits
        where = f"_country-{self.country}" if self.country else ""
        minutes = min(math.ceil((seconds + LIFETIME_SPARE_SECONDS) / 60), 7 * 24 * 60)
        return replace(self, password=f"{self.password}{where}_session-{name}_lifetime-{minutes}m")


def parse(text: str) -> list[Proxy]:
    """Proxies as they stand in SCRAPER_PROXIES. ProxyError names every bad one by its place in the list."""
    proxies, problems = [], []
    for place, word in enumerate(text.split(), 1):
        try:
            proxies.append(_proxy(word))
        except ValueError as error:
            problems.append(f"proxy {place}: {error}")
    if problems:
        raise ProxyError("; ".join(problems))
    return proxies


def _proxy(word: str) -> Proxy:
    try:
        parts = urlsplit(word)
        port = parts.port
    except ValueError:
        raise ValueError("its port is no number") from None  # the cause would quote the password
    if parts.scheme not in ("http", "https"):
        raise ValueError("it must begin with http:// or https://")
    if not parts.hostname or not port:
        raise ValueError("it needs a host and a port")
    if parts.fragment and not is_known_country(parts.fragment):
        raise ValueError(f"no country is known as {parts.fragment[:10]!r}: two letters, such as de")
    username, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Proxy(parts.hostname, port, username, password, parts.fragment.lower(), parts.scheme)


def gateway(*, host: str, port: int, username: str, password: str, country: str) -> Proxy | None:
    """A provider's gateway (IPROYAL_*); None where it is not configured."""
    if not host or not port:
        return None
    if country and not is_known_country(country):
        raise ProxyError(f"IPROYAL_COUNTRY is {country[:10]!r}: no such country is known; two letters, such as de")
    return Proxy(host, port, username, password, country.lower(), is_gateway=True)


@dataclass(frozen=True)
class ProxyPlan:
    """How a worker goes out."""

    proxies: tuple[Proxy, ...] = ()
    mode: Mode = Mode.STICKY
    sticky_seconds: float = 600.0
    quarantine_seconds: float = 600.0


@dataclass
class _Standing:
    """How a proxy has done at one source."""

    proxy: Proxy
    last_used: float = -math.inf
    no_answers: int = 0  # in a row
    burnt: int = 0  # sessions of a gateway, in a row
    offences: int = 0
    quarantined_at: float = -math.inf
    quarantined_until: float = -math.inf
    quarantine_seconds: float = 0.0
    no_answer_at: float = -math.inf


@dataclass(frozen=True)
class Pick:
    proxy: Proxy
    is_quarantined: bool  # all of them were: this one would have been released first


@dataclass(frozen=True)
class Verdict:
    """What follows a failure."""

    rotates: bool  # the session is given up, and with it the proxy's address
    quarantined_until: float | None = None


class ProxyPool:
    """The proxies, as one source has treated them."""

    def __init__(self, proxies: Iterable[Proxy], *, quarantine_seconds: float) -> None:
        self._standings = {proxy.hash: _Standing(proxy) for proxy in proxies}
        self._quarantine_seconds = quarantine_seconds

    def __len__(self) -> int:
        return len(self._standings)

    def take(self, now: float) -> Pick | None:
        """The good one that was not used for longest; if all are in quarantine, the one that is released first."""
        if not self._standings:
            return None
        good = [one for one in self._standings.values() if one.quarantined_until <= now]
        if good:
            chosen = min(good, key=lambda one: one.last_used)
        else:
            chosen = min(self._standings.values(), key=lambda one: one.quarantined_until)
        chosen.last_used = now
        return Pick(chosen.proxy, is_quarantined=not good)

    def succeeded(self, proxy_hash: str, now: float) -> None:
        """It works. What it has done before is forgiven once it has been good for as long as it was locked away."""
        standing = self._standings.get(proxy_hash)
        if standing is None:
            return
        standing.no_answers = standing.burnt = 0
        if standing.offences and now >= standing.quarantined_until + standing.quarantine_seconds:
            standing.offences = 0

    def failed(self, proxy_hash: str, cause: Cause, now: float, *, began: float | None = None) -> Verdict:
        """`began`: when the read began that failed now."""
        standing = self._standings.get(proxy_hash)
        if cause is Cause.NO_ANSWER:
            return self._no_answer(standing, now, now if began is None else began)
        if cause is Cause.SESSION:
            return Verdict(rotates=True)
        if cause is Cause.REFUSED:
            return Verdict(rotates=True, quarantined_until=self._offend(standing, now))
        return Verdict(rotates=False)

    def quarantined(self, now: float) -> int:
        return sum(one.quarantined_until > now for one in self._standings.values())

    def _no_answer(self, standing: _Standing | None, now: float, began: float) -> Verdict:
        if standing is None:
            return Verdict(rotates=False)  # without a proxy nobody else can be asked
        if began <= standing.no_answer_at:  # under way when another one failed: the same silence, told again
            return Verdict(rotates=False)
        standing.no_answer_at = now
        standing.no_answers += 1
        if standing.no_answers < TIMEOUTS_IN_A_ROW:
            return Verdict(rotates=False)
        standing.no_answers = 0
        return Verdict(rotates=True, quarantined_until=self._offend(standing, now))

    def _offend(self, standing: _Standing | None, now: float) -> float | None:
        if standing is None:
            return None
        if standing.quarantined_until > now and standing.last_used <= standing.quarantined_at:
            return standing.quarantined_until  # a session from before: one offence, told twice
        standing.burnt += 1
        if standing.proxy.is_gateway and standing.burnt < BURNT_SESSIONS:
            return None
        standing.burnt = 0
        standing.offences += 1
        seconds = self._quarantine_seconds * 2.0 ** min(standing.offences - 1, 40)
        standing.quarantine_seconds = min(seconds, LONGEST_QUARANTINE_SECONDS)
        standing.quarantined_at, standing.quarantined_until = now, now + standing.quarantine_seconds
        return standing.quarantined_until


def cause_of(error: BaseException) -> Cause:
    """What a failed read says about the way it took."""
    if isinstance(error, Blocked):
        return Cause.REFUSED
    if isinstance(error, AuthExpired):
        return Cause.SESSION
    if isinstance(error, ReadTimeout):
        return Cause.NO_ANSWER
    # A source that answered, if only with an error of its own, was reached.
    if isinstance(error, Transient) and error.http_status is None:
        return Cause.NO_ANSWER
    return Cause.OTHER


def words_of(error: ScrapingError | None) -> str:
    """Why a session ended, in few words and without anybody's address."""
    if error is None:
        return ""
    status = f" ({error.http_status})" if error.http_status else ""
    return f"{error.error_type}{status}"
