"""Upstream proxies: chooses the least recently used one for a session and quarantines those that failed.

Guards against using a proxy that the source refuses, and against using none when all are in quarantine. Nothing is
sent here; `now` is in monotonic seconds. Credentials are in `Proxy.url` only: everything else names it by its hash.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from scraping.browser.profile import is_known_country
from scraping.errors import AuthExpired, Blocked, ReadTimeout, ScrapingError, Transient

if TYPE_CHECKING:
    from victoryline.configuration import Config

LONGEST_QUARANTINE_SECONDS = 86_400.0
MAX_TIMEOUTS_IN_A_ROW = 2  # a single one may be chance
MAX_REFUSED_SESSIONS = 3  # of a gateway, which has many addresses: more refusals mean that the gateway is refused
LIFETIME_SPARE_SECONDS = 600.0  # a session is used beyond its time until the next visit replaces it


class ProxyError(ValueError):
    """A proxy setting is invalid. Names the proxy by its position, because its address holds a password."""


class FailureCause(StrEnum):
    """The cause of a failed read, as far as it concerns the session and its proxy."""

    REFUSED = "refused"  # 403, 429, a challenge: the source refuses the address
    NO_ANSWER = "no_answer"  # a timeout or a broken connection
    SESSION = "session"  # 401: the session has expired; the address is not to blame
    OTHER = "other"  # a fault of the source or of ours


@dataclass(frozen=True)
class Proxy:
    host: str
    port: int
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    country: str = ""
    scheme: str = "http"
    is_gateway: bool = False  # of a provider: each session id gets another address

    @property
    def hash(self) -> str:
        """Identifies the proxy in rows, logs and metrics."""
        return hashlib.sha256(f"{self.host}:{self.port}:{self.username}".encode()).hexdigest()[:12]

    @property
    def url(self) -> str:
        """The address with user and password; for connections only."""
        user = f"{quote(self.username, safe='')}:{quote(self.password, safe='')}@" if self.username else ""
        return f"{self.scheme}://{user}{self.host}:{self.port}"

    def for_session(self, session_id: str, *, seconds: float) -> Proxy:
        """Returns the proxy for one session: a gateway reads session and lifetime of an address from the password."""
        if not self.is_gateway:
            return self
        name = hashlib.sha256(session_id.encode()).hexdigest()[:8]  # the gateway accepts eight letters and digits
        country = f"_country-{self.country}" if self.country else ""
        minutes = min(math.ceil((seconds + LIFETIME_SPARE_SECONDS) / 60), 7 * 24 * 60)
        return replace(self, password=f"{self.password}{country}_session-{name}_lifetime-{minutes}m")


def parse(text: str) -> list[Proxy]:
    """Parses SCRAPER_PROXIES. ProxyError names every invalid proxy by its position in the list."""
    proxies, problems = [], []
    for position, url in enumerate(text.split(), 1):
        try:
            proxies.append(_parse_one(url))
        except ValueError as error:
            problems.append(f"proxy {position}: {error}")
    if problems:
        raise ProxyError("; ".join(problems))
    return proxies


def _parse_one(url: str) -> Proxy:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("its port is not a number") from None  # the cause would quote the password
    if parts.scheme not in ("http", "https"):
        raise ValueError("it must begin with http:// or https://")
    if not parts.hostname or not port:
        raise ValueError("it needs a host and a port")
    if parts.fragment and not is_known_country(parts.fragment):
        raise ValueError(f"{parts.fragment[:10]!r} is not a known country: use two letters, such as de")
    username, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Proxy(parts.hostname, port, username, password, parts.fragment.lower(), parts.scheme)


@dataclass(frozen=True)
class ProxyPlan:
    """The proxies of a worker and their rotation."""

    proxies: tuple[Proxy, ...] = ()
    is_rotating: bool = False  # a session serves one visit; otherwise it lasts `sticky_seconds`
    sessions_per_source: int = 1
    sticky_seconds: float = 600.0
    quarantine_seconds: float = 600.0

    @classmethod
    def of(cls, config: Config) -> ProxyPlan:
        """Returns the plan from SCRAPER_PROXIES and the gateway of a provider (IPROYAL_*). ProxyError names faults."""
        proxies, country = parse(config.scraper_proxies), config.iproyal_country
        if config.iproyal_host and config.iproyal_port:
            if country and not is_known_country(country):
                raise ProxyError(f"IPROYAL_COUNTRY is {country[:10]!r}: not a known country; use two letters, like de")
            user, password = config.iproyal_username, config.iproyal_password
            proxies.append(
                Proxy(config.iproyal_host, config.iproyal_port, user, password, country.lower(), is_gateway=True)
            )
        is_rotating = config.scraper_proxy_mode == "rotating"
        number = config.scraper_sessions_per_source
        return cls(tuple(proxies), is_rotating, number, config.scraper_sticky_ttl_seconds)


@dataclass
class _ProxyState:
    proxy: Proxy
    last_used: float = -math.inf
    no_answers: int = 0  # in a row
    refused_sessions: int = 0  # of a gateway, in a row
    offences: int = 0
    quarantined_at: float = -math.inf
    quarantined_until: float = -math.inf
    quarantine_seconds: float = 0.0
    no_answer_at: float = -math.inf


class ProxyPool:
    """The proxies of one source, with their quarantines at it."""

    def __init__(self, proxies: Iterable[Proxy], *, quarantine_seconds: float) -> None:
        self._states = {proxy.hash: _ProxyState(proxy) for proxy in proxies}
        self._quarantine_seconds = quarantine_seconds

    def take(self, now: float) -> tuple[Proxy | None, bool]:
        """Returns the least recently used proxy, and whether all are in quarantine: then the first to be released."""
        if not self._states:
            return None, False
        available = [one for one in self._states.values() if one.quarantined_until <= now]
        if available:
            chosen = min(available, key=lambda one: one.last_used)
        else:
            chosen = min(self._states.values(), key=lambda one: one.quarantined_until)
        chosen.last_used = now
        return chosen.proxy, not available

    def succeeded(self, proxy_hash: str, now: float) -> None:
        """Records a success. Offences are cleared after as long without one as the last quarantine took."""
        state = self._states.get(proxy_hash)
        if state is None:
            return
        state.no_answers = state.refused_sessions = 0
        if state.offences and now >= state.quarantined_until + state.quarantine_seconds:
            state.offences = 0

    def timed_out(self, proxy_hash: str, *, began: float, now: float) -> bool:
        """Records a read without an answer; returns whether the session must end: after two of them in a row.

        `began`: start of the read. Without a proxy there is no other address, and the session goes on.
        """
        state = self._states.get(proxy_hash)
        if state is None:
            return False
        if began > state.no_answer_at:  # else it ran while another failed: the same outage
            state.no_answer_at, state.no_answers = now, state.no_answers + 1
        if state.no_answers < MAX_TIMEOUTS_IN_A_ROW:
            return False
        state.no_answers = 0
        return True

    def quarantined_count(self, now: float) -> int:
        return sum(one.quarantined_until > now for one in self._states.values())

    def quarantine(self, proxy_hash: str, now: float) -> float | None:
        """Quarantines a proxy that failed, longer each time; returns until when.

        None: there is no proxy, or it is a gateway, whose next session gets another address.
        """
        state = self._states.get(proxy_hash)
        if state is None:
            return None
        if state.quarantined_until > now and state.last_used <= state.quarantined_at:
            return state.quarantined_until  # a session from before the quarantine: the same offence
        state.refused_sessions += 1
        if state.proxy.is_gateway and state.refused_sessions < MAX_REFUSED_SESSIONS:
            return None
        state.refused_sessions = 0
        state.offences += 1
        seconds = self._quarantine_seconds * 2.0 ** min(state.offences - 1, 40)
        state.quarantine_seconds = min(seconds, LONGEST_QUARANTINE_SECONDS)
        state.quarantined_at, state.quarantined_until = now, now + state.quarantine_seconds
        return state.quarantined_until


def cause_of(error: BaseException) -> FailureCause:
    if isinstance(error, Blocked):
        return FailureCause.REFUSED
    if isinstance(error, AuthExpired):
        return FailureCause.SESSION
    if isinstance(error, ReadTimeout):
        return FailureCause.NO_ANSWER
    # A source that responded, even with an error, was reached.
    if isinstance(error, Transient) and error.http_status is None:
        return FailureCause.NO_ANSWER
    return FailureCause.OTHER


def error_label(error: ScrapingError | None) -> str:
    """Returns error code and status for the row of a session: short, and without addresses."""
    if error is None:
        return ""
    status = f" ({error.http_status})" if error.http_status else ""
    return f"{error.error_code}{status}"
