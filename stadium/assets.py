"""Static files of the sites: scripts and styles from disk, placeholder images and fonts."""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path

from aiohttp import web

_SITES = Path(__file__).parent / "sites"
_FOLDERS = {"board": "scoreboard", "crexpro": "crex"}  # by the first part of the URL path, where the names differ
_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPj/HwADBwIAMCbHYQAAAABJRU5ErkJggg=="
)
_PLACEHOLDERS = {".png": _PIXEL, ".woff2": b"\0" * 2048}
_TYPES = {".js": "text/javascript", ".css": "text/css", ".png": "image/png", ".woff2": "font/woff2"}


async def asset(request: web.Request) -> web.Response:
    name = request.match_info["file"]
    suffix = Path(name).suffix
    body = _PLACEHOLDERS.get(suffix) or _file(request.path.split("/")[1], name)
    if body is None:
        raise web.HTTPNotFound
    return web.Response(body=body, content_type=_TYPES[suffix], headers={"Cache-Control": "max-age=3600"})


@cache
def _file(site: str, name: str) -> bytes | None:
    folder = _SITES / _FOLDERS.get(site, site) / "assets"
    known = {path.name: path for path in folder.iterdir()}
    return known[name].read_bytes() if name in known else None
