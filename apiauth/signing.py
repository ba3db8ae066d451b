"""The keys that sign tokens: the current one signs, retired ones verify until their last token has expired.

They come from the environment (JWT_SIGNING_KEY, JWT_PREVIOUS_KEYS) or else from a file in VAR_DIR. Its first line is
the current key; each further line is a time of retirement and the key retired then. `manage.py rotate_signing_key` adds
a line. Running processes check the file's date once a second, and at once when a token names an unknown key: a token
that one process has signed with a new key is never refused by another.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning, register  # noqa: A004 - Django's name for it

from apiauth.signals import signing_key_rotated
from victoryline.lib.files import rewrite_private
from victoryline.lib.times import as_utc_iso

logger = logging.getLogger(__name__)

RELOAD_SECONDS = 1.0
# Beyond a token's lifetime: for processes that still signed with the old key, and for clocks that differ.
GRACE = timedelta(minutes=5)
SHORTEST_BYTES = 32  # the size of HS256's output; a shorter key can be found offline from one token
NEW_KEY_HINT = (
    "Make one: python -c 'import secrets; print(secrets.token_urlsafe(48))'. docs/operations.md says how to change it."
)


@dataclass(frozen=True)
class SigningKey:
    id: str  # the `kid` of its tokens
    secret: str
    retired_at: datetime | None = None

    def __repr__(self) -> str:
        return f"<signing key {self.id}>"

    def verifies(self, now: datetime) -> bool:
        return self.retired_at is None or now < self.retired_at + _longest_token_life()


@dataclass(frozen=True, eq=False)
class KeyRing:
    """All known keys, the current one first."""

    keys: tuple[SigningKey, ...]
    version: tuple[int, int, int] = (0, 0, 0)  # of the file: mtime, size, inode; a rename may keep two of them

    @property
    def current(self) -> SigningKey:
        return self.keys[0]

    def find(self, key_id: str, now: datetime) -> SigningKey | None:
        """Returns the key with this `kid` if it may still verify tokens."""
        return next((key for key in self.keys if key.id == key_id and key.verifies(now)), None)


_lock = threading.Lock()
_ring: KeyRing | None = None
_reload_at = 0.0


def key_ring(*, reload: bool = False) -> KeyRing:
    """Returns the present keys; the same object as before while nothing has changed."""
    global _ring, _reload_at  # noqa: PLW0603 - one ring a process
    ring = _ring
    if ring is not None and not reload and time.monotonic() < _reload_at:
        return ring
    with _lock:
        _ring = _load(_ring)
        _reload_at = time.monotonic() + RELOAD_SECONDS
        return _ring


def is_from_environment() -> bool:
    return bool(settings.JWT_SIGNING_KEY)


def new_key() -> str:
    return secrets.token_urlsafe(48)


def key_id(secret: str) -> str:
    return hashlib.sha256(f"victoryline kid {secret}".encode()).hexdigest()[:8]


def rotate_file(now: datetime, *, keeps_old: bool = True, actor: str = "operator") -> KeyRing:
    """Adds a new current key to the file and drops those that no valid token needs. Replaces the file atomically.

    Without `keeps_old`, for a key that has leaked, all tokens end at once.
    """
    secret, replaced = new_key(), ""

    def rotated(before: str) -> str:
        nonlocal replaced
        old, *older = _parse(before)
        replaced = old.id
        retired = [replace(old, retired_at=now), *(key for key in older if key.verifies(now))] if keeps_old else []
        lines = [f"{as_utc_iso(key.retired_at)} {key.secret}" for key in retired if key.retired_at is not None]
        return "\n".join([secret, *lines]) + "\n"

    rewrite_private(settings.JWT_SIGNING_KEY_FILE, rotated)
    signing_key_rotated.send(
        sender=KeyRing,
        kid=key_id(secret),
        old_kid=replaced,
        until=now + _longest_token_life() if keeps_old else now,
        actor=actor,
        now=now,
    )
    return key_ring(reload=True)


@register()
def check_signing_keys(app_configs: Sequence[AppConfig] | None = None, **options: Any) -> list[CheckMessage]:
    """Django system check: warns of keys that make tokens easy to forge."""
    current, warnings = settings.JWT_SIGNING_KEY, {}
    if any(len(key.encode()) < SHORTEST_BYTES for key in (current, *settings.JWT_PREVIOUS_KEYS) if key):
        warnings["apiauth.W001"] = (
            f"A key in JWT_SIGNING_KEY or JWT_PREVIOUS_KEYS has fewer than {SHORTEST_BYTES} bytes: with one token it "
            "can be found by trying, and then tokens can be forged."
        )
    if current and current == settings.SECRET_KEY:
        warnings["apiauth.W002"] = (
            "JWT_SIGNING_KEY is the same as SECRET_KEY: with one leak both tokens and sessions can be forged."
        )
    return [Warning(text, hint=NEW_KEY_HINT, id=name) for name, text in warnings.items()]


def _load(known: KeyRing | None) -> KeyRing:
    if is_from_environment():
        secrets_ = (settings.JWT_SIGNING_KEY, *settings.JWT_PREVIOUS_KEYS)
        keys = tuple(SigningKey(key_id(secret), secret) for secret in secrets_)
        return known if known is not None and known.keys == keys else KeyRing(keys)
    path: Path = settings.JWT_SIGNING_KEY_FILE
    try:
        facts = path.stat()
        version = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        if known is not None and known.version == version:
            return known
        return KeyRing(_parse(path.read_text(encoding="utf-8")), version)
    except (OSError, ValueError) as error:
        if known is None:
            raise
        logger.warning(
            "The signing keys can't be read (%s): the known ones stay in use", error, extra={"action": "signing_keys"}
        )
        return known


def _parse(text: str) -> tuple[SigningKey, ...]:
    """Leaves out lines that can't be read: only the tokens of those keys are lost."""
    path = settings.JWT_SIGNING_KEY_FILE
    first, *rest = [line.strip() for line in text.strip().splitlines()] or [""]
    if not first:
        raise ValueError(f"{path} holds no key. Remove it and start again: a new one is made, and all tokens end.")
    keys = [SigningKey(key_id(first), first)]
    for number, line in enumerate(rest, start=2):
        moment, _, secret = line.partition(" ")
        try:
            retired_at = datetime.fromisoformat(moment)
        except ValueError:
            retired_at = None
        if retired_at is not None and retired_at.tzinfo is not None and secret:
            keys.append(SigningKey(key_id(secret), secret, retired_at=retired_at))
        elif line:
            text = "Line %s of %s is not a time and a key, and is left out"
            logger.warning(text, number, path, extra={"action": "signing_keys"})
    return tuple(keys)


def _longest_token_life() -> timedelta:
    return timedelta(hours=settings.CONFIG.token_lifetime_hours) + GRACE
