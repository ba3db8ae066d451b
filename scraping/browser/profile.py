"""The browser profile of a session: the same in page scripts, in request headers and in direct reads.

Version and client hints are those of the real Chromium, because a page can check them. Language and time zone follow
the country of the session's proxy. playwright-stealth is optional and sets only what does not contradict the profile.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass

from playwright.async_api import BrowserContext, ViewportSize
from playwright_stealth import Stealth


@dataclass(frozen=True)
class Country:
    """The usual settings of a browser in a country; the time zone is that of most inhabitants."""

    locale: str
    timezone: str


COUNTRIES: dict[str, Country] = {
    "ae": Country("en-AE", "Asia/Dubai"),
    "ar": Country("es-AR", "America/Argentina/Buenos_Aires"),
    "at": Country("de-AT", "Europe/Vienna"),
    "au": Country("en-AU", "Australia/Sydney"),
    "bd": Country("bn-BD", "Asia/Dhaka"),
    "be": Country("nl-BE", "Europe/Brussels"),
    "br": Country("pt-BR", "America/Sao_Paulo"),
    "ca": Country("en-CA", "America/Toronto"),
    "ch": Country("de-CH", "Europe/Zurich"),
    "cl": Country("es-CL", "America/Santiago"),
    "co": Country("es-CO", "America/Bogota"),
    "cz": Country("cs-CZ", "Europe/Prague"),
    "de": Country("de-DE", "Europe/Berlin"),
    "dk": Country("da-DK", "Europe/Copenhagen"),
    "es": Country("es-ES", "Europe/Madrid"),
    "fi": Country("fi-FI", "Europe/Helsinki"),
    "fr": Country("fr-FR", "Europe/Paris"),
    "gb": Country("en-GB", "Europe/London"),
    "gr": Country("el-GR", "Europe/Athens"),
    "hk": Country("zh-HK", "Asia/Hong_Kong"),
    "hr": Country("hr-HR", "Europe/Zagreb"),
    "hu": Country("hu-HU", "Europe/Budapest"),
    "id": Country("id-ID", "Asia/Jakarta"),
    "ie": Country("en-IE", "Europe/Dublin"),
    "il": Country("he-IL", "Asia/Jerusalem"),
    "in": Country("en-IN", "Asia/Kolkata"),
    "it": Country("it-IT", "Europe/Rome"),
    "jp": Country("ja-JP", "Asia/Tokyo"),
    "ke": Country("en-KE", "Africa/Nairobi"),
    "kr": Country("ko-KR", "Asia/Seoul"),
    "lk": Country("en-LK", "Asia/Colombo"),
    "mx": Country("es-MX", "America/Mexico_City"),
    "my": Country("en-MY", "Asia/Kuala_Lumpur"),
    "ng": Country("en-NG", "Africa/Lagos"),
    "nl": Country("nl-NL", "Europe/Amsterdam"),
    "no": Country("nb-NO", "Europe/Oslo"),
    "np": Country("ne-NP", "Asia/Kathmandu"),
    "nz": Country("en-NZ", "Pacific/Auckland"),
    "ph": Country("en-PH", "Asia/Manila"),
    "pk": Country("en-PK", "Asia/Karachi"),
    "pl": Country("pl-PL", "Europe/Warsaw"),
    "pt": Country("pt-PT", "Europe/Lisbon"),
    "ro": Country("ro-RO", "Europe/Bucharest"),
    "rs": Country("sr-RS", "Europe/Belgrade"),
    "se": Country("sv-SE", "Europe/Stockholm"),
    "sg": Country("en-SG", "Asia/Singapore"),
    "th": Country("th-TH", "Asia/Bangkok"),
    "tr": Country("tr-TR", "Europe/Istanbul"),
    "ua": Country("uk-UA", "Europe/Kyiv"),
    "us": Country("en-US", "America/New_York"),
    "vn": Country("vi-VN", "Asia/Ho_Chi_Minh"),
    "za": Country("en-ZA", "Africa/Johannesburg"),
}
ALIASES = {"uk": "gb"}
HOME = Country("en-GB", "UTC")  # without a proxy, or with one of an unknown country
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
    settings = COUNTRIES.get(ALIASES.get(code, code), HOME)
    width, height = VIEWPORTS[hashlib.sha256(session_id.encode()).digest()[0] % len(VIEWPORTS)]
    return Profile(user_agent_of(version), settings.locale, settings.timezone, {"width": width, "height": height})


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
