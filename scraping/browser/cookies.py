"""The cookies of a session, which are in two places: its browser context and the jar of its direct client.

The source may change both at any time. They are merged after each visit, and before each new page.
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

CookieKey = tuple[str, str, str]  # domain (with a leading dot: and its subdomains), path, name
Cookies = dict[CookieKey, SetCookieParam]
SAME_SITE: dict[str, Literal["Lax", "None", "Strict"]] = {"lax": "Lax", "none": "None", "strict": "Strict"}


def cookies_of_context(found: Iterable[Mapping[str, Any]]) -> Cookies:
    cookies: Cookies = {}
    for one in found:
        kept = {name: value for name, value in one.items() if name != "partitionKey"}
        cookies[str(one.get("domain", "")), str(one.get("path", "/")), str(one.get("name", ""))] = cast(
            "SetCookieParam", kept
        )
    return cookies


def cookies_of_jar(jar: CookieJar) -> Cookies:
    """Returns the cookies of the direct client in the form that a browser context accepts."""
    cookies: Cookies = {}
    len(tuple(jar))  # iterating removes expired cookies
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
            with contextlib.suppress(TypeError, ValueError):  # a cookie of this session only has none
                one["expires"] = parsedate_to_datetime(str(morsel["expires"])).timestamp()
            if same_site := SAME_SITE.get(str(morsel["samesite"]).lower()):
                one["sameSite"] = same_site
            if host:
                cookies[domain, path or "/", name] = one
    return cookies


def replace_cookies(jar: CookieJar, cookies: Cookies) -> None:
    jar.clear()
    for (domain, path, name), one in cookies.items():
        with contextlib.suppress(CookieError):  # the name is invalid in a header
            value = str(one.get("value", ""))
            morsel: Morsel[str] = Morsel()
            morsel.set(name, value, value)  # unquoted, as the browser sends it
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


def merged_cookies(*, visited: Cookies, direct: Cookies, before: Cookies) -> Cookies:
    """Returns the cookies after a visit: the page's, and those that only direct responses have changed meanwhile."""
    kept = dict(visited)
    for key, one in direct.items():
        value = one.get("value")
        is_new = key not in before or before[key].get("value") != value
        is_untouched = key not in visited or (key in before and visited[key].get("value") == before[key].get("value"))
        if is_new and is_untouched:
            kept[key] = one
    return kept


def changed_cookies(current: Cookies, known: Cookies) -> list[SetCookieParam]:
    return [one for key, one in current.items() if key not in known or known[key].get("value") != one.get("value")]
