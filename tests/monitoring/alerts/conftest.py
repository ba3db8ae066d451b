from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings

from tests.monitoring.alerts.servers import HttpReceiver, SmtpReceiver, make_certificate


@pytest.fixture
def hook() -> Iterator[HttpReceiver]:
    with HttpReceiver() as taker:
        yield taker


@pytest.fixture
def mailbox() -> Iterator[SmtpReceiver]:
    with SmtpReceiver() as taker:
        yield taker


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"))


class Configure:
    def __init__(self, settings: Any) -> None:
        self._settings = settings

    def __call__(self, **values: Any) -> None:
        self._settings.CONFIG = self._settings.CONFIG.model_copy(update=values)


@pytest.fixture
def configure(settings: Any) -> Configure:
    """Set variables of the configuration for one test."""
    assert django_settings.configured
    return Configure(settings)
