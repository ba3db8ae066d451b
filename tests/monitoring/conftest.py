from __future__ import annotations

from collections.abc import Iterator

import pytest

from monitoring.brief import forget_all
from monitoring.health import document, grading, summary
from monitoring.slo import ledger
from victoryline.lib import availability


@pytest.fixture(autouse=True)
def fresh_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a process remembers between two requests must not reach from one test into the next."""
    _forget()
    monkeypatch.setattr(grading, "_memory", None)
    yield
    _forget()


def _forget() -> None:
    forget_all()
    ledger.forget()
    document._last_seen.forget()
    summary._last_board.clear()
    availability.database.forget()
