"""Fixtures of the tests of scraping."""

from __future__ import annotations

from collections.abc import Iterator

import dramatiq
import pytest
from django.conf import settings
from dramatiq.brokers.stub import StubBroker
from structlog.contextvars import clear_contextvars

from scraping.documents import redis_store
from scraping.documents.cache import documents
from scraping.scheduler import due, limits
from victoryline.lib import availability, hint_broker


@pytest.fixture(autouse=True)
def no_places_given() -> None:
    """Resets the scheduler's counters, so that no test depends on another one."""
    due._given.clear()
    limits.spacing.clear()


@pytest.fixture(autouse=True)
def no_log_context() -> None:
    """Clears the fields of log lines that another test has bound in this thread."""
    clear_contextvars()


@pytest.fixture
def broker() -> Iterator[StubBroker]:
    """The in-process broker, for the time of a test."""
    before = dramatiq.broker.global_broker
    installed = hint_broker.install_broker("")
    assert isinstance(installed, StubBroker)
    yield installed
    dramatiq.set_broker(before)


@pytest.fixture
def nothing_published() -> Iterator[None]:
    """Resets published documents, so that no test sees those of another one."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    documents.clear()
    if redis_store.is_configured():
        availability.redis_client(settings.CONFIG.redis_url).flushdb()
