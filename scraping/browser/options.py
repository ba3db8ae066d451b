"""How a browser is started."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

OWNER_SWITCH = "--victoryline-owner"

# A browser that reads scores needs none of the services that a person's browser keeps in the background.
QUIET = (
    "--disable-background-networking",
    "--disable-blink-features=AutomationControlled",  # navigator.webdriver is then what it is for everybody
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
    # Open pages of one source share renderers, or fifty of them would hold a gigabyte; visits stay alone in theirs.
    # The price: when a renderer dies, a handful of pages is opened anew, not one.
    "--renderer-process-limit=12",
)

# All of its contexts go out through the worker's gate. What does not ask a context's proxy finds no host at all.
NO_WAY_AROUND = (
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
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
    uses_cdp: bool = False
    cdp_endpoint: str = field(default="", repr=False)  # of a browser that is not ours; it may hold a secret
    has_stealth: bool = False

    @property
    def has_sandbox(self) -> bool:
        """Chromium's sandbox cannot work for root; anybody else gets it."""
        return os.geteuid() != 0

    @property
    def has_gate(self) -> bool:
        """Does the browser go out through this worker's gate? One on another machine cannot reach it."""
        where = urlsplit(self.cdp_endpoint).hostname if self.uses_cdp and self.cdp_endpoint else ""
        return where in ("", "localhost", "127.0.0.1", "::1")

    def arguments(self) -> list[str]:
        return [*QUIET, *NO_WAY_AROUND, f"{OWNER_SWITCH}={self.owner}"]
