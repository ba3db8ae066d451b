"""How the site answers: JSON with a tag to ask by again, pages that set the session cookie, and its own 404."""

from __future__ import annotations

import json
import zlib
from typing import Any

from aiohttp import web

from stadium.context import Stadium


def not_found() -> web.Response:
    return web.json_response({"error": {"code": 404, "message": "Not Found"}}, status=404)


def json_answer(request: web.Request, body: dict[str, Any], cache_control: str) -> web.Response:
    return json_bytes(request, json.dumps(body, separators=(",", ":")).encode(), cache_control)


def json_bytes(request: web.Request, data: bytes, cache_control: str) -> web.Response:
    tag = f'"{zlib.crc32(data):08x}"'
    headers = {"Cache-Control": cache_control, "ETag": tag}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=data, content_type="application/json", headers=headers)


def give_page(request: web.Request, stadium: Stadium, html: str, site: str) -> web.Response:
    response = web.Response(text=html, content_type="text/html", headers={"Cache-Control": "no-cache"})
    stadium.give_session(request, response, site)
    return response
