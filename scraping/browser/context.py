"""The browser context of a session: opens it in the current browser, with the session's profile, proxy and cookies.

The cookies of a session are in two places, the browser context and the jar of the direct client; the source may change
both at any time. They are merged after each visit, and before each new page. They are kept in memory only.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from http.cookies import CookieError, Morsel
from typing import Any, Literal, cast

from aiohttp import CookieJar
from playwright._impl._api_structures import SetCookieParam
from playwright.async_api import Browser, BrowserContext, Page, ProxySettings, Response
from playwright.async_api import Error as PlaywrightError
from yarl import URL

from scraping.browser.blocking import PageTraffic, RequestBlocker
from scraping.browser.direct_client import DirectClient
from scraping.browser.egress.forward_proxy import REFUSED_HEADER, ForwardProxy, ProxyCredentials
from scraping.browser.egress.upstream_proxies import Proxy
from scraping.browser.host import BrowserHost
from scraping.browser.playwright_calls import translate_error, with_timeout
from scraping.browser.profile import Profile, apply_stealth, user_agent_of
from scraping.errors import EgressRefused, ResourceLost
from scraping.readings import Site

CONTEXT_SECONDS = 10.0
CLOSE_SECONDS = 3.0
TUNNEL_REFUSED = "ERR_TUNNEL_CONNECTION_FAILED"  # Chromium's error for a CONNECT that the forward proxy refused

CookieKey = tuple[str, str, str]  # domain (with a leading dot: and its subdomains), path, name
Cookies = dict[CookieKey, SetCookieParam]
SAME_SITE: dict[str, Literal["Lax", "None", "Strict"]] = {"lax": "Lax", "none": "None", "strict": "Strict"}


class SessionContext:
    """Lives on the loop thread."""

    def __init__(
        self,
        site: Site,
        host: BrowserHost,
        client: DirectClient,
        *,
        forward_proxy: ForwardProxy,
        session_id: str,
        profile: Profile,
        proxy: Proxy | None,
    ) -> None:
        self.generation = 0  # of the browser that the context is in
        self.page_count = 0
        self.profile = profile
        self._site, self._host, self._client = site, host, client
        self._forward_proxy, self._session_id, self._proxy = forward_proxy, session_id, proxy
        self._blocker = RequestBlocker(site, own_hosts_only=not host.options.has_forward_proxy)
        self._credentials: ProxyCredentials | None = None
        self._known: Cookies = {}  # cookies of the open context, as last read or set
        self._context: BrowserContext | None = None
        self._opening = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        """Whether the context exists in the current browser."""
        return self._context is not None and self.generation == self._host.generation

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        context, self._context = (self._context if self.is_open else None), None
        try:
            if context is not None:
                await with_timeout(context.close(), seconds, "closing a browser context")
        finally:
            self._forward_proxy.unregister(self._session_id)

    async def open_page(self) -> tuple[Page, PageTraffic]:
        """Opens an empty page and counts its traffic. To be closed by `close_page`."""
        context = await self.open()
        page = await with_timeout(context.new_page(), CONTEXT_SECONDS, "opening a page")
        self.page_count += 1
        return page, self._blocker.watch(page)

    async def goto(self, page: Page, url: str, seconds: float) -> Response | None:
        """Loads a URL. EgressRefused where it redirects to a host that the forward proxy refused."""
        self._client.rules.check_url(url)
        before = self._forward_proxy.traffic(self._session_id).refused
        try:
            response = await with_timeout(
                page.goto(url, wait_until="domcontentloaded", timeout=seconds * 1000), seconds + 1, f"loading {url}"
            )
        except PlaywrightError as error:
            traffic = self._forward_proxy.traffic(self._session_id)
            if TUNNEL_REFUSED in str(error) and traffic.refused > before:
                raise EgressRefused(f"the page leads elsewhere: {traffic.last_refusal}", url=url) from error
            raise translate_error(error, url=url) from error
        if response is not None and REFUSED_HEADER in response.headers:
            refusal = self._forward_proxy.traffic(self._session_id).last_refusal
            raise EgressRefused(f"the page leads elsewhere: {refusal}", url=url)
        return response

    async def close_page(self, page: Page) -> None:
        self.page_count -= 1
        with contextlib.suppress(Exception):
            await with_timeout(page.close(), CLOSE_SECONDS, "closing a page")

    async def open(self) -> BrowserContext:
        """Returns the context in the current browser, with the cookies that direct responses have set meanwhile.

        A browser that cannot open a context is reported lost.
        """
        async with self._opening:
            browser, generation = await self._host.browser()
            if self._context is None or self.generation != generation:
                try:
                    self._context = await self._new_context(browser)
                except Exception as error:
                    failure = translate_error(error, url=self._site.base_url)
                    self._host.report_lost(generation, str(failure))
                    raise ResourceLost(f"the browser opens no context and is being replaced: {failure}") from error
                self.generation = generation
            context = self._context
            current = cookies_of_jar(self._client.jar)
            if changed := changed_cookies(current, self._known):
                await with_timeout(context.add_cookies(changed), CONTEXT_SECONDS, "restoring cookies")
                self._known = {**self._known, **current}
            return context

    async def save_cookies(self, context: BrowserContext, before: Cookies) -> None:
        """Copies the cookies of a visit to the direct client. `before`: the client's cookies before the visit."""
        found = await with_timeout(context.cookies(), CLOSE_SECONDS, "reading cookies")
        self._known = cookies_of_context(found)
        direct = cookies_of_jar(self._client.jar)
        replace_cookies(self._client.jar, merged_cookies(visited=self._known, direct=direct, before=before))

    def client_cookies(self) -> Cookies:
        return cookies_of_jar(self._client.jar)

    async def _new_context(self, browser: Browser) -> BrowserContext:
        proxy_settings = await self._proxy_settings()
        # Chromium may have been updated since the session began; its client hints would contradict an old version.
        self.profile = profile = replace(self.profile, user_agent=user_agent_of(browser.version))
        context = await with_timeout(
            browser.new_context(
                user_agent=profile.user_agent,
                locale=profile.locale,
                timezone_id=profile.timezone,
                viewport=profile.viewport,
                screen=profile.viewport,
                device_scale_factor=1,
                accept_downloads=False,
                service_workers="block",  # their requests are not routed
                proxy=proxy_settings,
            ),
            CONTEXT_SECONDS,
            "opening a browser context",
        )
        await with_timeout(context.route("**/*", self._blocker.route), CONTEXT_SECONDS, "setting up blocking")
        if self._host.options.has_stealth:
            await with_timeout(apply_stealth(context), CONTEXT_SECONDS, "setting up stealth")
        self._known = {}
        return context

    async def _proxy_settings(self) -> ProxySettings | None:
        """Returns the worker's forward proxy; for a browser on another machine, which cannot reach it, the upstream."""
        if self._host.options.has_forward_proxy:
            await self._forward_proxy.start()
            upstream = self._proxy.url if self._proxy else None
            self._credentials = self._credentials or self._forward_proxy.register(
                self._session_id, self._site, upstream
            )
            credentials = self._credentials
            return {
                "server": credentials.server,
                "username": credentials.username,
                "password": credentials.password,
            }
        if self._proxy is None:
            return None
        server = f"{self._proxy.scheme}://{self._proxy.host}:{self._proxy.port}"
        return {"server": server, "username": self._proxy.username, "password": self._proxy.password}


def cookies_of_context(found: Iterable[Mapping[str, Any]]) -> Cookies:
    """Returns the cookies of a browser context by key."""
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
            if expires := _expiry_seconds(str(morsel["expires"])):
                one["expires"] = expires
            if same_site := SAME_SITE.get(str(morsel["samesite"]).lower()):
                one["sameSite"] = same_site
            if host:
                cookies[domain, path or "/", name] = one
    return cookies


def replace_cookies(jar: CookieJar, cookies: Cookies) -> None:
    """Replaces all cookies of the jar."""
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
    """Returns the cookies that are new or have another value."""
    return [one for key, one in current.items() if key not in known or known[key].get("value") != one.get("value")]


def _expiry_seconds(expires: str) -> float:
    with contextlib.suppress(TypeError, ValueError):
        return parsedate_to_datetime(expires).timestamp()
    return 0.0
