"""Names that no match has, remembered for a minute: `negative_cache:{name}`.

Guards the database against a client that asks again and again for a match that isn't there. A marker holds only as long
as no match or reference has come: it carries the state of both tables, which each process looks up at most once a
second, and only when somebody asks for a name that was marked. So a match that appears is there at once for the process
that wrote it, and within a second for all others; the marker need not be found and deleted.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from django.db.models.signals import post_save

from scraping.documents import queries, shared
from scraping.models import Match, MatchRef

LIFETIME_SECONDS = 60
VERSION_SECONDS = 1.0
MAX_NAMES = 5_000
MAX_NAME_LENGTH = 100
PREFIX = "negative_cache:"
PLAIN = re.compile(r"[\w.:-]{1,100}", re.ASCII)  # what sources name their matches by; only such names are keys of Redis


class Absent:
    """In bounded memory, and in the shared cache where there is one. Safe to use from many threads."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, max_names: int = MAX_NAMES) -> None:
        self._clock, self._max_names = clock, max_names
        self._names: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._version: tuple[float, bytes] | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._names)

    def is_absent(self, name: str) -> bool:
        marked = self._marker(name)
        return marked is not None and marked == self.version()

    def remember(self, name: str, version: bytes) -> None:
        """`version` was read before the database said that there is none: what came in between is not hidden."""
        if len(name) > MAX_NAME_LENGTH:
            return
        with self._lock:
            self._names.pop(name, None)
            self._names[name] = (self._clock() + LIFETIME_SECONDS, version)
            while len(self._names) > self._max_names:
                self._names.popitem(last=False)
        if PLAIN.fullmatch(name):
            shared.put_text(PREFIX + name, version, seconds=LIFETIME_SECONDS)

    def version(self) -> bytes:
        """Another whenever a match or a reference has come."""
        held = self._version
        if held is not None and self._clock() < held[0]:
            return held[1]
        version = queries.version_of_matches().encode()
        self._version = (self._clock() + VERSION_SECONDS, version)
        return version

    def forget_version(self) -> None:
        self._version = None

    def forget(self) -> None:
        """For tests."""
        self._names.clear()
        self.forget_version()

    def _marker(self, name: str) -> bytes | None:
        with self._lock:
            own = self._names.get(name)
        if own is not None and self._clock() < own[0]:
            return own[1]
        return shared.text(PREFIX + name) if PLAIN.fullmatch(name) else None


absent = Absent()


def _look_again(sender: object, *, created: bool, **_: object) -> None:
    if created:
        absent.forget_version()


def connect() -> None:
    """What this process writes is seen at once; called once, when the app is ready."""
    for model in (Match, MatchRef):
        post_save.connect(_look_again, sender=model, dispatch_uid=f"scraping.documents.absent.{model.__name__}")
