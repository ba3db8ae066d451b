"""Everything that can be chosen when a stadium is started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stadium.slots import ReplayOptions
from stadium.told import Manner


@dataclass(frozen=True, slots=True)
class StadiumConfig:
    host: str = "127.0.0.1"
    port: int = 8790
    programme: str = "demo"
    pace: float = 10.0
    seed: int = 7
    state_file: Path | None = None
    port_file: Path | None = None
    session_seconds: float = 6 * 3600.0
    sites: tuple[str, ...] = ("crex",)  # that play recordings
    loop: bool = False
    at_once: bool = False
    told: tuple[tuple[str, Manner], ...] = ()  # how sites tell what others know better

    @property
    def replay(self) -> ReplayOptions:
        return ReplayOptions(self.sites, self.loop, self.at_once, self.pace)
