"""Every test that docs/security.md names exists."""

from __future__ import annotations

import ast
import re

import pytest

from victoryline.configuration import PROJECT_ROOT

TEXT = (PROJECT_ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)*)`", TEXT)))
RISKS = re.findall(r"^\| (API\d+) .*\| (.+) \|$", TEXT, re.MULTILINE)


def test_every_risk_of_the_list_has_its_tests() -> None:
    assert [name for name, _ in RISKS] == [f"API{number}" for number in range(1, 11)]
    for name, shown_by in RISKS:
        assert "`tests/" in shown_by, name


@pytest.mark.parametrize("name", NAMED)
def test_is_there(name: str) -> None:
    path, *parts = name.split("::")
    body: list[ast.stmt] = ast.parse((PROJECT_ROOT / path).read_text(encoding="utf-8")).body
    for part in parts:
        found = [each for each in body if isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name == part]
        assert found, f"{name}: there is no {part}"
        body = found[0].body
