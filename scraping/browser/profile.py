"""The browser profile of a session: the same in page scripts, in request headers and in direct reads.

Version and client hints are those of the real Chromium. Language and time zone follow the country of the session's
proxy. playwright-stealth is optional and sets only what does not contradict the profile.
"""

from __future__ import annotations

import csv
import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import BrowserContext, ViewportSize
from playwright_stealth import Stealth

# The usual language and time zone of a browser in a country; the zone is that of most inhabitants.
with Path(__file__).with_name("countries.csv").open(newline="") as _file:
    COUNTRIES = {row["country"]: (row["language"], row["time_zone"]) for row in csv.DictReader(_file)}
ALIASES = {"uk": "gb"}
HOME = ("en-GB", "UTC")  # without a proxy, or with one of an unknown country
# A common graphics chip under Linux: without one Chromium reports software rendering.
WEBGL_VENDOR = "Google Inc. (Intel)"
WEBGL_RENDERER = "ANGLE (Intel, Mesa Intel(R) UHD Graphics 620 (KBL GT2), OpenGL 4.6)"
VIEWPORTS = ((1366, 768), (1440, 900), (1536, 864), (1600, 900), (1920, 1080))


@dataclass(frozen=True)
class Profile:
    user_agent: str
    locale: str
    timezone: str
    viewport: ViewportSize


def user_agent_of(version: str) -> str:
    """Returns the user agent of a Chromium with a window: major version only, without "Headless"."""
    return (
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
        f"Chrome/{version.partition('.')[0]}.0.0.0 Safari/537.36"
    )


def is_known_country(code: str) -> bool:
    return ALIASES.get(code.lower(), code.lower()) in COUNTRIES


def profile_for(session_id: str, *, version: str, country: str) -> Profile:
    """Returns the profile of a session, the same for all its browsers. `country`: empty without a proxy."""
    code = country.lower()
    locale, timezone = COUNTRIES.get(ALIASES.get(code, code), HOME)
    width, height = VIEWPORTS[hashlib.sha256(session_id.encode()).digest()[0] % len(VIEWPORTS)]
    return Profile(user_agent_of(version), locale, timezone, {"width": width, "height": height})


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
        navigator_webdriver=False,  # a launch argument has removed it
        sec_ch_ua=False,
        webgl_vendor_override=WEBGL_VENDOR,
        webgl_renderer_override=WEBGL_RENDERER,
        init_scripts_only=True,
    )


async def apply_stealth(context: BrowserContext) -> None:
    """Hides marks of an automated browser in every page of the context."""
    await _stealth().apply_stealth_async(context)
