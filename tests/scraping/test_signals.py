"""Every signal is documented and has a receiver."""

from __future__ import annotations

import inspect
import re

import pytest
from django.dispatch import Signal

from scraping import signals
from scraping.stats import read_stats

NAMES = sorted(name for name, value in vars(signals).items() if isinstance(value, Signal))


def test_finds_the_signals() -> None:
    assert "match_updated" in NAMES
    assert read_stats, "connects its receivers when it is imported, as in every process of ours"


@pytest.mark.parametrize("name", NAMES)
def test_has_a_receiver(name: str) -> None:
    has_receiver = bool(getattr(signals, name).receivers)
    assert has_receiver, "add a row to AUDITED in monitoring/audit_receivers.py, or a receiver in alert_receivers.py"


@pytest.mark.parametrize("name", NAMES)
def test_is_documented_with_its_arguments(name: str) -> None:
    comment = re.search(rf"\n((?:# .+\n)+){name} = Signal\(\)", inspect.getsource(signals))
    is_documented = comment is not None and re.fullmatch(r"# [A-Z].+: .+\.\n", comment[1], re.DOTALL)
    assert is_documented, f"write a comment '# When it is sent: its arguments.' above {name} in scraping/signals.py"
