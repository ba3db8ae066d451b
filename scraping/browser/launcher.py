"""The launcher: starts Chromium through Playwright or with a DevTools port (CDP), or connects to an external one.

`launched.pid` is the top of our own process tree; None for an external browser. `await launched.close()` never raises;
it ends that process tree, or closes our contexts in the external browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import Browser, Playwright

from scraping.browser.playwright_calls import with_timeout
from scraping.browser.processes import OWNER_SWITCH, browser_pid, end_tree
from scraping.errors import ResourceLost
from scraping.policies.timeouts import Timeouts
from victoryline.lib.processes import remove_tree, spawn

CLOSE_SECONDS = 3.0
POLL_SECONDS = 0.02
PROFILE_PREFIX = "victoryline-cdp-"  # of the profile folder of a browser with a DevTools port

# Switches off background services that reading does not need.
BASE_ARGUMENTS = (
    "--disable-background-networking",
    "--disable-blink-features=AutomationControlled",  # navigator.webdriver is false, as in a normal browser
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
    # Attached pages of a source share renderers: fifty of their own would hold a gigabyte. The price: the crash of a
    # renderer closes several pages.
    "--renderer-process-limit=12",
)

# All contexts use the worker's forward proxy. A request that bypasses it resolves no host.
PROXY_ONLY_ARGUMENTS = (
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)


@dataclass(frozen=True)
class BrowserOptions:
    executable: Path
    owner: str  # the worker's id: identifies the browser of a worker that has died
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
    cdp_endpoint: str = field(default="", repr=False)  # of an external browser; may hold a secret
    has_stealth: bool = False

    @property
    def timeouts(self) -> Timeouts:
        return Timeouts(
            page_seconds=self.page_timeout_seconds,
            navigation_seconds=self.navigation_timeout_seconds,
            selector_seconds=self.capture_timeout_seconds,
            request_seconds=self.request_timeout_seconds,
        )

    @property
    def has_sandbox(self) -> bool:
        """Chromium's sandbox does not work for root."""
        return os.geteuid() != 0

    @property
    def has_forward_proxy(self) -> bool:
        """Whether the browser uses this worker's forward proxy; one on another machine cannot reach it."""
        host = urlsplit(self.cdp_endpoint).hostname if self.uses_cdp and self.cdp_endpoint else ""
        return host in ("", "localhost", "127.0.0.1", "::1")

    def arguments(self) -> list[str]:
        return [*BASE_ARGUMENTS, *PROXY_ONLY_ARGUMENTS, f"{OWNER_SWITCH}={self.owner}"]


@dataclass(frozen=True)
class Launched:
    """A started or connected browser."""

    browser: Browser
    pid: int | None  # None: external
    close: Callable[[], Awaitable[None]]


async def launch(playwright: Playwright, options: BrowserOptions) -> Launched:
    """Starts or connects to a browser as the options say. A failed start leaves no process behind."""
    if not options.uses_cdp:
        return await _launch_plain(playwright, options)
    if options.cdp_endpoint:
        return await _attach(playwright, options)
    return await _launch_with_devtools(playwright, options)


async def _launch_plain(playwright: Playwright, options: BrowserOptions) -> Launched:
    try:
        browser = await with_timeout(
            playwright.chromium.launch(
                executable_path=options.executable,
                headless=options.headless,
                args=options.arguments(),
                chromium_sandbox=options.has_sandbox,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=options.launch_timeout_seconds * 1000,
            ),
            options.launch_timeout_seconds + 1,
            "starting Chromium",
        )
    except BaseException:
        await asyncio.to_thread(_end, browser_pid(options.owner))
        raise
    pid = await asyncio.to_thread(browser_pid, options.owner)

    async def close() -> None:
        await _disconnect(browser)
        await asyncio.to_thread(_end, pid)

    return Launched(browser, pid, close)


async def _attach(playwright: Playwright, options: BrowserOptions) -> Launched:
    """Connects to an external browser. Closing the connection closes our contexts, never the browser."""
    try:
        browser = await _connect(playwright, options.cdp_endpoint, options.launch_timeout_seconds)
    except Exception as error:  # noqa: BLE001 - any error is reported, without its text
        address = urlsplit(options.cdp_endpoint)
        # Neither the whole address nor the cause, which quotes it: it may hold a secret.
        raise ResourceLost(
            f"the Chromium at {address.hostname}:{address.port or ''} could not be reached ({type(error).__name__}): "
            "see SCRAPER_CDP_ENDPOINT"
        ) from None

    async def close() -> None:
        await _disconnect(browser)

    return Launched(browser, None, close)


async def _launch_with_devtools(playwright: Playwright, options: BrowserOptions) -> Launched:
    """Starts our own Chromium with a debugging port that it chooses itself, and a temporary profile folder."""
    profile = Path(tempfile.mkdtemp(prefix=PROFILE_PREFIX))
    process: subprocess.Popen[bytes] | None = None
    try:
        process = spawn(_command(options, profile), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        endpoint = await _endpoint(profile, process, options.launch_timeout_seconds)
        browser = await _connect(playwright, endpoint, options.launch_timeout_seconds)
    except BaseException:
        await asyncio.to_thread(_end_own, process, profile)
        raise

    async def close() -> None:
        await _disconnect(browser)
        await asyncio.to_thread(_end_own, process, profile)

    return Launched(browser, process.pid, close)


def _command(options: BrowserOptions, profile: Path) -> list[str]:
    return [
        str(options.executable),
        *(["--headless=new"] if options.headless else []),
        *([] if options.has_sandbox else ["--no-sandbox"]),
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        "--no-default-browser-check",
        "--password-store=basic",
        "--use-mock-keychain",
        *options.arguments(),
        "about:blank",
    ]


async def _endpoint(profile: Path, process: subprocess.Popen[bytes], seconds: float) -> str:
    """Returns the DevTools address, which Chromium writes into its profile folder once it listens."""
    port_file = profile / "DevToolsActivePort"

    async def found() -> str:
        while True:
            with contextlib.suppress(OSError):
                lines = port_file.read_text(encoding="ascii").splitlines()
                if len(lines) == 2:
                    return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            if process.poll() is not None:
                raise ResourceLost(f"Chromium ended with code {process.returncode} before its DevTools listened")
            await asyncio.sleep(POLL_SECONDS)

    return await with_timeout(found(), seconds, "starting Chromium for its DevTools")


async def _connect(playwright: Playwright, endpoint: str, seconds: float) -> Browser:
    return await with_timeout(
        playwright.chromium.connect_over_cdp(endpoint, timeout=seconds * 1000), seconds + 1, "connecting to Chromium"
    )


async def _disconnect(browser: Browser) -> None:
    with contextlib.suppress(Exception):
        await with_timeout(browser.close(), CLOSE_SECONDS, "closing Chromium")


def _end(pid: int | None) -> None:
    if pid is not None:
        end_tree(pid)


def _end_own(process: subprocess.Popen[bytes] | None, profile: Path) -> None:
    if process is not None:
        end_tree(process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=CLOSE_SECONDS)
    remove_tree(profile)
