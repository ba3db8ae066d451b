"""Modules that implement a resilience pattern say at their top what they guard against (NFR-024)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from django.conf import settings

# The module or package of each pattern; a package says it once, in its __init__.py.
PATTERNS = {
    "breaker": ("scraping/policies/breaker.py", "scraping/policies/source_breaker.py", "scraping/recovery/breakers"),
    "retry": ("scraping/policies/retry.py",),
    "adaptive polling and timeouts": (
        *("scraping/policies/interval.py", "scraping/policies/error_slowdown.py"),
        *("scraping/policies/timeouts.py", "scraping/policies/fairness.py"),
    ),
    "ladder": ("scraping/policies/ladder.py", "scraping/recovery/ladder.py"),
    "journal, lease and fence": ("scraping/journal", "scraping/scheduler/leader.py"),
    "outage of the database": ("scraping/outage", "victoryline/lib/availability.py", "victoryline/lib/pg_wait.py"),
    "cleanup of browsers": (
        *("scraping/browser/host.py", "scraping/browser/health.py", "scraping/browser/memory_guard.py"),
        *("scraping/browser/processes.py", "scraping/recovery/orphans.py"),
    ),
    "processes": ("victoryline/supervisor.py", "victoryline/lib/watchdog.py", "victoryline/parent_watch.py"),
    "connection pool": ("victoryline/pool/connections.py",),
    "limits": ("apiauth/limits.py", "victoryline/lib/http/body_limits.py"),
    "validation": ("scraping/matches/validate.py", "scraping/policies/drift.py"),
}


@pytest.mark.requirement("NFR-024")
@pytest.mark.parametrize("path", [path for paths in PATTERNS.values() for path in paths])
def test_says_what_it_guards_against(path: str) -> None:
    file = Path(settings.BASE_DIR) / path
    file = file / "__init__.py" if file.is_dir() else file
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    assert "Guards against" in text
    assert len(text.splitlines()) >= 3
