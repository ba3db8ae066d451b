"""Fixtures that all tests share."""

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests import migrated
from tests.servers import PostgresServer, RedisServer
from tests.stadium_process import StadiumProcess

HAS_POSTGRES = bool(os.environ.get("DATABASE_URL"))
HAS_REDIS = bool(os.environ.get("REDIS_URL"))


def pytest_configure() -> None:
    """Real password hashes take half a second each, by design; tests check logins, not hashes.

    SQLite gets a file: in memory, threads would share the database by table locks, which do not wait. Examples have
    no stopwatch: on a slow day the first of them takes longer than hypothesis likes.
    """
    import hypothesis
    from django.conf import settings

    hypothesis.settings.register_profile("patient", deadline=None)
    hypothesis.settings.load_profile("patient")

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    if not HAS_POSTGRES:
        settings.DATABASES["default"].setdefault("TEST", {})["NAME"] = str(settings.VAR_DIR / "test.sqlite3")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """`scaled` tests need what `make test` starts for them; alone, `pytest` says so instead of failing."""
    if item.get_closest_marker("scaled") and not (HAS_POSTGRES and HAS_REDIS):
        pytest.skip("needs PostgreSQL and Redis: make test ONLY=scaled")


def pytest_unconfigure() -> None:
    """Requests of tests without a database leave rows that the end of the process would try to write."""
    _forget_access_records()


def _forget_access_records() -> None:
    from apiauth.access_log import writer

    writer._waiting.clear()


@pytest.fixture(autouse=True)
def empty_open_limits() -> None:
    """All tests call from one address: the requests of one must not count for the next."""
    from django.core.cache import caches

    caches["limits"].clear()


@pytest.fixture(scope="session")
def django_db_keepdb(request: pytest.FixtureRequest, django_db_modify_db_settings: None) -> bool:
    """pytest-django's question whether there is a database already: there is where a migrated one could be copied."""
    return bool(request.config.getvalue("reuse_db")) or (not HAS_POSTGRES and migrated.place(_test_database()))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """The test database, without connections when it is dropped.

    A connection whose thread ended is closed by the garbage collector, whenever that comes; the access log's thread
    would open one for the rows of tests that had no database.
    """
    if not HAS_POSTGRES:
        migrated.keep(_test_database())
    yield
    _forget_access_records()
    gc.collect()


def _test_database() -> Path:
    from django.conf import settings

    return Path(settings.DATABASES["default"]["TEST"]["NAME"])


@pytest.fixture(scope="session")
def stadium() -> Iterator[StadiumProcess]:
    """One stadium for all tests that only read from it."""
    with StadiumProcess() as running:
        yield running


@pytest.fixture
def own_stadium() -> Iterator[StadiumProcess]:
    """A stadium for one test that breaks it."""
    with StadiumProcess() as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium for pages of ours. Its tests may make rows: in the thread that Playwright's loop runs in."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        started = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server beside the one Django is connected to, for tests that stop and freeze it."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A Redis server beside the one Django is connected to, for tests that stop and flush it."""
    with RedisServer() as server:
        yield server
