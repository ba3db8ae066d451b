"""A recorded match through the complete system: stadium, Chromium, adapters, database, API."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.replay.files import TEAMS, delivery, innings, match, write
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python

pytestmark = [pytest.mark.slow, pytest.mark.requirement("BX-19", "NFR-009", "NFR-008", "SO-13")]

HARBOUR, VALLEY = TEAMS
REPLAY_SECONDS = 240


def overs(random: Random, batting: str, bowling: str, count: int) -> list[list[Any]]:
    """Overs with everything that makes them long: wides, no-balls with byes, wickets on both ends."""
    names = [name.split()[0] for name in (batting, bowling)]
    next_in = 3
    pair = [f"{names[0]} 1", f"{names[0]} 2"]
    found: list[list[Any]] = []
    for number in range(count):
        balls: list[Any] = []
        legal = 0
        while legal < 6:
            players: dict[str, Any] = {"batter": pair[0], "partner": pair[1], "bowler": f"{names[1]} {9 + number % 3}"}
            dice = random.random()
            if dice < 0.1:
                balls.append(delivery(extras={"wides": random.choice((1, 1, 5))}, **players))
            elif dice < 0.16:
                balls.append(delivery(random.choice((0, 4)), extras={"noballs": 1}, **players))
            elif dice < 0.22:
                balls.append(delivery(extras={"noballs": 1, "byes": 2}, **players))
            else:
                legal += 1
                out = pair[0] if dice > 0.93 and next_in < 11 else ""
                balls.append(delivery(0 if out else random.choice((0, 1, 1, 2, 4, 6)), out=out, **players))
                if out:
                    pair[0], next_in = f"{names[0]} {next_in}", next_in + 1
        found.append(balls)
    return found


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    random = Random("a short night at the harbour")
    sides = [(HARBOUR, VALLEY), (VALLEY, HARBOUR)]
    played = [innings(one, *overs(random, one, other, 4)) for one, other in sides]
    # Whatever the dice said: the first side wins by what it is ahead, after a last over that makes sure of it.
    lead = [sum(ball["runs"]["total"] for over in one["overs"] for ball in over["deliveries"]) for one in played]
    winner, margin = (HARBOUR, lead[0] - lead[1]) if lead[0] > lead[1] else (VALLEY, 5)
    by = {"runs": margin} if winner == HARBOUR else {"wickets": margin}
    return write(tmp_path, "harbour", match(*played, outcome={"winner": winner, "by": by}, overs=4))


def replay(recording: Path, *options: str) -> dict[str, Any]:
    done = subprocess.run(
        python("manage.py", "replay", str(recording), "--json", *options),
        cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=REPLAY_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_two_contradicting_sources_give_the_exact_recording(recording: Path) -> None:
    found = replay(recording, "--speed", "300", "--sites", "crex,espncricinfo", "--mistakes", "0.1", "--outage", "6")
    assert found["expected"] > 48
    assert (found["missing"], found["doubled"], found["wrong"]) == (0, 0, 0)
    assert found["matches"][0]["differences"] == []
