"""Everything that can be chosen when a stadium is started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
