"""Every queue and cache in memory has a bound (NFR-015): a new one without a bound must be explained here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

APPS = ("scraping", "monitoring", "apiauth", "victoryline", "victoryline_client")
MAY_BE_BOUNDED = {"deque", "Queue", "LifoQueue", "PriorityQueue", "lru_cache"}
NEVER_BOUNDED = {"SimpleQueue", "cache"}
# `file: name` of a queue or cache without a bound of its own, and what bounds it.
BOUNDED_OTHERWISE = {
    "apiauth/access_log.py: deque": "AccessWriter.write drops the oldest record at MAX_WAITING",
    "apiauth/limits.py: cache": "a function without arguments",
    "apiauth/tokens.py: cache": "the configured signing keys",
    "scraping/api/bodies.py: cache": "our classes of bodies",
    "scraping/browser/profile.py: cache": "a function without arguments",
    "scraping/matches/importance.py: cache": "a function without arguments",
    "scraping/reading/reader.py: SimpleQueue": "one result for each task of a batch",
    "scraping/sources/parsing.py: lru_cache": "our classes of responses",
    "scraping/stats/fill_rates.py: cache": "sports and stages",
    "scraping/worker/heartbeat.py: SimpleQueue": "replaced browsers; emptied by every heartbeat",
    "victoryline/lib/availability.py: cache": "the configured addresses of Redis",
    "victoryline/lib/http/openapi.py: cache": "a function without arguments",
    "victoryline/lib/http/views.py: cache": "our views",
    "victoryline/lib/identity.py: cache": "a function without arguments",
    "monitoring/admin/incident_entries.py: deque": "the reads of one page; MAX_READS at most",
    "victoryline/pool/connections.py: deque": "lost connections; never more than the pool's maximum",
}


def unbounded(tree: ast.Module) -> Iterator[str]:
    """Yields the names of queues and caches that are made without a bound."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := name_of(node.func)) in MAY_BE_BOUNDED:
            given = [*node.args[name == "deque" :], *(one.value for one in node.keywords if one.arg != "iterable")]
            if not any(not (isinstance(one, ast.Constant) and one.value in (None, 0)) for one in given):
                yield name
        elif isinstance(node, ast.Call) and name_of(node.func) in NEVER_BOUNDED:
            yield name_of(node.func)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                if name_of(decorator) in NEVER_BOUNDED:
                    yield name_of(decorator)


def name_of(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


@pytest.mark.requirement("NFR-015")
def test_every_queue_and_cache_is_bounded() -> None:
    root = Path(settings.BASE_DIR)
    found = {
        f"{file.relative_to(root)}: {name}"
        for app in APPS
        for file in (root / app).rglob("*.py")
        for name in unbounded(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert found == BOUNDED_OTHERWISE.keys()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("deque()", ["deque"]),
        ("deque(maxlen=None)", ["deque"]),
        ("deque([1], MOST)", []),
        ("collections.deque(maxlen=5)", []),
        ("queue.Queue()", ["Queue"]),
        ("asyncio.Queue(maxsize=0)", ["Queue"]),
        ("Queue(10)", []),
        ("lru_cache(maxsize=None)(f)", ["lru_cache"]),
        ("lru_cache(maxsize=64)(f)", []),
        ("SimpleQueue()", ["SimpleQueue"]),
        ("@functools.cache\ndef f(x): ...", ["cache"]),
    ],
)
def test_the_check_finds_what_has_no_bound(code: str, expected: list[str]) -> None:
    assert list(unbounded(ast.parse(code))) == expected
