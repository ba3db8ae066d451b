"""Those who may pass the gate: a session, what it may reach, and what it has cost."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import time
from dataclasses import dataclass

from prometheus_client import Counter

from scraping.browser.egress import Reach
from scraping.readings import Site

logger = logging.getLogger(__name__)

MEGABYTE = 1024 * 1024
LOGGED_HOSTS = 100  # a page that asks for a new name every second must not fill the log
MINUTE = 60.0

_refused = Counter(
    "victoryline_egress_refused", "What pages wanted to reach and the gate did not let through.", ["source"]
)
_cut = Counter(
    "victoryline_egress_cut", "Connections of pages that stood still, ran too long or brought too much.", ["source"]
)


@dataclass(frozen=True)
class GateLimits:
    head_seconds: float = 15.0
    connect_seconds: float = 10.0
    idle_seconds: float = 120.0  # without a byte in either direction
    connection_seconds: float = 3600.0
    # A connection may bring this much at once, and then so much a second: a page that stays open lives for hours.
    connection_bytes: int = 32 * MEGABYTE
    connection_bytes_a_second: int = MEGABYTE // 2
    minute_bytes: int = 256 * MEGABYTE  # of a whole session: many connections are no way around the limit of one


@dataclass(frozen=True)
class Traffic:
    """What went through for a session, to the byte: heads, TLS and all."""

    bytes_in: int = 0
    bytes_out: int = 0
    refused: int = 0
    last_refusal: str = ""


class CutOff(Exception):  # noqa: N818 - it is what happens
    """A connection that stood still, ran too long or brought too much."""


class Visitor:
    """A session as the gate knows it; lives on the loop thread."""

    def __init__(self, site: Site, upstream: str | None, limits: GateLimits) -> None:
        self.reach = Reach.of(site)
        self.upstream = upstream
        self.password = secrets.token_urlsafe(24)
        self.connections: set[asyncio.Task[None]] = set()
        self._limits = limits
        self._in = self._out = self._refused = 0
        self._last_refusal = ""
        self._told: set[str] = set()
        self._minute = (0.0, 0)  # its beginning, and its bytes

    @property
    def traffic(self) -> Traffic:
        return Traffic(self._in, self._out, self._refused, self._last_refusal)

    def is_known_by(self, password: str) -> bool:
        return hmac.compare_digest(self.password.encode(), password.encode())

    def count(self, size: int, *, is_in: bool) -> None:
        """CutOff for a session that brings more in a minute than any reading does."""
        if is_in:
            self._in += size
        else:
            self._out += size
        now = time.monotonic()
        began, before = self._minute
        self._minute = (began, before + size) if now - began < MINUTE else (now, size)
        if self._minute[1] > self._limits.minute_bytes:
            raise self.cut_off(f"more than {self._limits.minute_bytes // MEGABYTE} MB in a minute")

    def refuse(self, host: str, why: str) -> None:
        self._refused += 1
        _refused.labels(self.reach.key).inc()
        self._last_refusal = why
        self._tell(host, "A page of %s wanted to reach %s and was not let through: %s", self.reach.key, host, why)

    def cut_off(self, why: str) -> CutOff:
        _cut.labels(self.reach.key).inc()
        self._tell(why, "A connection of %s was cut: %s. The page is tried again later", self.reach.key, why)
        return CutOff(why)

    def _tell(self, about: str, sentence: str, *words: str) -> None:
        """Once a host or cause. The host and never the path, which may hold what is nobody's business."""
        if about not in self._told and len(self._told) < LOGGED_HOSTS:
            self._told.add(about)
            logger.warning(sentence, *words, extra={"action": "egress_refused", "source": self.reach.key})
