"""Authentication by token: an ended key or an inactive consumer is refused by every process within 5 s."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from apiauth import authentication, consumers, keys, revoked
from apiauth.models import Tier
from apiauth.signals import consumer_changed, key_revoked, key_rotated
from tests.patience import stretched
from tests.unreachable_database import known_to_be_away
from victoryline.lib import availability

__all__ = ["known_to_be_away"]
pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("FR-026")]

WATCHER = """
import sys, time, django
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
django.setup()
from django.utils import timezone
from apiauth import authentication

def is_admitted():
    found = authentication.find(sys.argv[2])
    return found is not None and found.is_usable(timezone.now())

assert is_admitted()
print("in", flush=True)
while is_admitted():
    time.sleep(0.02)
print("out", flush=True)
"""


@pytest.fixture
def key() -> keys.IssuedKey:
    authentication.forget()
    return keys.issue(consumer_name="acme", scopes=["read"], now=timezone.now())


@pytest.fixture
def elsewhere() -> Iterator[ModuleType]:
    """The module as in another process, which does not receive the signals of this one."""
    spec = importlib.util.spec_from_file_location("apiauth_principals_elsewhere", authentication.__file__)
    assert spec is not None
    other = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = other
    spec.loader.exec_module(other)  # type: ignore[union-attr]
    for signal in (key_revoked, key_rotated):
        assert signal.disconnect(other.forget)
    assert consumer_changed.disconnect(other.forget_all_of)
    yield other
    del sys.modules[spec.name]


def is_admitted(where: Any, prefix: str) -> bool:
    found = where.find(prefix)
    return found is not None and found.is_usable(timezone.now())


def pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    later = time.monotonic() + seconds
    monkeypatch.setattr("apiauth.authentication.time.monotonic", lambda: later)


ENDINGS = {
    "revoked": lambda key: keys.revoke(prefix=key.prefix, now=timezone.now()),
    "rotated without overlap": lambda key: keys.rotate(prefix=key.prefix, overlap=timedelta(0), now=timezone.now()),
    "consumer shut out": lambda key: consumers.change(
        key.consumer, consumers.Change(is_active=False), now=timezone.now(), actor="anna"
    ),
    "all of the consumer's": lambda key: keys.revoke_all(key.consumer, now=timezone.now()),
}


class TestWithinFiveSeconds:
    @pytest.mark.parametrize("how", ENDINGS)
    def test_refused_here_at_once_and_elsewhere_when_the_cache_expires(
        self, key: keys.IssuedKey, elsewhere: ModuleType, monkeypatch: pytest.MonkeyPatch, how: str
    ) -> None:
        prefix = key.key.prefix
        assert is_admitted(authentication, prefix)
        assert is_admitted(elsewhere, prefix)
        ENDINGS[how](key.key)
        assert not is_admitted(authentication, prefix)
        assert is_admitted(elsewhere, prefix)  # the price of the cache
        assert elsewhere.CACHE_SECONDS < 5
        pass_time(monkeypatch, elsewhere.CACHE_SECONDS)
        assert not is_admitted(elsewhere, prefix)

    def test_a_changed_limit_applies_to_the_next_request(self, key: keys.IssuedKey) -> None:
        assert authentication.find(key.key.prefix).consumer.requests_per_minute is None
        wanted = consumers.Change(tier=Tier.CUSTOM, requests_per_minute=250)
        consumers.change(key.key.consumer, wanted, now=timezone.now(), actor="anna")
        found = authentication.find(key.key.prefix).consumer
        assert (found.tier, found.requests_per_minute) == ("custom", 250)

    @pytest.mark.slow
    @pytest.mark.django_db(transaction=True)
    def test_refused_in_another_process(self, key: keys.IssuedKey) -> None:
        command = [sys.executable, "-c", WATCHER, str(connection.settings_dict["NAME"]), key.key.prefix]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watcher:
            try:
                assert watcher.stdout.readline() == "in\n"
                keys.revoke(prefix=key.key.prefix, now=timezone.now())
                began = time.monotonic()
                assert watcher.stdout.readline() == "out\n"
                assert time.monotonic() - began < stretched(5)
            finally:
                watcher.kill()


class TestWhileTheDatabaseIsAway:
    def test_cached_keys_are_accepted_for_ten_minutes(
        self, key: keys.IssuedKey, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert is_admitted(authentication, key.key.prefix)
        request.getfixturevalue("known_to_be_away")
        pass_time(monkeypatch, authentication.AWAY_SECONDS - 1)
        assert is_admitted(authentication, key.key.prefix)
        pass_time(monkeypatch, authentication.AWAY_SECONDS)
        with pytest.raises(authentication.DatabaseAway):
            authentication.find(key.key.prefix)

    @pytest.mark.scaled
    @pytest.mark.parametrize("how", ENDINGS)
    def test_an_ended_key_is_refused_through_redis(
        self,
        key: keys.IssuedKey,
        elsewhere: ModuleType,
        request: pytest.FixtureRequest,
        monkeypatch: pytest.MonkeyPatch,
        how: str,
    ) -> None:
        assert is_admitted(elsewhere, key.key.prefix)
        ENDINGS[how](key.key)
        request.getfixturevalue("known_to_be_away")
        pass_time(monkeypatch, elsewhere.CACHE_SECONDS)
        assert not is_admitted(elsewhere, key.key.prefix)

    @pytest.mark.scaled
    def test_a_consumer_that_was_made_active_again_is_admitted(
        self,
        key: keys.IssuedKey,
        elsewhere: ModuleType,
        request: pytest.FixtureRequest,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        assert is_admitted(elsewhere, key.key.prefix)
        for is_active in (False, True):
            change = consumers.Change(is_active=is_active)
            consumers.change(key.key.consumer, change, now=timezone.now(), actor="anna")
        request.getfixturevalue("known_to_be_away")
        pass_time(monkeypatch, elsewhere.CACHE_SECONDS)
        assert is_admitted(elsewhere, key.key.prefix)

    @pytest.mark.scaled
    def test_the_note_in_redis_outlives_the_cache_and_expires(self, key: keys.IssuedKey) -> None:
        keys.revoke(prefix=key.key.prefix, now=timezone.now())
        client = availability.redis_client(settings.CONFIG.redis_url)
        left = client.ttl(revoked.NAME + key.key.prefix)
        assert authentication.AWAY_SECONDS < left <= revoked.LIFETIME_SECONDS

    @pytest.mark.scaled
    def test_the_note_is_ignored_while_the_database_responds(self, key: keys.IssuedKey) -> None:
        revoked.note([key.key.prefix])
        assert is_admitted(authentication, key.key.prefix)


class TestWithoutRedis:
    @pytest.fixture(autouse=True)
    def closed_redis_port(self, settings: Any) -> Iterator[None]:
        """A missing Redis: its errors are caught, and only `availability` connects again."""
        settings.CONFIG = settings.CONFIG.model_copy(update={"redis_url": "redis://127.0.0.1:1/0"})
        away = availability.redis(settings.CONFIG.redis_url)
        away._pid = 0
        yield
        away.forget()

    def test_nothing_is_noted_and_nothing_fails(self, key: keys.IssuedKey) -> None:
        assert revoked.note(["0123456789ab"]) is False
        assert revoked.is_noted("0123456789ab") is False
        revoked.take_back(["0123456789ab"])
        assert keys.revoke(prefix=key.key.prefix, now=timezone.now())
        assert not is_admitted(authentication, key.key.prefix)
