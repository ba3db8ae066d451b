"""The shared state of the server, for every handler."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from aiohttp import web

from stadium.access import AccessPolicy, SessionCheck, TokenIssuer
from stadium.endpoints import match_key_in_address, site_of
from stadium.fault_responses import WRONG_MATCH
from stadium.faults import FaultRegistry
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.request_counters import RequestCounters
from stadium.responses import NO_CACHE


@dataclass
class Stadium:
    simulation: Simulation
    faults: FaultRegistry
    session_policy: AccessPolicy
    session_checks: dict[str, SessionCheck]
    tokens: TokenIssuer
    browser_only: set[str]  # sites that accept only requests of a browser
    counters: RequestCounters = field(default_factory=RequestCounters)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def page(self, request: web.Request, html: str | bytes) -> web.Response:
        """Responds with a page; sets a session cookie if the site has sessions and the request carries no valid one."""
        body, site = html.encode() if isinstance(html, str) else html, site_of(request)
        response = web.Response(body=body, content_type="text/html", charset="utf-8", headers=NO_CACHE)
        check = self.session_checks.get(site)
        if check and not check.has_session(request.cookies, self.simulation.clock.wall(), self.session_policy):
            token = check.issue(self.simulation.clock)
            response.set_cookie(check.session_cookie, token, path=f"/{site}", httponly=True, samesite="Lax")
        return response

    def nonce(self, site: str) -> str:
        return self.session_checks[site].issue(self.simulation.clock) if site in self.session_checks else ""

    def page_token(self) -> str:
        """Returns the token that Crexpro's pages contain, if they contain one."""
        return str(self.tokens.issue(self.simulation.clock.wall())["token"]) if self.tokens.policy.in_pages else ""

    def match(self, request: web.Request, key: str | None = None) -> Match | None:
        """Returns the match with this key or with that in the address; the fault `wrong_match` replaces it."""
        found = self.simulation.find(site_of(request), match_key_in_address(request) if key is None else key)
        return self.simulation.other_match(found) if found and request.get(WRONG_MATCH) else found


STADIUM = web.AppKey("stadium", Stadium)
