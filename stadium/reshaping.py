"""Applies the shapes of a site to its rendered responses: JSON, and the JSON within pages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from aiohttp import web

from stadium.responses import compact_json
from stadium.shapes import SHAPES
from stadium.sites.crex.page import decode_state, encode_state

_CREX_STATE = re.compile(r'<script id="app-root-state"[^>]*>(.*?)</script>', re.DOTALL)
_NEXT_DATA = re.compile(r'<script id="__NEXT_DATA__"[^>]*>(.*?)</script>', re.DOTALL)


def reshape(response: web.StreamResponse, names: tuple[str, ...]) -> web.StreamResponse:
    shapes = [shape for name in names if (shape := SHAPES[name]).edit or shape.edit_page]
    if not shapes or not isinstance(response, web.Response) or not isinstance(response.body, bytes):
        return response

    def edited(document: Any) -> Any:
        for shape in shapes:
            document = shape.edit(document) if shape.edit else document
        return document

    if response.content_type == "application/json":
        response.headers.pop("ETag", None)  # it is that of the plain document
        response.body = compact_json(edited(json.loads(response.body)))
    elif response.content_type == "text/html":
        html = _edited_page(response.body.decode(), edited)
        for shape in shapes:
            html = shape.edit_page(html) if shape.edit_page else html
        response.body = html.encode()
    return response


def _edited_page(html: str, edited: Callable[[Any], Any]) -> str:
    if found := _CREX_STATE.search(html):
        return html[: found.start(1)] + encode_state(edited(decode_state(found[1]))) + html[found.end(1) :]
    if found := _NEXT_DATA.search(html):
        blob = compact_json(edited(json.loads(found[1]))).decode().replace("<", "\\u003c")
        return html[: found.start(1)] + blob + html[found.end(1) :]
    return html
