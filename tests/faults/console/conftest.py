"""The operator of a module's system."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.faults.console.operator import Operator
from tests.faults.system import System


@pytest.fixture(scope="module")
def operator(browser: Browser, system: System) -> Iterator[Operator]:
    someone = Operator(browser, system)
    yield someone
    someone.close()
