"""Match documents in Redis, shared by all processes. No function raises: a Redis that is away holds nothing.

Keys: `match_latest:{id}` a document, `match_index` the ids of all listed matches, `match_changes` a stream of
changed ids that web processes read every tenth of a second, `negative_cache:{name}` names that no match has.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from cachetools import TTLCache
from django.conf import settings
from redis import Redis

from scraping.documents.cached_match import CachedMatch, decode, encode, number_in
from victoryline.lib.availability import in_redis

logger = logging.getLogger(__name__)

PREFIX = "victoryline:"
LATEST, CHANGES, INDEX = f"{PREFIX}match_latest:", f"{PREFIX}match_changes", "match_index"
LIFETIME_SECONDS = 24 * 3600  # specified for completed matches; live ones need it while the database is away
AT_ONCE = 200  # documents in a round trip, which must end within the short time limit of Redis calls
MAX_CHANGES = 10_000  # kept in the stream
ABSENT_SECONDS = 60
MAX_ABSENT = 5_000
MAX_NAME_LENGTH = 100
LONGEST_MERGE_CHAIN = 5
PLAIN_NAME = re.compile(r"[\w.:-]{1,100}", re.ASCII)  # as sources name matches; only these are keys of Redis


@dataclass(frozen=True)
class Changes:
    """Entries of the change stream after a position. `reload`: the document says less than the database."""

    position: str
    published: frozenset[int] = frozenset()
    reload: frozenset[int] = frozenset()


def is_configured() -> bool:
    return bool(settings.CONFIG.redis_url)


def put(matches: Iterable[CachedMatch], *, announce: bool = True, reload: Iterable[int] = ()) -> int:
    """Stores documents and appends their ids to the change stream; returns how many were stored.

    `reload`: ids whose readers must ask the database, because a change such as a pause has no sequence.
    """
    texts: dict[int, bytes] = {}
    for match in matches:
        try:
            texts[match.id] = encode(match)
        except (orjson.JSONEncodeError, ValueError):
            logger.debug("%s cannot be encoded for Redis", match.main_key, extra={"action": "not_cached"})
    ids, to_reload, stored = list(texts), set(reload), 0
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        entry: dict[Any, Any] = {
            "published": ",".join(str(each) for each in some if each not in to_reload),
            "reload": ",".join(str(each) for each in some if each in to_reload),
        }

        def write(client: Redis, some: list[int] = some, entry: dict[Any, Any] = entry) -> int:
            with client.pipeline(transaction=False) as pipeline:
                for each in some:
                    pipeline.set(f"{LATEST}{each}", texts[each], ex=LIFETIME_SECONDS)
                if announce:
                    pipeline.xadd(CHANGES, entry, maxlen=MAX_CHANGES, approximate=True)
                pipeline.execute()
            return len(some)

        stored += in_redis(write, 0)
    return stored


def latest_position() -> str | None:
    """Returns the end of the change stream; None if Redis is away."""
    newest: Any = in_redis(lambda client: client.xrevrange(CHANGES, count=1), None)
    if newest is None:
        return None
    return newest[0][0].decode() if newest else "0-0"


def changes_after(position: str) -> Changes | None:
    """Returns the changes after a position; None if Redis is away."""
    entries: Any = in_redis(lambda client: client.xrange(CHANGES, min=f"({position}", count=MAX_CHANGES), None)
    if not entries:
        return None if entries is None else Changes(position)
    published, reload = (
        frozenset(int(part) for _, fields in entries for part in fields.get(name, b"").split(b",") if part.isdigit())
        for name in (b"published", b"reload")
    )
    return Changes(entries[-1][0].decode(), published, reload)


def get(ids: Iterable[int]) -> dict[int, CachedMatch]:
    wanted = list(ids)
    found: dict[int, CachedMatch] = {}
    for start in range(0, len(wanted), AT_ONCE):
        some = wanted[start : start + AT_ONCE]
        documents = (decode(text) for text in _texts([f"{LATEST}{each}" for each in some]) if text is not None)
        found |= {match.id: match for match in documents if match is not None}
    return found


def _texts(keys: Sequence[str]) -> Sequence[bytes | None]:
    found: Any = in_redis(lambda client: client.mget(keys), None)
    return found or ()


def put_index(ids: Sequence[int], *, is_complete: bool) -> None:
    """Stores the ids of all listed matches. `is_complete` is False if there are older ones."""
    put_text(INDEX, orjson.dumps({"ids": ids, "is_complete": is_complete}), seconds=LIFETIME_SECONDS)


def index() -> tuple[list[int], bool] | None:
    """Returns the ids of all listed matches, and whether there are no older ones."""
    try:
        document = orjson.loads(get_text(INDEX) or b"")
        return document["ids"], document["is_complete"]
    except (ValueError, KeyError, TypeError):
        return None


def put_text(key: str, text: bytes, *, seconds: int) -> bool:
    """Stores something small that other processes may use instead of computing it."""
    return in_redis(lambda client: bool(client.set(PREFIX + key, text, ex=seconds)), False)


def get_text(key: str) -> bytes | None:
    found = _texts([PREFIX + key])
    return found[0] if found else None


def take_turn(name: str, seconds: float) -> bool:
    """Returns True to one caller of all processes within the given time."""
    return in_redis(lambda client: bool(client.set(f"{PREFIX}turn:{name}", 1, nx=True, px=int(seconds * 1000))), False)


class AbsentNames:
    """Names that no match has, for a minute (`negative_cache:{name}`, SO-11). Safe to use from many threads."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._lock = threading.Lock()
        self._names: TTLCache[str, bool] = TTLCache(MAX_ABSENT, ABSENT_SECONDS, timer=clock)

    def __contains__(self, name: str) -> bool:
        with self._lock:
            if name in self._names:
                return True
        return bool(PLAIN_NAME.fullmatch(name)) and get_text(f"negative_cache:{name}") is not None

    def add(self, name: str) -> None:
        if len(name) <= MAX_NAME_LENGTH:
            with self._lock:
                self._names[name] = True
        if PLAIN_NAME.fullmatch(name):
            put_text(f"negative_cache:{name}", b"1", seconds=ABSENT_SECONDS)

    def clear(self) -> None:
        with self._lock:
            self._names.clear()


def find_published(name: str) -> CachedMatch | None:
    """Finds a match in Redis by its id, or the one that it became part of. Listed ones are in memory, also by keys."""
    match_id, found = number_in(name), None
    for _ in range(LONGEST_MERGE_CHAIN):
        if match_id is None:
            break
        found = get([match_id]).get(match_id)
        match_id = found.merged_into if found else None
    return found
