from __future__ import annotations

from collections.abc import Iterator

import pytest

from monitoring import views
from monitoring.health import grade_changes


@pytest.fixture(autouse=True)
def fresh_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clears the state that a process keeps between two requests."""
    views.published_status.forget()
    monkeypatch.setattr(grade_changes, "_memory", None)
    yield
    views.published_status.forget()
