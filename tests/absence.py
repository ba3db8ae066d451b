"""A database that is known to be away, as the thread of `presence` would have found it, without a thread."""

from __future__ import annotations

import os

import pytest
from django.db import OperationalError

from victoryline.lib import presence
from victoryline.lib.presence import Presence


def _refuse() -> None:
    raise OperationalError("connection refused")


@pytest.fixture
def known_to_be_away(monkeypatch: pytest.MonkeyPatch) -> Presence:
    away = Presence("Database", _refuse, meanwhile="nothing is done")
    away._pid = os.getpid()  # as if its thread ran
    away.ask_once()
    monkeypatch.setattr(presence, "database", away)
    return away
