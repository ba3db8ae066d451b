"""A recorded match through the complete system: stadium, Chromium, adapters, database, API."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.patience import stretched
from tests.stadium.cricsheet_files import TEAMS, document, innings, write
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python

pytestmark = [pytest.mark.slow, pytest.mark.requirement("BX-19", "NFR-009", "NFR-008", "SO-13")]

REPLAY_SECONDS = 240


def overs(random: Random, count: int) -> list[str]:
    """Returns overs with wides, no-balls with byes, and wickets."""
    found = []
    for _ in range(count):
        balls = random.choices(("1wd", "5wd", "1nb", "4+1nb", "1nb+2b"), k=random.randrange(4))
        balls += random.choices(("0", "1", "1", "2", "4", "6", "W"), k=6)
        random.shuffle(balls)
        found.append(" ".join(balls))
    return found


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    random = Random("a short night at the harbour")
    first, second = TEAMS
    played = [innings(team, *overs(random, 4)) for team in TEAMS]
    # The stadium does not check the outcome: any winner will do.
    lead = [sum(ball["runs"]["total"] for over in one["overs"] for ball in over["deliveries"]) for one in played]
    is_first = lead[0] > lead[1]
    by = {"runs": lead[0] - lead[1]} if is_first else {"wickets": 5}
    outcome = {"winner": first if is_first else second, "by": by}
    return write(tmp_path, document(*played, outcome=outcome, overs=4), "harbour")


def replay(recording: Path, *options: str) -> dict[str, Any]:
    done = subprocess.run(
        python("manage.py", "replay", str(recording), "--json", *options),
        cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=stretched(REPLAY_SECONDS), check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_two_contradicting_sources_give_the_exact_recording(recording: Path) -> None:
    found = replay(recording, "--speed", "300", "--sites", "crex,espncricinfo", "--mistakes", "0.1", "--outage", "6")
    assert found["expected"] > 48
    assert (found["missing"], found["doubled"], found["wrong"]) == (0, 0, 0)
    assert found["matches"][0]["differences"] == []
