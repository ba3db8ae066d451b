"""How a commit reaches the web processes at once: a Redis channel. What is lost on it, the next look finds.

A message is a list of words about matches: the whole match where it has changed, without its payload where it was only
read again, or just its number where somebody did something to it and it is to be looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import orjson
from django.conf import settings
from redis import Redis
from redis.client import PubSub
from redis.exceptions import RedisError, ResponseError

from scraping.documents.known import Known, from_plain
from victoryline.lib import availability

CHANNEL = "victoryline:matches"
MAX_WORDS = 100  # in a message: it must be over within the short time that Redis has to take it


@dataclass(frozen=True)
class Word:
    """One of the three is there."""

    whole: Known | None = None
    bare: Known | None = None
    look_at: int | None = None


def is_away() -> bool:
    """A Redis that is full takes nothing more in, but it still carries messages."""
    there = availability.redis(settings.CONFIG.redis_url)
    return there.is_away() and not isinstance(there.error, ResponseError)


def tell(words: Sequence[Word]) -> bool:
    """Never raises. False: nobody has heard it."""
    if not settings.CONFIG.redis_url or is_away():
        return False
    try:
        for start in range(0, len(words), MAX_WORDS):
            text = _text(words[start : start + MAX_WORDS])
            if text:
                _client(settings.CONFIG.redis_url).publish(CHANNEL, text)
    except (RedisError, OSError) as error:
        availability.redis(settings.CONFIG.redis_url).report(error)
        return False
    return True


def subscribe() -> PubSub:
    """Raises RedisError or OSError."""
    listener: PubSub = _client(settings.CONFIG.redis_url).pubsub()  # type: ignore[no-untyped-call]
    listener.subscribe(CHANNEL)
    return listener


def read(text: bytes) -> list[Word]:
    """What another version of this program has said is left out: the next look finds it."""
    try:
        return [word for word in map(_word, orjson.loads(text)) if word is not None]
    except (ValueError, TypeError):
        return []


def _text(words: Iterable[Word]) -> bytes:
    parts = []
    for word in words:
        try:
            parts.append(_part(word))
        except (orjson.JSONEncodeError, ValueError):
            continue  # what JSON can't hold is looked up by those who want it
    return b"[" + b",".join(parts) + b"]" if parts else b""


def _part(word: Word) -> bytes:
    if word.whole is not None:
        return orjson.dumps({"whole": word.whole})
    if word.bare is not None:
        return orjson.dumps({"bare": replace(word.bare, payload={})})
    return orjson.dumps({"look_at": word.look_at})


def _word(plain: dict[str, Any]) -> Word | None:
    if "look_at" in plain:
        return Word(look_at=int(plain["look_at"]))
    try:
        return Word(whole=from_plain(plain["whole"])) if "whole" in plain else Word(bare=from_plain(plain["bare"]))
    except (KeyError, TypeError, ValueError):
        return None


@cache
def _client(url: str) -> Redis:
    client: Redis = Redis.from_url(url, **availability.BOUNDED)
    return client
