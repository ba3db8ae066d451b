"""Fixtures of the fault tests."""

from collections.abc import Callable, Iterator

import pytest

Recovered = Callable[[str, float], None]


@pytest.fixture
def recovered(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Iterator[Recovered]:
    """Call it with what was broken and the seconds until all was well again: shown at once, and kept in the report."""
    record = request.getfixturevalue("record_property")

    def tell(what: str, seconds: float) -> None:
        record("recovery_seconds", round(seconds, 2))
        with capsys.disabled():
            print(f"\n    {what}: recovered in {seconds:.1f} s", flush=True)  # noqa: T201 - the figure is the point

    yield tell
