"""What a site does that means no good: answers without an end, answers that explode, and ways that lead elsewhere."""

from __future__ import annotations

import zlib
from functools import lru_cache

from aiohttp import web

from stadium.endpoints import Endpoint
from stadium.faults import Fault

MEGABYTE = 1024 * 1024
FLOOD_MEGABYTES = 1024
ELSEWHERE = "127.0.0.2"  # of this machine, and of no site here


async def answer(request: web.Request, endpoint: Endpoint, fault: Fault) -> web.StreamResponse:
    kind = "text/html" if endpoint.target == "page" else "application/json"
    match fault.kind:
        case "flood":
            return await _flood(request, kind)
        case "bomb":
            return web.Response(body=_bomb(), content_type=kind, headers={"Content-Encoding": "gzip"})
        case "loop":
            return web.Response(status=302, headers={"Location": request.path_qs})
    return web.Response(status=302, headers={"Location": f"http://{ELSEWHERE}:{int(fault.value)}/secret"})


async def _flood(request: web.Request, kind: str) -> web.StreamResponse:
    """A gigabyte, as fast as it is taken."""
    response = web.StreamResponse(headers={"Content-Type": kind})
    await response.prepare(request)
    block = b" " * MEGABYTE
    for _ in range(FLOOD_MEGABYTES):
        await response.write(block)
    await response.write_eof()
    return response


@lru_cache(maxsize=1)
def _bomb() -> bytes:
    """A megabyte that unpacks to a gigabyte: one packed block, again and again. Nobody gets to its missing end."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b" " * MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + block * FLOOD_MEGABYTES
