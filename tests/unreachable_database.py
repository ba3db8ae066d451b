"""A fixture that marks the database as unreachable, like the thread of `availability`."""

from __future__ import annotations

import os

import pytest
from django.db import OperationalError

from victoryline.lib import availability
from victoryline.lib.availability import Availability


def _refuse() -> None:
    raise OperationalError("connection refused")


@pytest.fixture
def known_to_be_away(monkeypatch: pytest.MonkeyPatch) -> Availability:
    away = Availability("Database", _refuse, meanwhile="nothing is done")
    away._pid = os.getpid()  # as if its thread ran
    away.probe_once()
    monkeypatch.setattr(availability, "database", away)
    return away
