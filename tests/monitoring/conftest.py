from __future__ import annotations

from collections.abc import Iterator

import pytest

from monitoring import views
from monitoring.health import documents, grade_changes
from monitoring.health.publisher import publisher
from monitoring.metrics import exposition
from monitoring.objectives import last_hour
from victoryline.lib import availability


@pytest.fixture(autouse=True)
def fresh_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clears the state that a process keeps between two requests."""
    _forget()
    monkeypatch.setattr(grade_changes, "_memory", None)
    monkeypatch.setattr(exposition.page, "is_leading", lambda: True)
    monkeypatch.setattr(exposition, "_engine_page", lambda config: b"")  # none runs; the port may be another program's
    yield
    publisher.stop()  # a started server of metrics enables it
    _forget()


def _forget() -> None:
    views.published_health.forget()
    views.published_status.forget()
    exposition.published.forget()
    exposition.whole.forget()
    last_hour.cache.clear()
    documents.last_evaluations.clear()
    availability.database.forget()
