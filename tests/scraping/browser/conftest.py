"""Fixtures of several test modules, shared because a browser takes a second to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scraping.browser.local_servers import LocalProxy, LocalSite, OnThread, Worker
from victoryline.lib import chromium


@pytest.fixture(scope="session")
def chromium_program() -> Path:
    found = chromium.find(chosen=None, var_dir=Path("var"))
    assert found is not None, "no Chromium on this machine; make run installs one"
    return found


@pytest.fixture(scope="session")
def _running_site() -> Iterator[LocalSite]:
    site = LocalSite()
    yield site
    site.close()


@pytest.fixture
def local_site(_running_site: LocalSite) -> LocalSite:
    return _running_site.reset()


@pytest.fixture(scope="session")
def _running_worker(chromium_program: Path) -> Iterator[Worker]:
    worker = Worker(chromium_program)
    yield worker
    worker.close()


@pytest.fixture
def browser_worker(_running_worker: Worker) -> Iterator[Worker]:
    yield _running_worker
    _running_worker.forget()


@pytest.fixture
def local_proxies() -> Iterator[list[LocalProxy]]:
    """Three proxies: in Germany, in India, and without a country."""
    thread = OnThread()
    made = [
        LocalProxy(thread, username=f"user{one}", country=land).start() for one, land in enumerate(("de", "in", ""))
    ]
    yield made
    for proxy in made:
        proxy.close()
    thread.end()
