from __future__ import annotations

from collections.abc import Iterator

import pytest

from monitoring.brief import forget_all
from monitoring.health import grading


@pytest.fixture(autouse=True)
def fresh_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a process remembers between two requests must not reach from one test into the next."""
    forget_all()
    monkeypatch.setattr(grading, "_memory", None)
    yield
    forget_all()
