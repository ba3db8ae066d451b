"""Responses that several sites give in the same form."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

NO_CACHE = {"Cache-Control": "no-cache"}


def missing_page() -> web.Response:
    return web.Response(status=404, text="<h1>404 Not Found</h1>", content_type="text/html")


def compact_json(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()
