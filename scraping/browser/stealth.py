"""playwright-stealth, as an option: what a page's script can still tell an automated browser by.

Only where it changes nothing that our profile says for real. Its own user agent, platform, languages and client hints
are those of another machine, and would contradict what is on the wire.
"""

from __future__ import annotations

import functools

from playwright.async_api import BrowserContext
from playwright_stealth import Stealth

# A usual graphics chip under Linux: without one Chromium draws in software, and says so.
WEBGL_VENDOR = "Google Inc. (Intel)"
WEBGL_RENDERER = "ANGLE (Intel, Mesa Intel(R) UHD Graphics 620 (KBL GT2), OpenGL 4.6)"


@functools.cache
def _stealth() -> Stealth:
    return Stealth(
        navigator_hardware_concurrency=False,
        navigator_languages=False,
        navigator_languages_override=None,
        navigator_platform=False,
        navigator_platform_override=None,
        navigator_plugins=False,
        navigator_user_agent=False,
        navigator_user_agent_data=False,
        navigator_vendor=False,
        navigator_webdriver=False,  # the browser is started without that mark
        sec_ch_ua=False,
        webgl_vendor_override=WEBGL_VENDOR,
        webgl_renderer_override=WEBGL_RENDERER,
        init_scripts_only=True,
    )


async def hide(context: BrowserContext) -> None:
    """In every page that this context will open."""
    await _stealth().apply_stealth_async(context)
