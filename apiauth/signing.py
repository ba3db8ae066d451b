"""The keys that tokens are signed with: one signs, those before it still verify until their last token has ended.

They come from the environment (JWT_SIGNING_KEY, JWT_PREVIOUS_KEYS) or else from a file in VAR_DIR, whose first line
signs; each line after it is the time at which a key was retired, and that key. `manage.py rotate_signing_key` adds a
line. Running processes look at the file's date once a second, and at once when a token names a key that they don't
know, so a token that one process has signed with the newest key is never refused by another.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings

from apiauth.signals import signing_key_rotated
from victoryline.lib.secret_files import rewrite_private
from victoryline.lib.times import as_utc_iso

logger = logging.getLogger(__name__)

LOOK_EVERY_SECONDS = 1.0
# Beyond a token's life: processes that had not seen the new key yet, clocks that differ.
GRACE = timedelta(minutes=5)


@dataclass(frozen=True)
class SigningKey:
    id: str  # the `kid` of its tokens
    text: str
    retired_at: datetime | None = None

    def __repr__(self) -> str:
        return f"<signing key {self.id}>"

    def verifies(self, now: datetime) -> bool:
        return self.retired_at is None or now < self.retired_at + _longest_life()


@dataclass(frozen=True, eq=False)
class Ring:
    """All keys that are known: the first signs."""

    keys: tuple[SigningKey, ...]

    @property
    def signs(self) -> SigningKey:
        return self.keys[0]

    def for_token(self, key_id: str | None, now: datetime) -> tuple[SigningKey, ...]:
        """Those that a token of this `kid` may be signed with; one without a `kid` is older than these."""
        return tuple(key for key in self.keys if key.verifies(now) and key_id in (None, key.id))


@dataclass(frozen=True)
class _Seen:
    """The file as it was when it was read."""

    mark: tuple[int, int, int]  # changed at, size, number of the file: a rename may leave two of them as they were
    ring: Ring


_lock = threading.Lock()
_seen: _Seen | None = None
_look_again_at = 0.0


def ring(*, look_now: bool = False) -> Ring:
    """The keys as they are now; the same object as before while nothing has changed."""
    global _seen, _look_again_at  # noqa: PLW0603 - the memory of this process
    seen = _seen
    if seen is not None and not look_now and time.monotonic() < _look_again_at:
        return seen.ring
    with _lock:
        _seen = _look(_seen)
        _look_again_at = time.monotonic() + LOOK_EVERY_SECONDS
        return _seen.ring


def forget() -> None:
    """For tests: as in a process that has just begun."""
    global _seen  # noqa: PLW0603
    with _lock:
        _seen = None


def is_from_environment() -> bool:
    return bool(settings.JWT_SIGNING_KEY)


def new_key() -> str:
    return secrets.token_urlsafe(48)


def key_id(text: str) -> str:
    return hashlib.sha256(f"victoryline kid {text}".encode()).hexdigest()[:8]


def rotate_file(now: datetime, *, keeps_old: bool = True, actor: str = "operator") -> Ring:
    """A new key signs from now on; those that no living token needs are dropped. The file is replaced in one step.

    Without `keeps_old`, for a key that has leaked, all tokens end at once.
    """
    text, replaced = new_key(), ""

    def rotated(before: str) -> str:
        nonlocal replaced
        old, *older = _parse(before).keys
        replaced = old.id
        retired = [replace(old, retired_at=now), *(key for key in older if key.verifies(now))]
        return _as_text(text, retired if keeps_old else [])

    rewrite_private(_path(), rotated)
    signing_key_rotated.send(
        sender=Ring,
        kid=key_id(text),
        old_kid=replaced,
        until=now + _longest_life() if keeps_old else now,
        actor=actor,
        now=now,
    )
    return ring(look_now=True)


def _look(seen: _Seen | None) -> _Seen:
    if is_from_environment():
        texts = (settings.JWT_SIGNING_KEY, *settings.JWT_PREVIOUS_KEYS)
        keys = tuple(SigningKey(key_id(text), text) for text in texts)
        return seen if seen is not None and seen.ring.keys == keys else _Seen((0, 0, 0), Ring(keys))
    path = _path()
    try:
        facts = path.stat()
        mark = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        return seen if seen is not None and seen.mark == mark else _Seen(mark, _parse(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        if seen is None:
            raise
        # Whoever holds a token is not turned away because a file is.
        logger.warning(
            "The signing keys can't be read (%s): those that are known go on", error, extra={"action": "signing_keys"}
        )
        return seen


def _path() -> Path:
    path: Path = settings.JWT_SIGNING_KEY_FILE
    return path


def _parse(text: str) -> Ring:
    first, *rest = text.strip().splitlines() or [""]
    if not first.strip():
        raise ValueError(f"{_path()} holds no key. Remove it and start again: a new one is made, and all tokens end.")
    retired = [key for number, line in enumerate(rest, start=2) if (key := _retired(line.strip(), number)) is not None]
    return Ring((SigningKey(key_id(first.strip()), first.strip()), *retired))


def _retired(line: str, number: int) -> SigningKey | None:
    """What can't be read is left out: only the tokens of that key are lost."""
    moment, _, text = line.partition(" ")
    try:
        retired_at = datetime.fromisoformat(moment)
    except ValueError:
        retired_at = None
    if retired_at is None or retired_at.tzinfo is None or not text.strip():
        if line:
            logger.warning(
                "Line %s of %s is not a time and a key, and is left out",
                number,
                _path(),
                extra={"action": "signing_keys"},
            )
        return None
    return SigningKey(key_id(text.strip()), text.strip(), retired_at=retired_at)


def _as_text(signs: str, retired: Iterable[SigningKey]) -> str:
    lines = [f"{as_utc_iso(key.retired_at)} {key.text}" for key in retired if key.retired_at is not None]
    return "\n".join([signs, *lines]) + "\n"


def _longest_life() -> timedelta:
    return timedelta(hours=settings.CONFIG.token_lifetime_hours) + GRACE
