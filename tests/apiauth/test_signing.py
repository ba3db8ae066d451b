"""The keys that sign tokens: a rotation ends no token early."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from django.utils import timezone

from apiauth import tokens
from apiauth.apps import check_signing_keys
from apiauth.models import ApiKey, Consumer
from victoryline.lib.files import EmptySecretError, read_or_create

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("FR-026")]
OLD = "the key before it, which was long enough as well"
NEW = "the present key, which is long enough to be one"


@pytest.fixture
def key() -> ApiKey:
    return ApiKey(consumer=Consumer(name="acme"), prefix="0123456789ab", scopes=["read"])


@pytest.fixture
def keys(settings: Any) -> Iterator[Any]:
    """Sets the signing keys; each change is a restart, which empties the cache of verified tokens."""

    def use(current: str, *previous: str) -> None:
        settings.JWT_SIGNING_KEY, settings.JWT_PREVIOUS_KEYS = current, previous
        tokens._verified.clear()

    yield use
    tokens._verified.clear()


def make(key: ApiKey) -> str:
    return tokens.make(key, timezone.now()).text


def kid(token: str) -> str:
    return str(jwt.get_unverified_header(token)["kid"])


class TestRotation:
    def test_signs_with_the_new_key_and_still_accepts_what_the_old_one_signed(self, keys: Any, key: ApiKey) -> None:
        keys(OLD, NEW)
        old = make(key)
        keys(NEW, OLD)
        new = make(key)
        assert kid(old) != kid(new) == tokens.key_id(NEW)
        assert [tokens.read(token) for token in (old, new)] == [key.prefix] * 2

    def test_accepts_tokens_of_a_process_with_the_new_key(self, keys: Any, key: ApiKey) -> None:
        """Another web process already signs with the new key."""
        keys(NEW, OLD)
        theirs = make(key)
        keys(OLD, NEW)
        assert tokens.read(theirs) == key.prefix

    def test_ends_the_tokens_of_a_removed_key(self, keys: Any, key: ApiKey) -> None:
        keys(OLD)
        lost = make(key)
        assert tokens.read(lost) == key.prefix
        keys(NEW)
        with pytest.raises(tokens.BadTokenError, match="not in use here, or no longer"):
            tokens.read(lost)

    def test_does_not_verify_a_token_without_a_key_id(self, key: ApiKey, settings: Any) -> None:
        claims = jwt.decode(make(key), options={"verify_signature": False})
        token = jwt.encode(claims, settings.JWT_SIGNING_KEY, algorithm="HS256")
        with pytest.raises(tokens.BadTokenError, match="not in use here"):
            tokens.read(token)


class TestChecks:
    @pytest.mark.parametrize(
        ("fields", "ids"),
        [
            ({"JWT_SIGNING_KEY": "a" * 32}, []),
            ({"JWT_SIGNING_KEY": "a" * 31}, ["apiauth.W001"]),
            ({"JWT_SIGNING_KEY": "a" * 32, "JWT_PREVIOUS_KEYS": ("short",)}, ["apiauth.W001"]),
            ({"JWT_SIGNING_KEY": "the same as SECRET_KEY, for whatever reason"}, ["apiauth.W002"]),
        ],
    )
    def test_warn_about_weak_keys(self, settings: Any, fields: dict[str, Any], ids: list[str]) -> None:
        settings.SECRET_KEY, settings.JWT_PREVIOUS_KEYS = "the same as SECRET_KEY, for whatever reason", ()
        for name, value in fields.items():
            setattr(settings, name, value)
        found = check_signing_keys()
        assert [each.id for each in found] == ids
        assert all(each.hint for each in found)
        assert not any(value and value in str(found) for value in fields.values() if isinstance(value, str))


class TestFile:
    def test_is_made_once_and_readable_by_its_owner_only(self, tmp_path: Path) -> None:
        made = read_or_create(tmp_path / "key")
        assert read_or_create(tmp_path / "key") == made
        assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600

    def test_that_is_empty_is_refused_at_the_start(self, tmp_path: Path) -> None:
        (tmp_path / "key").write_text("\n")
        with pytest.raises(EmptySecretError, match="is empty"):
            read_or_create(tmp_path / "key")
