"""Fixtures of the fault tests."""

from collections.abc import Callable

import pytest

Recovered = Callable[[str, float], None]


@pytest.fixture
def recovered(record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]) -> Recovered:
    """Call it with what was broken and the seconds until all was well again: shown at once, and kept in the report."""

    def tell(what: str, seconds: float) -> None:
        record_property("recovery_seconds", round(seconds, 2))
        with capsys.disabled():
            print(f"\n    {what}: {seconds:.1f} s", flush=True)  # noqa: T201 - the figure is the point

    return tell
