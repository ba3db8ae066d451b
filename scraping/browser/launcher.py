"""The launcher: starts Chromium through Playwright or with a DevTools port (CDP), or connects to an external one.

An external browser is never ended: closing the connection closes our contexts in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import Browser, CDPSession, Playwright

from scraping.browser.playwright_calls import with_timeout
from scraping.browser.processes import OWNER_SWITCH, BrowserResources, browser_pid, end_tree
from scraping.browser.request_trace import TraceLevel
from scraping.errors import ResourceLost
from scraping.policies.timeouts import Timeouts
from victoryline.configuration import Config
from victoryline.lib import chromium
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
    # Attached pages share renderers: fifty of their own would hold a gigabyte.
    "--renderer-process-limit=12",
)

# All contexts use the worker's forward proxy. A request that bypasses it resolves no host.
PROXY_ONLY_ARGUMENTS = (
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)


def has_sandbox() -> bool:
    """Chromium's sandbox does not work for root."""
    return os.geteuid() != 0


@dataclass(frozen=True)
class BrowserOptions:
    executable: Path
    owner: str  # the worker's id: identifies the browser of a worker that has died
    headless: bool = True
    launch_timeout_seconds: float = 20.0
    timeouts: Timeouts = field(default_factory=Timeouts)
    max_body_bytes: int = 8 * 1024 * 1024
    uses_cdp: bool = False
    cdp_endpoint: str = field(default="", repr=False)  # of an external browser; may hold a secret
    has_stealth: bool = False
    trace: TraceLevel = "none"  # which requests to sources are logged

    @property
    def has_forward_proxy(self) -> bool:
        """Whether the browser uses this worker's forward proxy; one on another machine cannot reach it."""
        host = urlsplit(self.cdp_endpoint).hostname if self.uses_cdp and self.cdp_endpoint else ""
        return host in ("", "localhost", "127.0.0.1", "::1")

    @classmethod
    def of(cls, config: Config, *, owner: str) -> BrowserOptions | None:
        """Returns the configured options; None where there is no Chromium."""
        program = chromium.find(chosen=config.chromium_path, var_dir=config.var_dir)
        if program is None:
            return None
        return cls(
            executable=program,
            owner=owner,
            headless=config.browser_headless,
            timeouts=Timeouts(
                config.page_timeout_seconds, config.navigation_timeout_seconds, config.selector_timeout_seconds
            ),
            uses_cdp=config.scraper_use_cdp,
            cdp_endpoint=config.scraper_cdp_endpoint,
            has_stealth=config.scraper_stealth,
            trace=config.source_trace,
        )

    def arguments(self) -> list[str]:
        return [*BASE_ARGUMENTS, *PROXY_ONLY_ARGUMENTS, f"{OWNER_SWITCH}={self.owner}"]


@dataclass
class Launched:
    browser: Browser
    pid: int | None = None  # the top of its process tree; None: external
    process: subprocess.Popen[bytes] | None = None  # with a DevTools port
    profile: Path | None = None  # its folder, to be removed
    resources: BrowserResources | None = None
    started: float = field(default_factory=time.monotonic)
    pages: int = 0  # opened so far
    _ping_session: CDPSession | None = None

    async def close(self) -> None:
        """Closes the connection and ends our own process tree. Bounded in time, never raises."""
        with contextlib.suppress(Exception):
            await with_timeout(self.browser.close(), CLOSE_SECONDS, "closing Chromium")
        await asyncio.to_thread(_end, self.pid, self.process, self.profile)

    async def ping(self) -> None:
        """Returns when the browser has responded. Has no timeout; the caller measures the time."""
        if self._ping_session is None:
            self._ping_session = await self.browser.new_browser_cdp_session()
        await self._ping_session.send("Browser.getVersion")


async def launch(playwright: Playwright, options: BrowserOptions) -> Launched:
    """Starts or connects to a browser as the options say. A failed start leaves no process behind."""
    if not options.uses_cdp:
        launched = await _launch_plain(playwright, options)
    elif options.cdp_endpoint:
        return await _attach(playwright, options)
    else:
        launched = await _launch_with_devtools(playwright, options)
    if launched.pid is not None:
        launched.resources = await asyncio.to_thread(BrowserResources.of, launched.pid)
    return launched


async def _launch_plain(playwright: Playwright, options: BrowserOptions) -> Launched:
    try:
        browser = await with_timeout(
            playwright.chromium.launch(
                executable_path=options.executable,
                headless=options.headless,
                args=options.arguments(),
                chromium_sandbox=has_sandbox(),
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
    return Launched(browser, await asyncio.to_thread(browser_pid, options.owner))


async def _attach(playwright: Playwright, options: BrowserOptions) -> Launched:
    try:
        return Launched(await _connect(playwright, options.cdp_endpoint, options.launch_timeout_seconds))
    except Exception as error:  # noqa: BLE001 - any error is reported, without its text
        address = urlsplit(options.cdp_endpoint)
        # Neither the whole address nor the cause, which quotes it: it may hold a secret.
        raise ResourceLost(
            f"the Chromium at {address.hostname}:{address.port or ''} could not be reached ({type(error).__name__}): "
            "see SCRAPER_CDP_ENDPOINT"
        ) from None


async def _launch_with_devtools(playwright: Playwright, options: BrowserOptions) -> Launched:
    """Starts our own Chromium with a debugging port that it chooses itself, and a temporary profile folder."""
    profile, seconds = Path(tempfile.mkdtemp(prefix=PROFILE_PREFIX)), options.launch_timeout_seconds
    command = [
        str(options.executable),
        *(["--headless=new"] if options.headless else []),
        *([] if has_sandbox() else ["--no-sandbox"]),
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        "--no-default-browser-check",
        "--password-store=basic",
        "--use-mock-keychain",
        *options.arguments(),
        "about:blank",
    ]
    process: subprocess.Popen[bytes] | None = None
    try:
        process = spawn(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        endpoint = await with_timeout(_endpoint(profile, process), seconds, "starting Chromium for its DevTools")
        return Launched(await _connect(playwright, endpoint, seconds), process.pid, process, profile)
    except BaseException:
        await asyncio.to_thread(_end, process.pid if process else None, process, profile)
        raise


async def _endpoint(profile: Path, process: subprocess.Popen[bytes]) -> str:
    """Returns the DevTools address, which Chromium writes into its profile folder once it listens."""
    while True:
        with contextlib.suppress(OSError):
            lines = (profile / "DevToolsActivePort").read_text(encoding="ascii").splitlines()
            if len(lines) == 2:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        if process.poll() is not None:
            raise ResourceLost(f"Chromium ended with code {process.returncode} before its DevTools listened")
        await asyncio.sleep(POLL_SECONDS)


async def _connect(playwright: Playwright, endpoint: str, seconds: float) -> Browser:
    return await with_timeout(
        playwright.chromium.connect_over_cdp(endpoint, timeout=seconds * 1000), seconds + 1, "connecting to Chromium"
    )


def _end(pid: int | None, process: subprocess.Popen[bytes] | None = None, profile: Path | None = None) -> None:
    if pid is not None:
        end_tree(pid)
    if process is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=CLOSE_SECONDS)
    if profile is not None:
        remove_tree(profile)
