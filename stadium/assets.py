"""Static files of the sites: scripts and styles from disk, placeholder images and fonts."""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path

from aiohttp import web

_SITES = Path(__file__).parent / "sites"
_FOLDERS = {"board": "scoreboard"}  # by the first part of the URL path, where the names differ
_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPj/HwADBwIAMCbHYQAAAABJRU5ErkJggg=="
)
_TYPES = {".js": "text/javascript", ".css": "text/css", ".png": "image/png", ".woff2": "font/woff2"}


async def asset(request: web.Request) -> web.Response:
    found = read_asset(request.path.split("/")[1], request.match_info["file"])
    if found is None:
        raise web.HTTPNotFound
    body, kind = found
    return web.Response(body=body, content_type=kind, headers={"Cache-Control": "max-age=3600"})


def read_asset(site: str, name: str) -> tuple[bytes, str] | None:
    """Returns a site's file and its content type."""
    suffix = Path(name).suffix
    if suffix in (".png", ".woff2"):
        return (_PIXEL if suffix == ".png" else b"\0" * 2048), _TYPES[suffix]
    body = _file(site, name)
    return None if body is None else (body, _TYPES[suffix])


@cache
def _file(site: str, name: str) -> bytes | None:
    folder = _SITES / _FOLDERS.get(site, site) / "assets"
    known = {path.name: path for path in folder.iterdir()}
    return known[name].read_bytes() if name in known else None
