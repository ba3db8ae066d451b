"""A session's cookies, between the two that hold them: the browser's context and the jar of direct reads.

Both get them in memory only, and both may be given new ones by the source at any time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from http.cookies import CookieError, Morsel
from typing import Any, Literal, cast

from aiohttp import CookieJar
from playwright._impl._api_structures import SetCookieParam
from yarl import URL

Key = tuple[str, str, str]  # domain (with a dot: also below it), path, name
Cookies = dict[Key, SetCookieParam]
SAME_SITE: dict[str, Literal["Lax", "None", "Strict"]] = {"lax": "Lax", "none": "None", "strict": "Strict"}


def of_context(found: Iterable[Mapping[str, Any]]) -> Cookies:
    """What a browser's context holds."""
    cookies: Cookies = {}
    for one in found:
        kept = {name: value for name, value in one.items() if name != "partitionKey"}
        cookies[str(one.get("domain", "")), str(one.get("path", "/")), str(one.get("name", ""))] = cast(
            "SetCookieParam", kept
        )
    return cookies


def of_jar(jar: CookieJar) -> Cookies:
    """What direct reads hold, as a context takes it."""
    cookies: Cookies = {}
    len(tuple(jar))  # drops what has run out
    host_only = jar.host_only_cookies
    for (host, path), held in jar.cookies.items():
        for name, morsel in held.items():
            domain = host if (host, path, name) in host_only else f".{host}"
            one: SetCookieParam = {
                "name": name,
                "value": morsel.coded_value,
                "domain": domain,
                "path": path or "/",
                "secure": bool(morsel["secure"]),
                "httpOnly": bool(morsel["httponly"]),
            }
            if expires := _seconds(str(morsel["expires"])):
                one["expires"] = expires
            if same_site := SAME_SITE.get(str(morsel["samesite"]).lower()):
                one["sameSite"] = same_site
            if host:
                cookies[domain, path or "/", name] = one
    return cookies


def fill(jar: CookieJar, cookies: Cookies) -> None:
    """The jar holds these now, and no others."""
    jar.clear()
    for (domain, path, name), one in cookies.items():
        with contextlib.suppress(CookieError):  # a name that no header could carry
            value = str(one.get("value", ""))
            morsel: Morsel[str] = Morsel()
            morsel.set(name, value, value)  # as the browser sends it, not quoted as Python would
            morsel["path"] = path
            if domain.startswith("."):
                morsel["domain"] = domain
            morsel["secure"] = bool(one.get("secure"))
            morsel["httponly"] = bool(one.get("httpOnly"))
            morsel["samesite"] = str(one.get("sameSite", ""))
            expires = float(one.get("expires") or -1)
            if expires > 0:
                morsel["expires"] = format_datetime(datetime.fromtimestamp(expires, UTC), usegmt=True)
            scheme = "https" if one.get("secure") else "http"
            jar.update_cookies({name: morsel}, URL.build(scheme=scheme, host=domain.lstrip("."), path=path or "/"))


def merged(*, visited: Cookies, direct: Cookies, before: Cookies) -> Cookies:
    """After a visit: what the page was given, but what direct reads were given meanwhile where it got nothing new."""
    kept = dict(visited)
    for key, one in direct.items():
        value = one.get("value")
        is_new = key not in before or before[key].get("value") != value
        is_untouched = key not in visited or (key in before and visited[key].get("value") == before[key].get("value"))
        if is_new and is_untouched:
            kept[key] = one
    return kept


def news(now: Cookies, known: Cookies) -> list[SetCookieParam]:
    """Those that are not known yet, or have another value now."""
    return [one for key, one in now.items() if key not in known or known[key].get("value") != one.get("value")]


def _seconds(expires: str) -> float:
    with contextlib.suppress(TypeError, ValueError):
        return parsedate_to_datetime(expires).timestamp()
    return 0.0
