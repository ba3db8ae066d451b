"""Fixtures that all tests share."""

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests import migrated
from tests.servers import PostgresServer, RedisServer
from tests.stadium_process import StadiumProcess

gc.disable()  # until all tests are collected: the collector would visit the same objects again and again

HAS_POSTGRES = bool(os.environ.get("DATABASE_URL"))
HAS_REDIS = bool(os.environ.get("REDIS_URL"))


def pytest_configure() -> None:
    """Sets up fast password hashes, a SQLite file, Hypothesis and Ctrl-C.

    A real password hash takes half a second, and tests check logins, not hashes. SQLite uses a file: in memory, threads
    would share the database by table locks, which do not wait. Hypothesis has no deadline: on a busy machine the first
    example can exceed it. A shell starts background jobs with SIGINT ignored, which the programs under test inherit.
    """
    import hypothesis
    from django.conf import settings

    hypothesis.settings.register_profile("patient", deadline=None)
    hypothesis.settings.load_profile("patient")
    signal.signal(signal.SIGINT, signal.default_int_handler)

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    if not HAS_POSTGRES:
        settings.DATABASES["default"].setdefault("TEST", {})["NAME"] = str(settings.VAR_DIR / "test.sqlite3")


def pytest_collection_finish() -> None:
    """Leaves the collected modules and tests, half a million objects that stay, to no later run of the collector."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips `scaled` tests without the servers that `make test` starts for them."""
    if item.get_closest_marker("scaled") and not (HAS_POSTGRES and HAS_REDIS):
        pytest.skip("needs PostgreSQL and Redis: make test ONLY=scaled")


def pytest_unconfigure() -> None:
    """Drops access-log rows of tests without a database: the process would try to write them at its end."""
    _forget_access_records()


def _forget_access_records() -> None:
    from apiauth.access_log import writer

    writer._waiting.clear()


@pytest.fixture(scope="session", autouse=True)
def static_files() -> Iterator[None]:
    """Finds the static files once: each test client builds the middleware anew, which would search all folders."""
    from whitenoise.middleware import WhiteNoiseMiddleware

    found: dict[str, Any] = {}
    search = WhiteNoiseMiddleware.add_files_from_finders

    def add(middleware: WhiteNoiseMiddleware) -> None:
        if not found:
            search(middleware)
            found.update(middleware.files)
        middleware.files = found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", add)
        yield


@pytest.fixture(autouse=True)
def empty_open_limits() -> None:
    """Resets the counters by address: all tests use the same address."""
    from django.core.cache import caches

    caches["limits"].clear()


@pytest.fixture(scope="session")
def django_db_keepdb(request: pytest.FixtureRequest, django_db_modify_db_settings: None) -> bool:
    """Returns True if a migrated database could be copied; pytest-django then reuses it."""
    return bool(request.config.getvalue("reuse_db")) or (not HAS_POSTGRES and migrated.place(_test_database()))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Sets up the test database, and closes all connections before it is dropped.

    A connection of an ended thread is closed only by the garbage collector, and the thread of the access log would
    open one for rows of tests without a database.
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
    """A stadium shared by all tests that only read from it."""
    with StadiumProcess() as running:
        yield running


@pytest.fixture
def own_stadium() -> Iterator[StadiumProcess]:
    """A stadium for one test that breaks it."""
    with StadiumProcess() as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium for our own pages. Its tests may write to the database in the thread of Playwright's loop."""
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
