"""Converts between wall time and simulated time.

The pace may change while the stadium runs. Each change adds an anchor, and no anchor changes the times before it, so
an event keeps its wall time, and therefore its id. Anchors are saved in a state file: a stadium that is killed and
restarted continues as if it had been running all the time.
"""

from __future__ import annotations

import json
import os
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

MAX_PACE = 4_000.0


@dataclass(frozen=True, slots=True)
class Anchor:
    wall: float
    simulated: float
    pace: float


class StateFileError(Exception):
    """The state file is not readable; ignoring it would change ids that were published."""


class StadiumClock:
    def __init__(
        self, pace: float, state_file: Path | None = None, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._wall_clock = wall_clock
        self._state_file = state_file
        self.anchors: list[Anchor] = _load(state_file) or [Anchor(wall_clock(), 0.0, _checked(pace))]
        self._index()
        self._save()

    @property
    def pace(self) -> float:
        return self.anchors[-1].pace

    def wall(self) -> float:
        return self._wall_clock()

    def now(self) -> float:
        """Returns the simulated seconds since this stadium was first started."""
        return self.simulated_at(self._wall_clock())

    def simulated_at(self, wall: float) -> float:
        anchor = self.anchors[max(bisect_right(self._walls, wall) - 1, 0)]
        return anchor.simulated + (wall - anchor.wall) * anchor.pace

    def wall_at(self, simulated: float) -> float:
        """Returns when a simulated moment was first reached, or will be reached at the present pace."""
        index = max(bisect_left(self._simulated, simulated) - 1, 0)
        anchor = self.anchors[index]
        wall = anchor.wall + (simulated - anchor.simulated) / (anchor.pace or self._last_running_pace())
        if index + 1 < len(self.anchors):
            return min(wall, self.anchors[index + 1].wall)  # a skip passes many moments at once
        return wall

    def set_pace(self, pace: float) -> None:
        wall = self._wall_clock()
        self._add(Anchor(wall, self.simulated_at(wall), _checked(pace)))

    def skip(self, simulated_seconds: float) -> None:
        if simulated_seconds < 0:
            raise ValueError("seconds must not be negative: the past has been published")
        wall = self._wall_clock()
        self._add(Anchor(wall, self.simulated_at(wall) + simulated_seconds, self.pace))

    def _last_running_pace(self) -> float:
        return next((anchor.pace for anchor in reversed(self.anchors) if anchor.pace), 1.0)

    def _add(self, anchor: Anchor) -> None:
        self.anchors.append(anchor)
        self._index()
        self._save()

    def _index(self) -> None:
        self._walls = [anchor.wall for anchor in self.anchors]
        self._simulated = [anchor.simulated for anchor in self.anchors]

    def _save(self) -> None:
        if self._state_file is None:
            return
        self._state_file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._state_file.with_name(f"{self._state_file.name}.{os.getpid()}.partial")
        partial.write_text(json.dumps({"anchors": [asdict(anchor) for anchor in self.anchors]}))
        partial.replace(self._state_file)


def _checked(pace: float) -> float:
    if not 0 <= pace <= MAX_PACE:
        raise ValueError(f"pace must be between 0 (frozen) and {MAX_PACE:g}, not {pace:g}")
    return float(pace)


def _load(state_file: Path | None) -> list[Anchor]:
    if state_file is None or not state_file.exists():
        return []
    try:
        return [Anchor(**anchor) for anchor in json.loads(state_file.read_text())["anchors"]]
    except (ValueError, KeyError, TypeError) as error:
        raise StateFileError(f"{state_file} is not a stadium state file; remove it to start again") from error
