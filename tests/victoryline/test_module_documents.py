"""Modules of resilience patterns have a docstring that names the guarded failure (NFR-024)."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings

APPS = ("scraping", "monitoring", "apiauth", "victoryline")
# A module is found by its own name, or by that of one of its functions and classes.
PATTERN_NAME = re.compile(
    r"breaker|backoff|retries|lease|fence|spool|replay|watchdog|supervis|quarantine|orphan|cleanup|rescue|drain|ladder"
    r"|recycle|leader|heartbeat|restart|recover|outage|guard|degrad|throttle|with_timeout|stall",
    re.IGNORECASE,
)
# Pages, documents, rows, signals and commands about a pattern, which is explained where it is implemented.
ABOUT_A_PATTERN = ("/admin/", "/api/", "/management/", "/migrations/", "/models/", "_receivers.py", "/signals.py")
NAMED_FOR_ANOTHER_REASON = {
    "apiauth/authentication.py": "DRF's throttle class that asks apiauth/limits.py",
    "monitoring/audit.py": "reads the time of the last recovery from the audit",
    "monitoring/health/grading.py": "a state of the grade",
    "monitoring/health/match_cards.py": "a text on the status page",
    "monitoring/invariants/journal.py": "rules that list rows and recover nothing",
    "monitoring/invariants/leftovers.py": "rules that list rows and recover nothing",
    "monitoring/metrics/families.py": "figures about breakers",
    "monitoring/watchdogs/workers.py": "a watchdog that raises alerts and recovers nothing",
    "scraping/errors.py": "exceptions",
    "scraping/matches/poll_times.py": "the wait that a restart ends",
    "scraping/worker/scrape.py": "hands a payload to the outage keeper",
}
# Of which neither the module nor its functions bear the name of the pattern.
OTHER_NAMES = (
    *("scraping/policies/interval.py", "scraping/policies/error_slowdown.py", "scraping/policies/fairness.py"),
    *("scraping/policies/timeouts.py", "scraping/policies/drift.py", "scraping/policies/retry.py"),
    *("scraping/browser/host.py", "scraping/browser/health.py", "scraping/browser/processes.py"),
    *("scraping/matches/validate.py", "scraping/journal", "victoryline/lib/pg_wait.py", "victoryline/parent_watch.py"),
    *("victoryline/pool/connections.py", "apiauth/limits.py", "victoryline/lib/http/body_limits.py"),
    *("victoryline/lib/http/open_limits.py", "victoryline/lib/availability.py"),
)


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def implements_a_pattern(file: Path) -> bool:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = [node.name for node in parsed(file).body if isinstance(node, kinds)]
    return any(map(PATTERN_NAME.search, [file.stem, *defined]))


def modules() -> list[str]:
    """Returns the resilience modules, as paths from the root of the project."""
    root = Path(settings.BASE_DIR)
    found = {
        str(file.relative_to(root))
        for app in APPS
        for file in (root / app).rglob("*.py")
        if not any(part in str(file) for part in ABOUT_A_PATTERN) and implements_a_pattern(file)
    }
    return sorted((found | set(OTHER_NAMES)) - NAMED_FOR_ANOTHER_REASON.keys())


def documents(path: str) -> list[str]:
    """Returns what explains a module: its own docstring, and those of its functions and classes."""
    file = Path(settings.BASE_DIR) / path
    file = file / "__init__.py" if file.is_dir() else file
    explained = [parsed(file), *parsed(file).body]
    kinds = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [text for node in explained if isinstance(node, kinds) and (text := ast.get_docstring(node))]


@pytest.mark.requirement("NFR-024")
@pytest.mark.parametrize("path", modules())
def test_names_what_it_guards_against(path: str) -> None:
    explaining = [text for text in documents(path) if re.search(r"\bGuards\b", text)]
    assert explaining, f"{path}: write at its top what it guards against"
    assert max(len(text.splitlines()) for text in explaining) >= 3


def test_exceptions_from_the_rule_exist_and_match_it() -> None:
    files = {path: Path(settings.BASE_DIR) / path for path in NAMED_FOR_ANOTHER_REASON}
    assert [path for path, file in files.items() if not implements_a_pattern(file)] == []
