"""Runs every block of code in docs/client.md against the real API."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from tests.client.conftest import Play, steps
from tests.client.faulty_proxy import FaultyProxy
from tests.factories import make_match, make_ref, make_snapshot
from victoryline.configuration import PROJECT_ROOT
from victoryline_client import Client

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=False)

PAGE = (PROJECT_ROOT / "docs" / "client.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert found
    return found


@pytest.fixture
def play(transactional_db: None) -> Play:
    now = timezone.now()
    match = make_match(now=now)
    make_snapshot(match, now=now)
    play = Play(make_ref(match, source_event_id="13KM", now=now))
    play.bowl(2)
    return play


def test_every_block_is_run() -> None:
    assert PAGE.count("```") == 2 * (len(blocks("sh")) + len(blocks("python")))


@pytest.mark.slow
def test_shell_blocks(proxy: FaultyProxy, key: str, play: Play) -> None:
    given = {"http://127.0.0.1:8000": proxy.url, "vl_...": key}
    script = "\necho '@@@'\n".join(["set -euo pipefail", *blocks("sh")])
    for example, real in given.items():
        assert script.count(example) == 1
        script = script.replace(example, real)
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # a python3 with httpx
    done = subprocess.run(
        ["bash", "-c", script], cwd=PROJECT_ROOT, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert key not in done.stdout
    _, listed, headers, conditional, delta, terminal = (part.strip() for part in done.stdout.split("@@@"))
    assert [match["keys"] for match in json.loads(listed)["matches"]] == [["crex_13KM"]]
    assert headers.startswith("HTTP/1.1 200")
    for name in ("X-Data-Age-Seconds", "X-Data-State: fresh", "X-Next-Update-In", "ETag"):
        assert name in headers
    assert conditional.startswith("HTTP/1.1 304")
    assert json.loads(delta)["from_sequence"] == 1
    assert terminal.startswith("crex_13KM ")
    assert json.loads(terminal.splitlines()[-1])["changed"]["sequence"]


@pytest.mark.requirement("BX-1", "BX-3")
def test_python_blocks(
    proxy: FaultyProxy, key: str, play: Play, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """During the first loop: a ball, a correction, a retraction, the end."""
    actions = steps(
        play.bowl,
        lambda: proxy.faults.extend(["503", "drop"]),
        lambda: play.correct(2, 4),
        lambda: play.retract(3),
        play.end,
    )
    defaults: dict[str, Any] = dict(Client.__init__.__kwdefaults__ or {})
    monkeypatch.setattr(Client.__init__, "__kwdefaults__", {**defaults, "sleep": actions})
    monkeypatch.setattr(os, "environ", {**os.environ, "VICTORYLINE_URL": proxy.url, "VICTORYLINE_API_KEY": key})
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks("python")):
        exec(compile(block, f"docs/client.md, block {number + 1}", "exec"), names)
    names["impatient"].close()
    output = capsys.readouterr().out
    assert "['crex_13KM'] India vs Australia fresh" in output
    assert [output.count(f"{action} 2-") for action in ("add", "update", "retract")] == [4, 1, 1]
    assert {ball["over"]: ball["runs"] for ball in names["balls"].values()} == {"0.1": 1, "0.2": 4, "0.4": 1}
    assert "new: ()" in output
    assert "No match is known as no_such_match" in output
