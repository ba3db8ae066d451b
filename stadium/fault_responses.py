"""Applies injected faults to a response: delays, errors, changed bodies, hostile content and redirects."""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from functools import lru_cache
from typing import Any

from aiohttp import web

from stadium.endpoints import Endpoint, Handler
from stadium.faults import Fault
from stadium.matches.ids import SOFASCORE_SITES
from stadium.sites.crex.page import decode_state, encode_state

WRONG_MATCH = web.RequestKey("wrong_match", bool)  # set: handlers respond with another match
CHALLENGE_BODY = '{"error":{"code":403,"reason":"challenge"}}'
CHALLENGE_PAGE = """<!doctype html><html><head><title>Just a moment...</title></head>
<body><h1>Checking your browser</h1><div id="challenge-form" class="captcha">Please wait</div></body></html>"""
LOGIN_PAGE = """<!doctype html><html><head><title>Sign in</title></head><body><h1>Sign in to go on</h1>
<form action="/login" method="post"><input name="email" type="email"><input name="password" type="password">
<button>Sign in</button></form></body></html>"""
MEGABYTE = 1024 * 1024
FLOOD_MEGABYTES = 1024
FOREIGN_HOST = "127.0.0.2"  # of this machine, but of no site
_DRIP_STEPS = 20
_POLL_SECONDS = 0.2


async def respond(
    request: web.Request, endpoint: Endpoint, faults: list[Fault], handler: Handler, stopping: asyncio.Event
) -> web.StreamResponse:
    for fault in faults:
        early = await _before(request, endpoint, fault, stopping)
        if early is not None:
            return early
    response = await handler(request)
    for fault in faults:
        # The scoreboard site applies its layout itself, because it also sends markup through its socket.
        if isinstance(response, web.Response) and (endpoint.site, fault.kind) != ("board", "layout"):
            _rewrite(response, fault.kind)
    drip = next((fault for fault in faults if fault.kind == "drip"), None)
    if drip and isinstance(response, web.Response):
        return await _drip(request, response, drip.value, stopping)
    return response


async def _before(
    request: web.Request, endpoint: Endpoint, fault: Fault, stopping: asyncio.Event
) -> web.StreamResponse | None:
    match fault.kind:
        case "latency":
            await _wait(stopping, fault.value)
        case "hang":
            await _hang(request, fault, stopping)
        case "wrong_match":
            request[WRONG_MATCH] = True
        case "status":
            return _status(int(fault.value))
        case "empty":
            return web.Response(content_type=_content_type(endpoint))
        case "challenge":
            if endpoint.needs_session and endpoint.site in SOFASCORE_SITES:
                return web.Response(status=403, text=CHALLENGE_BODY, content_type="application/json")
            return web.Response(text=CHALLENGE_PAGE, content_type="text/html")
        case "login":
            return web.Response(text=LOGIN_PAGE, content_type="text/html")
        case "reset":
            _cut(request)
        case "flood" | "bomb" | "loop" | "lead_away":
            return await _hostile(request, endpoint, fault)
    return None


def _content_type(endpoint: Endpoint) -> str:
    return "text/html" if endpoint.target == "page" else "application/json"


def _status(status: int) -> web.Response:
    headers = {"Retry-After": "5"} if status in (429, 503) else None
    return web.json_response({"error": {"code": status, "message": "injected"}}, status=status, headers=headers)


def _cut(request: web.Request) -> None:
    """Closes the connection without a response."""
    if request.transport is not None:
        request.transport.abort()
    raise asyncio.CancelledError


async def _hang(request: web.Request, fault: Fault, stopping: asyncio.Event) -> None:
    while not fault.removed.is_set():
        if stopping.is_set() or request.transport is None or request.transport.is_closing():
            _cut(request)
        await _wait(fault.removed, _POLL_SECONDS)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return


async def _drip(
    request: web.Request, response: web.Response, seconds: float, stopping: asyncio.Event
) -> web.StreamResponse:
    """Sends the same bytes, spread over the given number of seconds."""
    body = response.body if isinstance(response.body, bytes) else b""
    slow = web.StreamResponse(status=response.status, headers=response.headers)
    slow.content_length = len(body)
    await slow.prepare(request)
    size = max(len(body) // _DRIP_STEPS, 1)
    for start in range(0, len(body), size):
        await slow.write(body[start : start + size])
        await _wait(stopping, seconds / _DRIP_STEPS)
    await slow.write_eof()
    return slow


async def _hostile(request: web.Request, endpoint: Endpoint, fault: Fault) -> web.StreamResponse:
    kind = _content_type(endpoint)
    match fault.kind:
        case "flood":
            return await _flood(request, kind)
        case "bomb":
            return web.Response(body=_gzip_bomb(), content_type=kind, headers={"Content-Encoding": "gzip"})
        case "loop":
            return web.Response(status=302, headers={"Location": request.path_qs})
    return web.Response(status=302, headers={"Location": f"http://{FOREIGN_HOST}:{int(fault.value)}/secret"})


async def _flood(request: web.Request, kind: str) -> web.StreamResponse:
    """Sends a gigabyte as fast as the client reads."""
    response = web.StreamResponse(headers={"Content-Type": kind})
    await response.prepare(request)
    block = b" " * MEGABYTE
    for _ in range(FLOOD_MEGABYTES):
        await response.write(block)
    await response.write_eof()
    return response


@lru_cache(maxsize=1)
def _gzip_bomb() -> bytes:
    """Returns a megabyte that decompresses to a gigabyte: one compressed block repeated, without an end marker."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b" " * MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + block * FLOOD_MEGABYTES


def _rewrite(response: web.Response, kind: str) -> None:
    rewrite = _REWRITE.get((response.content_type, kind))
    if rewrite and isinstance(response.body, bytes):
        response.text = rewrite(response.body.decode())


def _cut_json(text: str) -> str:
    return text[: max(len(text) // 2, 1)]


def _rename_json(text: str) -> str:
    return json.dumps(_renamed(json.loads(text)))


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {f"v2_{key}": _renamed(item) for key, item in value.items()}
    return [_renamed(item) for item in value] if isinstance(value, list) else value


def _halve_json(text: str) -> str:
    return json.dumps(_halved(json.loads(text)))


def _halved(value: Any) -> Any:
    """Drops every second item of a list, of the lists in an object, or of an object keyed by match."""
    if isinstance(value, list):
        return value[::2]
    if isinstance(value, dict):
        if "commentary" in value:
            return _halved_within(value)
        if any(isinstance(item, list) for item in value.values()):
            return {key: _halved(item) if isinstance(item, list) else item for key, item in value.items()}
        if value and all(isinstance(item, dict) for item in value.values()) and "event" not in value:
            return dict(list(value.items())[::2])
    return value


def _halved_within(value: Any) -> Any:
    """Drops every second item of the lists of balls and matches at any depth."""
    if isinstance(value, list):
        return [_halved_within(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: item[::2] if key in _DEEP_LISTS and isinstance(item, list) else _halved_within(item)
        for key, item in value.items()
    }


_DEEP_LISTS = ("items", "ballComments", "comments", "matches")
_NEXT_BLOB = re.compile(r'(<script id="__NEXT_DATA__"[^>]*>)(.*?)(</script>)', re.DOTALL)
_FEED_BLOB = re.compile(r'(<script id="app-root-state"[^>]*>)(.*?getBallFeeds.*?)(</script>)', re.DOTALL)
_BLOB = re.compile(r'<script id="(?:app-root-state|__NEXT_DATA__)"[^>]*>.*?</script>', re.DOTALL)


def _cut_html(text: str) -> str:
    """Cuts the page in the middle of its state blob, or in half."""
    found = _BLOB.search(text)
    return text[: (found.start() + found.end()) // 2] if found else text[: len(text) // 2]


def _rename_html(text: str) -> str:
    without_blob = _BLOB.sub("", text)
    return re.sub(r'class="([^"]*)"', lambda m: f'class="{" ".join("nx-" + c for c in m[1].split())}"', without_blob)


def _halve_html(text: str) -> str:
    """Drops half of a list's cards, or of the balls in a match page's state blob."""
    text = _NEXT_BLOB.sub(lambda m: m[1] + _halve_next(m[2]) + m[3], text)
    head, *cards = _FEED_BLOB.sub(lambda m: m[1] + _halve_blob(m[2]) + m[3], text).split("<!--card-->")
    if not cards:
        return head
    last, _, tail = cards[-1].partition("<!--/cards-->")
    return head + "".join([*cards[:-1], last][::2]) + tail


def _halve_next(text: str) -> str:
    return json.dumps(_halved_within(json.loads(text))).replace("</", "<\\/")


def _halve_blob(text: str) -> str:
    state = decode_state(text)
    return encode_state({key: _halved(item) if key.endswith("getBallFeeds") else item for key, item in state.items()})


_REWRITE = {
    ("application/json", "malformed"): _cut_json,
    ("application/json", "layout"): _rename_json,
    ("application/json", "half_list"): _halve_json,
    ("text/html", "malformed"): _cut_html,
    ("text/html", "layout"): _rename_html,
    ("text/html", "half_list"): _halve_html,
}
