from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings

from tests.monitoring.alerts.servers import HttpReceiver


@pytest.fixture
def hook() -> Iterator[HttpReceiver]:
    with HttpReceiver() as taker:
        yield taker


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
