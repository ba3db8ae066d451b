"""What every handler may need, in one place."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from aiohttp import web

from stadium.counters import RequestCounters
from stadium.crexpro.tokens import TokenOffice
from stadium.faults import FaultBox
from stadium.gate import Gate, SessionPolicy
from stadium.mischief import WRONG_MATCH
from stadium.programme import Match
from stadium.world import World


@dataclass
class Stadium:
    world: World
    faults: FaultBox
    policy: SessionPolicy
    gates: dict[str, Gate]
    tokens: TokenOffice
    counters: RequestCounters = field(default_factory=RequestCounters)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def give_session(self, request: web.Request, response: web.Response, site: str) -> None:
        """A page visit sets the session cookie unless the visitor brings a good one."""
        gate = self.gates[site]
        if not gate.has_session(request.cookies, self.world.clock.wall(), self.policy):
            token = gate.issue(self.world.clock)
            response.set_cookie(gate.session_cookie, token, path=f"/{site}", httponly=True, samesite="Lax")

    def nonce(self, site: str) -> str:
        return self.gates[site].issue(self.world.clock)

    def match(self, request: web.Request, site: str, key: str) -> Match | None:
        found = self.world.find(site, key)
        return self.world.another(found) if found and request.get(WRONG_MATCH) else found


STADIUM = web.AppKey("stadium", Stadium)
