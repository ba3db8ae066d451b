"""Starting a Chromium, or taking hold of one that runs already: plainly through Playwright, or over DevTools (CDP).

For the host: `launched = await launch(playwright, options)`. `launched.pid` is the top of our own process tree, None
for a browser that is not ours; `await launched.close()` never raises, ends that whole tree if it is ours, and of
somebody else's browser only our own contexts.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import Browser, Playwright

from scraping.browser.bounded import bounded
from scraping.browser.options import BrowserOptions
from scraping.browser.processes import browser_pid, end_tree
from scraping.errors import ResourceLost
from victoryline.lib.processes import remove_tree, spawn

CLOSE_SECONDS = 3.0
LOOK_SECONDS = 0.02
PROFILE_PREFIX = "victoryline-cdp-"  # of the folder of a browser that we started for its DevTools


@dataclass(frozen=True)
class Launched:
    """A browser that works, and how to be rid of it."""

    browser: Browser
    pid: int | None  # None: it is not ours
    close: Callable[[], Awaitable[None]]


async def launch(playwright: Playwright, options: BrowserOptions) -> Launched:
    """A browser as the options want it. Whatever goes wrong, nothing that was started stays behind."""
    if not options.uses_cdp:
        return await _launch_plain(playwright, options)
    if options.cdp_endpoint:
        return await _attach(playwright, options)
    return await _launch_for_devtools(playwright, options)


async def _launch_plain(playwright: Playwright, options: BrowserOptions) -> Launched:
    try:
        browser = await bounded(
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
        await _leave(browser)
        await asyncio.to_thread(_end, pid)

    return Launched(browser, pid, close)


async def _attach(playwright: Playwright, options: BrowserOptions) -> Launched:
    """Somebody else's browser: used, never ended. Closing the connection disposes of the contexts made through it."""
    try:
        browser = await _connect(playwright, options.cdp_endpoint, options.launch_timeout_seconds)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told without its words
        where = urlsplit(options.cdp_endpoint)
        # Not the whole address: it may hold a secret. Not the cause either, which quotes it.
        raise ResourceLost(
            f"the Chromium at {where.hostname}:{where.port or ''} could not be reached ({type(error).__name__}): "
            "see SCRAPER_CDP_ENDPOINT"
        ) from None

    async def close() -> None:
        await _leave(browser)

    return Launched(browser, None, close)


async def _launch_for_devtools(playwright: Playwright, options: BrowserOptions) -> Launched:
    """Our own Chromium with a debugging port that it chooses itself, and a profile folder that goes with it."""
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
        await _leave(browser)
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
    """Where its DevTools listen; Chromium writes that down in its profile folder once they do."""
    note = profile / "DevToolsActivePort"

    async def found() -> str:
        while True:
            with contextlib.suppress(OSError):
                lines = note.read_text(encoding="ascii").splitlines()
                if len(lines) == 2:
                    return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            if process.poll() is not None:
                raise ResourceLost(f"Chromium ended with code {process.returncode} before its DevTools listened")
            await asyncio.sleep(LOOK_SECONDS)

    return await bounded(found(), seconds, "starting Chromium for its DevTools")


async def _connect(playwright: Playwright, endpoint: str, seconds: float) -> Browser:
    return await bounded(
        playwright.chromium.connect_over_cdp(endpoint, timeout=seconds * 1000), seconds + 1, "connecting to Chromium"
    )


async def _leave(browser: Browser) -> None:
    with contextlib.suppress(Exception):
        await bounded(browser.close(), CLOSE_SECONDS, "closing Chromium")


def _end(pid: int | None) -> None:
    if pid is not None:
        end_tree(pid)


def _end_own(process: subprocess.Popen[bytes] | None, profile: Path) -> None:
    if process is not None:
        end_tree(process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=CLOSE_SECONDS)
    remove_tree(profile)
