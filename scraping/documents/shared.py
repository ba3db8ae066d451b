"""The matches in the cache that all processes share. Nothing here raises: a cache that is away holds nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import orjson
from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError

from scraping.documents.known import Known, decode, encode
from victoryline.lib import availability

logger = logging.getLogger(__name__)

# Longer than any outage that somebody is still at work on; what is older would be of no use to a consumer.
LIFETIME_SECONDS = 6 * 3600
CHUNK = 200  # matches in a round trip: it must be over within the short time that Redis has to answer
PREFIX = "known:"
INDEX = f"{PREFIX}index"


@dataclass(frozen=True)
class Index:
    """Every match that isn't archived: its number, and by which names it goes."""

    ids: tuple[int, ...]  # newest first
    names: Mapping[str, int]
    is_complete: bool  # False where there are more than we keep, older than these


def is_shared() -> bool:
    """Without Redis there is nothing that two processes could meet in."""
    return bool(settings.CONFIG.redis_url)


def put(matches: Iterable[Known]) -> int:
    """Store matches, many in a round trip; how many that were."""
    texts = {}
    for known in matches:
        try:
            texts[f"{PREFIX}{known.id}"] = encode(known)
        except (orjson.JSONEncodeError, ValueError):
            logger.debug("Match %s can't be put into the cache", known.id, extra={"action": "not_cached"})
    pairs = list(texts.items())
    parts = [dict(pairs[start : start + CHUNK]) for start in range(0, len(pairs), CHUNK)]
    return sum(len(part) for part in parts if _store(part))


def put_index(index: Index) -> bool:
    text = orjson.dumps({"ids": index.ids, "names": dict(index.names), "is_complete": index.is_complete})
    return _store({INDEX: text})


def match(match_id: int) -> Known | None:
    return matches([match_id]).get(match_id)


def matches(ids: Iterable[int]) -> dict[int, Known]:
    wanted = list(ids)
    found: dict[int, Known | None] = {}
    for start in range(0, len(wanted), CHUNK):
        keys = {f"{PREFIX}{match_id}": match_id for match_id in wanted[start : start + CHUNK]}
        found |= {keys[key]: decode(text) for key, text in _fetch(list(keys)).items()}
    return {match_id: known for match_id, known in found.items() if known is not None}


def index() -> Index | None:
    text = _fetch([INDEX]).get(INDEX)
    if text is None:
        return None
    try:
        document = orjson.loads(text)
        return Index(tuple(document["ids"]), document["names"], document["is_complete"])
    except (ValueError, KeyError, TypeError):
        return None


def put_text(key: str, text: bytes, *, seconds: int) -> bool:
    """Something small that another process may use instead of working it out, for a short time."""
    return _store({key: text}, seconds=seconds)


def text(key: str) -> bytes | None:
    return _fetch([key]).get(key)


def take_turn(name: str, seconds: float) -> bool:
    """True for one caller of all processes, once in so many seconds."""
    if _is_away():
        return False
    try:
        return bool(cache.add(f"{PREFIX}turn:{name}", b"1", timeout=seconds))
    except (RedisError, OSError) as error:
        _report(error)
        return False


def _store(texts: dict[str, bytes], *, seconds: int = LIFETIME_SECONDS) -> bool:
    if _is_away():
        return False
    try:
        cache.set_many(texts, timeout=seconds)
    except (RedisError, OSError) as error:
        _report(error)
        return False
    return True


def _fetch(keys: list[str]) -> dict[str, bytes]:
    if not keys or _is_away():
        return {}
    try:
        found = cache.get_many(keys)
    except (RedisError, OSError) as error:
        _report(error)
        return {}
    return {key: value for key, value in found.items() if isinstance(value, bytes)}


def _is_away() -> bool:
    return not is_shared() or availability.redis(settings.CONFIG.redis_url).is_away()


def _report(error: Exception) -> None:
    availability.redis(settings.CONFIG.redis_url).report(error)
