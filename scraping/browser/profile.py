"""Who a session says it is: one coherent profile, the same in the page's script, on its wire, and in direct reads.

Nothing is invented that can be asked: the version is the real Chromium's, and so are the client hints, which Chromium
derives from it. What depends on a place (language, time zone) agrees with the country of the session's proxy.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import ViewportSize


@dataclass(frozen=True)
class Country:
    """What a browser in a country usually says of itself. One time zone each: where most of its people live."""

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
VIEWPORTS = ((1366, 768), (1440, 900), (1536, 864), (1600, 900), (1920, 1080))


@dataclass(frozen=True)
class Profile:
    user_agent: str
    locale: str
    timezone: str
    viewport: ViewportSize

    def headers(self) -> dict[str, str]:
        """What every request of this profile says; the rest is as the page itself asked."""
        return {"User-Agent": self.user_agent, "Accept-Language": self.locale}


def user_agent_of(version: str) -> str:
    """As this Chromium with a window names itself: its major version only, and no word of having no window."""
    return (
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
        f"Chrome/{version.partition('.')[0]}.0.0.0 Safari/537.36"
    )


def is_known_country(code: str) -> bool:
    return ALIASES.get(code.lower(), code.lower()) in COUNTRIES


def profile_for(session_id: str, *, version: str, country: str, home: Country) -> Profile:
    """The profile of a session: the same for its whole life, whichever browser it lives in.

    `home` is what is said without a proxy, or from a country that is not in the table.
    """
    code = country.lower()
    place = COUNTRIES.get(ALIASES.get(code, code), home)
    width, height = VIEWPORTS[hashlib.sha256(session_id.encode()).digest()[0] % len(VIEWPORTS)]
    return Profile(user_agent_of(version), place.locale, place.timezone, {"width": width, "height": height})
