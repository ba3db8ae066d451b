"""How a browser is started."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

OWNER_SWITCH = "--victoryline-owner"

# A browser that reads scores needs none of the services that a person's browser keeps in the background.
QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--metrics-recording-only",
    "--mute-audio",
    "--no-first-run",
)


@dataclass(frozen=True)
class BrowserOptions:
    executable: Path
    owner: str  # the worker's id: tells whose browser this is when the worker is gone
    headless: bool = True
    launch_timeout_seconds: float = 20.0
    navigation_timeout_seconds: float = 30.0
    page_timeout_seconds: float = 30.0
    capture_timeout_seconds: float = 5.0
    request_timeout_seconds: float = 10.0
    max_body_bytes: int = 8 * 1024 * 1024
    max_redirects: int = 3
    user_agent: str | None = None
    locale: str = "en-GB"
    timezone: str = "UTC"

    @property
    def has_sandbox(self) -> bool:
        """Chromium's sandbox cannot work for root; anybody else gets it."""
        return os.geteuid() != 0

    def arguments(self) -> list[str]:
        return [*QUIET, f"{OWNER_SWITCH}={self.owner}"]
